// Group normalisation of [N, C, ..] and its gradients.
#pragma once

#include "rlx/ops/vocabulary.h"

namespace rlx::ops {

struct GroupNormAttrs {
  int64_t num_groups = 1;
  double eps = 1e-5;
  static constexpr auto fields() {
    return std::tuple{field("num_groups", &GroupNormAttrs::num_groups, "parts of the channels; divides C"),
                      field("eps", &GroupNormAttrs::eps, "added to the variance before the root")};
  }
};

struct GroupNorm {
  static constexpr std::string_view name = "group_norm",
                                    summary = "Normalisation of groups of channels of [N, C, ..].",
                                    operands = "x, gamma?, beta?";
  static constexpr std::string_view doc =
      "y = gamma (x - m) / sqrt(v + eps) + beta, m and the biased variance v over the C/num_groups channels "
      "of a group and all places, for each n; gamma and beta are [C] and are 1 and 0 when left out";
  using Attrs = GroupNormAttrs;
  static Shapes infer(Infer&, Attrs&);
  static Exprs decompose(const Lower&, const Attrs&);
  static Exprs vjp(const Vjp&, const Attrs&);
  static Exprs vmap(const Vmap&, const Attrs&);
  static std::vector<OpSample<Attrs>> samples();
};

struct GroupNormBackwardInput {
  static constexpr std::string_view name = "group_norm_backward_input",
                                    summary = "Gradient of group_norm in x.", operands = "x, gamma, beta, dy";
  static constexpr std::string_view doc =
      "dx = r (g - mean(g) - hat mean(g hat)) over each group, g = gamma dy, hat = (x - m) r, "
      "r = 1 / sqrt(v + eps)";
  using Attrs = GroupNormAttrs;
  static Shapes infer(Infer&, Attrs&);
  static Exprs decompose(const Lower&, const Attrs&);
  static std::vector<OpSample<Attrs>> samples();
};

struct GroupNormParameterAttrs {
  Dims shape;
  int64_t num_groups = 1;
  double eps = 1e-5;
  static constexpr auto fields() {
    using A = GroupNormParameterAttrs;
    return std::tuple{field("shape", &A::shape, "extents of the parameter, [C]; left out, inferred"),
                      field("num_groups", &A::num_groups, "parts of the channels; divides C"),
                      field("eps", &A::eps, "added to the variance before the root")};
  }
};

namespace detail {

Shapes infer_group_parameter(Infer& c, GroupNormParameterAttrs& a);
std::vector<OpSample<GroupNormParameterAttrs>> group_parameter_samples();

}  // namespace detail

struct GroupNormBackwardGamma {
  static constexpr std::string_view name = "group_norm_backward_gamma",
                                    summary = "Gradient of group_norm in gamma.", operands = "x, dy";
  static constexpr std::string_view doc =
      "dgamma[c] = sum of dy (x - m) / sqrt(v + eps) over n and all places";
  using Attrs = GroupNormParameterAttrs;
  static Shapes infer(Infer& c, Attrs& a) { return detail::infer_group_parameter(c, a); }
  static Exprs decompose(const Lower&, const Attrs&);
  static std::vector<OpSample<Attrs>> samples() { return detail::group_parameter_samples(); }
};

struct GroupNormBackwardBeta {
  static constexpr std::string_view name = "group_norm_backward_beta",
                                    summary = "Gradient of group_norm in beta.", operands = "x, dy";
  static constexpr std::string_view doc = "dbeta[c] = sum of dy over n and all places";
  using Attrs = GroupNormParameterAttrs;
  static Shapes infer(Infer& c, Attrs& a) { return detail::infer_group_parameter(c, a); }
  static Exprs decompose(const Lower&, const Attrs&);
  static std::vector<OpSample<Attrs>> samples() { return detail::group_parameter_samples(); }
};

Expr group_norm(Expr x, Expr gamma, Expr beta, int64_t num_groups, double eps);
Expr group_norm_backward_input(Expr x, Expr gamma, Expr beta, Expr dy, int64_t num_groups, double eps);
/// An empty shape is inferred; a given one is checked.
Expr group_norm_backward_gamma(Expr x, Expr dy, Dims shape, int64_t num_groups, double eps);
Expr group_norm_backward_beta(Expr x, Expr dy, Dims shape, int64_t num_groups, double eps);

}  // namespace rlx::ops
