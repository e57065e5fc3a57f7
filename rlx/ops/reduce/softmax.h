// Softmax and its relatives. All subtract the maximum first, so that nothing overflows.
#pragma once

#include "rlx/ops/vocabulary.h"

namespace rlx::ops {

struct SoftmaxAttrs {
  int axis = -1;
  static constexpr auto fields() {
    return std::tuple{
        field("axis", &SoftmaxAttrs::axis, "axis that sums to one; negative counts from the end")};
  }
};

struct Softmax {
  static constexpr std::string_view name = "softmax", summary = "Exponentials divided by their sum.",
                                    operands = "x";
  static constexpr std::string_view doc =
      "y = e^(x - m) / sum of e^(x - m) along `axis`, m the maximum there; an entry -inf gives 0, a row of "
      "nothing else NaN. dx = y (dy - sum of y dy)";
  using Attrs = SoftmaxAttrs;
  static Shapes infer(Infer&, Attrs&);
  static Exprs decompose(const Lower&, const Attrs&);
  static Exprs vjp(const Vjp&, const Attrs&);
  static Exprs jvp(const Jvp&, const Attrs&);
  static Exprs vmap(const Vmap&, const Attrs&);
  static std::vector<OpSample<Attrs>> samples();
};

struct LogSoftmax {
  static constexpr std::string_view name = "log_softmax", summary = "Logarithm of softmax.", operands = "x";
  static constexpr std::string_view doc =
      "y = x - m - ln(sum of e^(x - m)) along `axis`, m the maximum there. dx = dy - e^y sum of dy";
  using Attrs = SoftmaxAttrs;
  static Shapes infer(Infer&, Attrs&);
  static Exprs decompose(const Lower&, const Attrs&);
  static Exprs vjp(const Vjp&, const Attrs&);
  static Exprs jvp(const Jvp&, const Attrs&);
  static Exprs vmap(const Vmap&, const Attrs&);
  static std::vector<OpSample<Attrs>> samples();
};

struct Logsumexp {
  static constexpr std::string_view name = "logsumexp", summary = "Logarithm of a sum of exponentials.",
                                    operands = "x";
  static constexpr std::string_view doc =
      "y = ln(sum of e^x over `axes`) (none listed: all), with the maximum taken out; -inf where nothing is "
      "above -inf, +inf where an element is. dx = dy e^(x - y), 0 where y = -inf";
  struct Attrs {
    std::vector<int> axes;
    bool keep_dim = false;
    static constexpr auto fields() {
      return std::tuple{field("axes", &Attrs::axes, "axes to reduce; empty means all"),
                        field("keep_dim", &Attrs::keep_dim, "keep reduced axes with size 1")};
    }
  };
  static Shapes infer(Infer&, Attrs&);
  static Exprs decompose(const Lower&, const Attrs&);
  static Exprs vjp(const Vjp&, const Attrs&);
  static Exprs vmap(const Vmap&, const Attrs&);
  static double operations(std::span<const Shape> in, std::span<const Shape>, const Attrs&) {
    return double(in[0].elements());
  }
  static std::vector<OpSample<Attrs>> samples();
};

Expr softmax(Expr x, int axis = -1);
Expr log_softmax(Expr x, int axis = -1);
Expr logsumexp(Expr x, std::vector<int> axes, bool keep_dim = false);

}  // namespace rlx::ops
