// Sorting along an axis, and the largest elements.
#pragma once

#include "rlx/ops/vocabulary.h"

namespace rlx::ops {

struct SortAttrs {
  int axis = -1;
  bool descending = false;
  static constexpr auto fields() {
    return std::tuple{field("axis", &SortAttrs::axis, "axis to sort along; negative counts from the end"),
                      field("descending", &SortAttrs::descending, "largest first")};
  }
};

struct Sort {
  static constexpr std::string_view name = "sort",
                                    summary = "Elements in order along an axis, and where they were.",
                                    operands = "x", results = "values, indices";
  static constexpr std::string_view doc =
      "values = x in order, values[k] = x[indices[k]]; stable: equal elements keep their order, also when "
      "descending. NaN is above everything. The gradient goes back by the indices";
  using Attrs = SortAttrs;
  static Shapes infer(Infer&, Attrs&);
  static Literals reference(const Eval&, const Attrs&);
  static Exprs vjp(const Vjp&, const Attrs&);
  static Exprs jvp(const Jvp&, const Attrs&);
  static Exprs vmap(const Vmap&, const Attrs&);
  static std::vector<OpSample<Attrs>> samples();
};

struct Argsort {
  static constexpr std::string_view name = "argsort", summary = "The order of elements along an axis.",
                                    operands = "x", results = "indices";
  static constexpr std::string_view doc = "the indices of sort";
  static constexpr Traits traits{.zero_gradient = true};
  using Attrs = SortAttrs;
  static Shapes infer(Infer&, Attrs&);
  static Exprs decompose(const Lower&, const Attrs&);
  static Exprs vmap(const Vmap&, const Attrs&);
  static std::vector<OpSample<Attrs>> samples();
};

struct TopK {
  static constexpr std::string_view name = "top_k",
                                    summary = "The k largest elements along an axis, and where they are.",
                                    operands = "x", results = "values, indices";
  static constexpr std::string_view doc =
      "the first k of sort descending: largest first, of equal elements the smaller index first; NaN is "
      "above everything, -inf is an element like others. The gradient goes back by the indices";
  struct Attrs {
    int64_t k = 1;
    int axis = -1;
    static constexpr auto fields() {
      return std::tuple{field("k", &Attrs::k, "how many; at most the size of the axis"),
                        field("axis", &Attrs::axis, "axis to search; negative counts from the end")};
    }
  };
  static Shapes infer(Infer&, Attrs&);
  static Exprs decompose(const Lower&, const Attrs&);
  static Exprs vjp(const Vjp&, const Attrs&);
  static Exprs jvp(const Jvp&, const Attrs&);
  static Exprs vmap(const Vmap&, const Attrs&);
  static std::vector<OpSample<Attrs>> samples();
};

/// {values, indices}
Exprs sort(Expr x, int axis = -1, bool descending = false);
Expr argsort(Expr x, int axis = -1, bool descending = false);
/// {values, indices}
Exprs top_k(Expr x, int64_t k, int axis = -1);

}  // namespace rlx::ops
