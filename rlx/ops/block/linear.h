// Blocks around matrix products: linear layers, a pair that shares its input, the gated feed-forward net.
#pragma once

#include <optional>

#include "rlx/ops/block/block.h"
#include "rlx/ops/elementwise/activation.h"

namespace rlx::ops {

struct LinearAttrs {
  std::optional<Activation> activation;
  static constexpr auto fields() {
    return std::tuple{field("activation", &LinearAttrs::activation, "applied last; none leaves the sum")};
  }
};

struct LinearBlock {
  static constexpr std::string_view name = "linear", summary = "Linear layer (block).",
                                    operands = "x, w, bias?";
  static constexpr std::string_view doc = "y = activation(x w + bias); w is [in, out]";
  static constexpr Traits traits{.contraction = true, .block = true};
  using Attrs = LinearAttrs;
  static Shapes infer(Infer& c, Attrs& a) { return infer_block<LinearBlock>(c, a); }
  static Exprs decompose(const Lower&, const Attrs&);
  static std::vector<OpSample<Attrs>> samples();
};

struct LinearFusedBlock {
  static constexpr std::string_view name = "linear_fused", summary = "Linear layer with bias (block).",
                                    operands = "x, w, bias";
  static constexpr std::string_view doc = "y = activation(x w + bias); w is [in, out]";
  static constexpr Traits traits{.contraction = true, .block = true};
  using Attrs = LinearAttrs;
  static Shapes infer(Infer& c, Attrs& a) { return infer_block<LinearFusedBlock>(c, a); }
  static Exprs decompose(const Lower&, const Attrs&);
  static std::vector<OpSample<Attrs>> samples();
};

struct SharedLinearPair {
  static constexpr std::string_view name = "shared_linear_pair",
                                    summary = "Two products of one input (block).",
                                    operands = "x, w_first, w_second", results = "first, second";
  static constexpr std::string_view doc = "first = x w_first, second = x w_second";
  static constexpr Traits traits{.contraction = true, .block = true};
  using Attrs = NoAttrs;
  static Shapes infer(Infer& c, Attrs& a) { return infer_block<SharedLinearPair>(c, a); }
  static Exprs decompose(const Lower&, const Attrs&);
  static std::vector<OpSample<Attrs>> samples();
};

struct SwigluFfn {
  static constexpr std::string_view name = "swiglu_ffn", summary = "Gated feed-forward net (block).",
                                    operands = "x, up_w, gate_w, down_w";
  static constexpr std::string_view doc = "y = ((x up_w) * silu(x gate_w)) down_w";
  static constexpr Traits traits{.contraction = true, .block = true};
  using Attrs = NoAttrs;
  static Shapes infer(Infer& c, Attrs& a) { return infer_block<SwigluFfn>(c, a); }
  static Exprs decompose(const Lower&, const Attrs&);
  static std::vector<OpSample<Attrs>> samples();
};

/// The net as primitives or with the fused gate, by policy; shared by the larger blocks.
Expr gated_ffn(Expr x, Expr up_w, Expr gate_w, Expr down_w, FusionPolicy policy);

}  // namespace rlx::ops
