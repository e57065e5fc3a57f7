// Running sums and products, and the first-order recurrence that their gradients need.
#pragma once

#include "rlx/ops/vocabulary.h"

namespace rlx::ops {

struct CumulativeAttrs {
  int axis = -1;
  bool exclusive = false;
  bool reverse = false;
  static constexpr auto fields() {
    return std::tuple{
        field("axis", &CumulativeAttrs::axis, "axis to run along; negative counts from the end"),
        field("exclusive", &CumulativeAttrs::exclusive, "leave x[i] out of y[i]"),
        field("reverse", &CumulativeAttrs::reverse, "run from the last element to the first")};
  }
};

struct Cumsum {
  static constexpr std::string_view name = "cumsum", summary = "Running sum along one axis.", operands = "x";
  static constexpr std::string_view doc =
      "y[i] = sum of x[j] over j <= i (j < i when exclusive, from the end when reverse)";
  static constexpr Traits traits{.linear = true};
  using Attrs = CumulativeAttrs;
  static Shapes infer(Infer&, Attrs&);
  static Literals reference(const Eval&, const Attrs&);
  static Exprs vjp(const Vjp&, const Attrs&);
  static Exprs vmap(const Vmap&, const Attrs&);
  static std::vector<OpSample<Attrs>> samples();
};

struct Cumprod {
  static constexpr std::string_view name = "cumprod", summary = "Running product along one axis.",
                                    operands = "x";
  static constexpr std::string_view doc =
      "y[i] = product of x[j] over j <= i (j < i when exclusive, from the end when reverse); the gradient is "
      "exact with zeros in x";
  using Attrs = CumulativeAttrs;
  static Shapes infer(Infer&, Attrs&);
  static Literals reference(const Eval&, const Attrs&);
  static Exprs vjp(const Vjp&, const Attrs&);
  static Exprs vmap(const Vmap&, const Attrs&);
  static std::vector<OpSample<Attrs>> samples();
};

/// h[i] = a[i] h[i-1] + b[i], h[-1] = 0. With g the same recurrence run backwards on (a shifted by one, dh):
/// db = g and da[i] = g[i] h[i-1].
struct LinearRecurrence {
  static constexpr std::string_view name = "linear_recurrence",
                                    summary = "First-order linear recurrence along an axis.",
                                    operands = "a, b";
  static constexpr std::string_view doc =
      "y[i] = a[i] y[i-1] + b[i], starting from 0 (from the end when reverse)";
  struct Attrs {
    int axis = -1;
    bool reverse = false;
    static constexpr auto fields() {
      return std::tuple{field("axis", &Attrs::axis, "axis to run along; negative counts from the end"),
                        field("reverse", &Attrs::reverse, "run from the last element to the first")};
    }
  };
  static Shapes infer(Infer&, Attrs&);
  static Literals reference(const Eval&, const Attrs&);
  static Exprs vjp(const Vjp&, const Attrs&);
  static Exprs vmap(const Vmap&, const Attrs&);
  static std::vector<OpSample<Attrs>> samples();
};

struct CumsumBackward {
  static constexpr std::string_view name = "cumsum_backward", summary = "Gradient of cumsum.",
                                    operands = "dy";
  static constexpr std::string_view doc =
      "dx[i] = sum of dy[j] over j >= i (j > i when exclusive): the running sum from the other end";
  struct Attrs {
    int axis = -1;
    bool exclusive = false;
    static constexpr auto fields() {
      return std::tuple{
          field("axis", &Attrs::axis, "axis of the running sum; negative counts from the end"),
          field("exclusive", &Attrs::exclusive, "whether the running sum left x[i] out of y[i]")};
    }
  };
  static Shapes infer(Infer&, Attrs&);
  static Exprs decompose(const Lower&, const Attrs&);
  static std::vector<OpSample<Attrs>> samples();
};

Expr cumsum(Expr x, int axis, bool exclusive = false, bool reverse = false);
Expr cumprod(Expr x, int axis, bool exclusive = false, bool reverse = false);
Expr cumsum_backward(Expr dy, int axis, bool exclusive = false);
Expr linear_recurrence(Expr a, Expr b, int axis, bool reverse = false);

}  // namespace rlx::ops
