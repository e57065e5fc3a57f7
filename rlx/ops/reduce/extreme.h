// Where the largest and smallest elements are.
#pragma once

#include "rlx/ops/vocabulary.h"

namespace rlx::ops {

struct ArgExtremeAttrs {
  int axis = -1;
  bool keep_dim = false;
  DType dtype = DType::i32;
  static constexpr auto fields() {
    return std::tuple{
        field("axis", &ArgExtremeAttrs::axis, "axis to search; negative counts from the end"),
        field("keep_dim", &ArgExtremeAttrs::keep_dim, "keep the axis with size 1"),
        field("dtype", &ArgExtremeAttrs::dtype, "element type of the result: an integer, f32 or f64")};
  }
};

struct Argmax {
  static constexpr std::string_view name = "argmax",
                                    summary = "Position of the largest element along an axis.",
                                    operands = "x";
  static constexpr std::string_view doc =
      "y = the first k with x[.., k, ..] the largest; NaN counts as the largest";
  static constexpr Traits traits{.zero_gradient = true};
  using Attrs = ArgExtremeAttrs;
  static Shapes infer(Infer&, Attrs&);
  static Literals reference(const Eval&, const Attrs&);
  static Exprs vmap(const Vmap&, const Attrs&);
  static double operations(std::span<const Shape> in, std::span<const Shape>, const Attrs&) {
    return double(in[0].elements());
  }
  static std::vector<OpSample<Attrs>> samples();
};

struct Argmin {
  static constexpr std::string_view name = "argmin",
                                    summary = "Position of the smallest element along an axis.",
                                    operands = "x";
  static constexpr std::string_view doc =
      "y = the first k with x[.., k, ..] the smallest; NaN counts as the smallest";
  static constexpr Traits traits{.zero_gradient = true};
  using Attrs = ArgExtremeAttrs;
  static Shapes infer(Infer&, Attrs&);
  static Literals reference(const Eval&, const Attrs&);
  static Exprs vmap(const Vmap&, const Attrs&);
  static double operations(std::span<const Shape> in, std::span<const Shape>, const Attrs&) {
    return double(in[0].elements());
  }
  static std::vector<OpSample<Attrs>> samples();
};

struct RunningExtremeAttrs {
  int axis = -1;
  bool reverse = false;
  static constexpr auto fields() {
    return std::tuple{
        field("axis", &RunningExtremeAttrs::axis, "axis to run along; negative counts from the end"),
        field("reverse", &RunningExtremeAttrs::reverse, "run from the last element to the first")};
  }
};

struct Cummax {
  static constexpr std::string_view name = "cummax",
                                    summary = "Running maximum along an axis, and where it is.",
                                    operands = "x", results = "values, indices";
  static constexpr std::string_view doc =
      "values[i] = max of x[j] over j <= i (from the end when reverse); indices[i] = the j met first that "
      "has it. NaN wins from where it stands; the gradient goes to x[indices[i]]";
  using Attrs = RunningExtremeAttrs;
  static Shapes infer(Infer&, Attrs&);
  static Literals reference(const Eval&, const Attrs&);
  static Exprs vjp(const Vjp&, const Attrs&);
  static Exprs jvp(const Jvp&, const Attrs&);
  static Exprs vmap(const Vmap&, const Attrs&);
  static std::vector<OpSample<Attrs>> samples();
};

struct Cummin {
  static constexpr std::string_view name = "cummin",
                                    summary = "Running minimum along an axis, and where it is.",
                                    operands = "x", results = "values, indices";
  static constexpr std::string_view doc =
      "values[i] = min of x[j] over j <= i (from the end when reverse); indices[i] = the j met first that "
      "has it. NaN wins from where it stands; the gradient goes to x[indices[i]]";
  using Attrs = RunningExtremeAttrs;
  static Shapes infer(Infer&, Attrs&);
  static Literals reference(const Eval&, const Attrs&);
  static Exprs vjp(const Vjp&, const Attrs&);
  static Exprs jvp(const Jvp&, const Attrs&);
  static Exprs vmap(const Vmap&, const Attrs&);
  static std::vector<OpSample<Attrs>> samples();
};

Expr argmax(Expr x, int axis, bool keep_dim = false, DType dtype = DType::i32);
Expr argmin(Expr x, int axis, bool keep_dim = false, DType dtype = DType::i32);
/// {values, indices}
Exprs cummax(Expr x, int axis, bool reverse = false);
Exprs cummin(Expr x, int axis, bool reverse = false);

}  // namespace rlx::ops
