// Numbers to blocks of few bits.
#pragma once

#include "rlx/ops/vocabulary.h"

namespace rlx::ops {

struct EncodeBlocks {
  static constexpr std::string_view name = "encode_blocks",
                                    summary = "Numbers encoded in blocks of few bits.", operands = "x";
  static constexpr std::string_view doc =
      "y[.., :] = the bytes of x[.., :] in blocks of `scheme`, one run of blocks for each row; the opposite of "
      "dequantize_blocks, but for rounding. Infinities and NaN have no code and are refused";
  static constexpr Traits traits{.zero_gradient = true};
  struct Attrs {
    std::string scheme;
    static constexpr auto fields() {
      return std::tuple{field("scheme", &Attrs::scheme, "gguf_TYPE: gguf_q8_0, gguf_q4_0, ..")};
    }
  };
  static Shapes infer(Infer&, Attrs&);
  static Literals reference(const Eval&, const Attrs&);
  static Exprs vmap(const Vmap&, const Attrs&);
  static std::vector<OpSample<Attrs>> samples();
};

}  // namespace rlx::ops
