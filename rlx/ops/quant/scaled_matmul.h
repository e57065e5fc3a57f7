// Products of floats of 8 bits with 8 bits, with scales beside both.
#pragma once

#include "rlx/ops/linalg/matmul.h"
#include "rlx/ops/vocabulary.h"

namespace rlx::ops {

struct ScaledMatmul {
  static constexpr std::string_view name = "scaled_matmul",
                                    summary = "Matrix product of fp8 with fp8, scaled.",
                                    operands = "x, w, x_scale?, w_scale?";
  static constexpr std::string_view doc =
      "y[.., m, n] = sum over k of x[.., m, k] sx w[.., k, n] sw, x and w each f8e4m3 or f8e5m2; leading axes broadcast. "
      "Scales are f32 or f64, of two axes or as many as their operand: sx = x_scale[m, k / block], sw = w_scale[k / block, n / block] "
      "or w_scale[k / block, n]. An axis of one element holds for all: [1, 1] is a scale of the whole tensor, [m, 1] one of "
      "each row, [1, n] of each column. Without them they are 1.\n"
      "Sums are those of f32, or f64 for such results or scales. For results of 16 bits sums of up to 128 neighbours along k may be kept in 13 "
      "binary places of their largest term, as matrix units for fp8 do; all others are f32.\n"
      "Gradients reach x and w in their types, so scales are what is trained";
  static constexpr Traits traits{.contraction = true};
  struct Attrs {
    DType to = DType::bf16;
    int64_t block = 128;
    static constexpr auto fields() {
      return std::tuple{field("to", &Attrs::to, "type of y: bf16, f16, f32 or f64"),
                        field("block", &Attrs::block, "neighbours along k, and n, that share a scale")};
    }
  };
  static Shapes infer(Infer&, Attrs&);
  static Exprs decompose(const Lower&, const Attrs&);
  static double operations(std::span<const Shape> in, std::span<const Shape> out, const Attrs&) {
    return product_operations(in, out);
  }
  static std::vector<OpSample<Attrs>> samples();
};

/// Scales are empty where there are none; that of x comes first.
Expr scaled_matmul(Expr x, Expr w, Expr x_scale = {}, Expr w_scale = {}, DType to = DType::bf16,
                   int64_t block = 128);

}  // namespace rlx::ops
