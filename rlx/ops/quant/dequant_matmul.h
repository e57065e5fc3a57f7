// Products with quantised weights: dequantise, then multiply.
#pragma once

#include <array>
#include <optional>

#include "rlx/ops/linalg/matmul.h"
#include "rlx/ops/vocabulary.h"

namespace rlx::ops {

/// How activations meet packed weights. q8: x is rounded to codes of 8 bits first, so that dot products are those of codes.
enum class Activations { exact, q8 };
constexpr std::array<std::string_view, 2> choice_names(Activations) { return {"exact", "q8"}; }

struct DequantMatmul {
  static constexpr std::string_view name = "dequant_matmul",
                                    summary = "Matrix product with quantised weights.",
                                    operands = "x, w, scale?, zp?";
  static constexpr std::string_view doc =
      "y[.., n] = sum over k of x[.., k] W[k, n], with g = k / B:\n"
      "  gguf_TYPE  w u8, blocks of W transposed, [n, k] row-major\n"
      "  int8/B     W = w scale[g, n], w i8[k, n]\n"
      "  int8a/B    W = (w - zp[g, n]) scale[g, n], w i8[k, n]\n"
      "  int4/B     W = (code - zp[g, n]) scale[g, n], codes 0 .. 15 of flat element k N + n, two to a byte, "
      "low "
      "nibble first; zp is 8 when left out\n"
      "  fp8e4m3, fp8e5m2  W = w scale[n], w u8 or f8 [k, n]\n"
      "  nvfp4/16   W = e2m1(code) e4m3(scale[g, n]) zp[0], codes of rows 2i and 2i + 1 in byte [i, n], low "
      "nibble "
      "first; scale is u8 or f8e4m3 (NaN codes count as 0), zp the one global scale\n"
      "activations=q8, for gguf_TYPE: x is first rounded to d q as llama.cpp does, d = max |x| / 127 over 32 neighbours along "
      "k and multiplied as f16, over 256 and in f32 where blocks hold 256; q4_1 and q5_1 multiply least values by d sum q as "
      "f16. Gradients are those of the exact product.\n"
      "Codes are frozen: x, scale and zp have gradients, w has none";
  static constexpr Traits traits{.contraction = true};
  struct Attrs {
    std::string scheme;
    Activations activations = Activations::exact;
    static constexpr auto fields() {
      return std::tuple{
          field("scheme", &Attrs::scheme, "how weights are stored: gguf_q4k, int8/32, nvfp4/16, .."),
          field("activations", &Attrs::activations, "exact, or rounded to 8 bits")};
    }
  };
  static Shapes infer(Infer&, Attrs&);
  static Exprs decompose(const Lower&, const Attrs&);
  static double operations(std::span<const Shape> in, std::span<const Shape> out, const Attrs&) {
    return product_operations(in, out);
  }
  static std::vector<OpSample<Attrs>> samples();
};

struct DequantMatmulTransposed {
  static constexpr std::string_view name = "dequant_matmul_transposed",
                                    summary = "Matrix product with quantised weights transposed.",
                                    operands = "x, w";
  static constexpr std::string_view doc =
      "y[.., k] = sum over n of x[.., n] W[k, n], W in GGUF blocks as in dequant_matmul: what its x gets back from the "
      "gradient of its result. The size k follows from the bytes of w. Only x has a gradient";
  static constexpr Traits traits{.contraction = true};
  struct Attrs {
    std::string scheme;
    static constexpr auto fields() { return std::tuple{field("scheme", &Attrs::scheme, "gguf_TYPE")}; }
  };
  static Shapes infer(Infer&, Attrs&);
  static Exprs decompose(const Lower&, const Attrs&);
  static double operations(std::span<const Shape> in, std::span<const Shape> out, const Attrs&) {
    return product_operations(in, out);
  }
  static std::vector<OpSample<Attrs>> samples();
};

struct DequantMoeWeights {
  static constexpr std::string_view name = "dequant_moe_weights",
                                    summary = "Packed expert weights decoded to one tensor.",
                                    operands = "packed";
  static constexpr std::string_view doc =
      "y[e, k, n] = weight (k, n) of expert e, f32; each expert is one slab of blocks of its weights "
      "transposed, [n, k] row-major, of any gguf_TYPE with a decoder";
  static constexpr Traits traits{.zero_gradient = true};
  struct Attrs {
    std::string scheme;
    Dims shape;
    static constexpr auto fields() {
      return std::tuple{field("scheme", &Attrs::scheme, "gguf_TYPE"),
                        field("shape", &Attrs::shape, "extents of the result, [experts, k, n]")};
    }
  };
  static Shapes infer(Infer&, Attrs&);
  static Exprs decompose(const Lower&, const Attrs&);
  static std::vector<OpSample<Attrs>> samples();
};

struct DequantGroupedMatmul {
  static constexpr std::string_view name = "dequant_grouped_matmul",
                                    summary = "Product of each row with the packed weights of its expert.",
                                    operands = "x, packed, experts";
  static constexpr std::string_view doc =
      "y[i, n] = sum over k of x[i, k] W[experts[i], k, n], W as in dequant_moe_weights; an expert out of "
      "range is an error. activations as in dequant_matmul. Packed weights are frozen: only x has a gradient";
  static constexpr Traits traits{.contraction = true};
  struct Attrs {
    std::string scheme;
    Dim num_experts = 0;
    Activations activations = Activations::exact;
    static constexpr auto fields() {
      return std::tuple{field("scheme", &Attrs::scheme, "gguf_TYPE"),
                        field("num_experts", &Attrs::num_experts,
                              "how many slabs `packed` holds; 0: the size of its first axis"),
                        field("activations", &Attrs::activations, "exact, or rounded to 8 bits")};
    }
  };
  static Shapes infer(Infer&, Attrs&);
  static Exprs decompose(const Lower&, const Attrs&);
  static double operations(std::span<const Shape> in, std::span<const Shape> out, const Attrs&) {
    return product_operations(in, out);
  }
  static std::vector<OpSample<Attrs>> samples();
};

/// scale and zp are empty where the scheme has none.
Expr dequant_matmul(Expr x, Expr w_q, Expr scale, Expr zp, const std::string& scheme);
/// GGUF blocks.
Expr dequant_matmul_packed(Expr x, Expr packed_w, const std::string& scheme);
Expr dequant_matmul_transposed(Expr x, Expr packed_w, const std::string& scheme);
Expr dequant_matmul_nvfp4(Expr x, Expr w_q, Expr block_scales, Expr global_scale);
Expr dequant_moe_weights(Expr packed, const std::string& scheme, Dims shape);
Expr dequant_grouped_matmul(Expr x, Expr packed, Expr experts, const std::string& scheme,
                            Dim num_experts = 0);

}  // namespace rlx::ops
