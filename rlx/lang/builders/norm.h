// Normalisations and losses.
#pragma once

#include "rlx/lang/builders/builder.h"

namespace rlx {

/// Normalisations and losses.
class NormBuilder : public BuilderTheme<NormBuilder> {
 public:
  Value layer_norm(Value input, Value gamma, Value beta, int axis, double eps, const Declared& shape = {},
                   const Loc& loc = Loc::current());
  /// layer_norm over the last axis.
  Value ln(Value x, Value gamma, Value beta, double eps, const Declared& shape = {},
           const Loc& loc = Loc::current());
  /// Over the last axis; without beta nothing is added.
  Value rms_norm(Value x, Value gamma, std::optional<Value> beta, double eps, const Declared& shape = {},
                 const Loc& loc = Loc::current());
  Value rms_norm(Value x, Value gamma, double eps, const Declared& shape = {},
                 const Loc& loc = Loc::current());
  Value layer_norm2d(Value x, Value gamma, Value beta, double eps, const Declared& shape = {},
                     const Loc& loc = Loc::current());
  Value group_norm(Value x, Value gamma, Value beta, int64_t num_groups, double eps,
                   const Declared& shape = {}, const Loc& loc = Loc::current());

  // The norm and the sum it was taken of.
  std::pair<Value, Value> fused_residual_ln(Value x, Value residual, std::optional<Value> bias, Value gamma,
                                            Value beta, double eps, const Loc& loc = Loc::current());
  std::pair<Value, Value> fused_residual_rms_norm(Value x, Value residual, std::optional<Value> bias,
                                                  Value gamma, Value beta, double eps,
                                                  const Loc& loc = Loc::current());

  Value softmax_cross_entropy_with_logits(Value logits, Value labels, const Declared& shape = {},
                                          const Loc& loc = Loc::current());
};

}  // namespace rlx
