// Packed codes of weights to numbers.
#pragma once

#include "rlx/ops/vocabulary.h"
#include "rlx/quant/scheme.h"

namespace rlx::ops {

struct DequantizeBlocks {
  static constexpr std::string_view name = "dequantize_blocks",
                                    summary = "Packed weight codes decoded to numbers.", operands = "packed";
  static constexpr std::string_view doc =
      "y[.., k, n] = what the code of weight (k, n) says by itself, f32: the weight for gguf_TYPE, whose "
      "blocks are W transposed, [n, k] row-major; the code 0 .. 15 for int4; the E2M1 value for nvfp4; the "
      "E4M3 or E5M2 value for fp8. Scales beside the codes are applied by dequant_matmul. Packed weights are "
      "constants for derivatives";
  static constexpr Traits traits{.zero_gradient = true};
  struct Attrs {
    std::string scheme;
    Dims shape;
    static constexpr auto fields() {
      return std::tuple{
          field("scheme", &Attrs::scheme, "how weights are stored: gguf_q4k, int4/32, nvfp4/16, .."),
          field("shape", &Attrs::shape, "extents of the result, [.., k, n]")};
    }
  };
  static Shapes infer(Infer&, Attrs&);
  static Literals reference(const Eval&, const Attrs&);
  static Exprs vmap(const Vmap&, const Attrs&);
  static std::vector<OpSample<Attrs>> samples();
};

Expr dequantize_blocks(Expr packed, const std::string& scheme, Dims shape);

/// The scheme of that name, which gets its canonical spelling; a name that means none is refused with those
/// that would do.
quant::Scheme require_scheme(const Infer& c, std::string& text);

}  // namespace rlx::ops
