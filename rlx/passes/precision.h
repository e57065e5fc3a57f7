// Values stored in 16 bits.
#pragma once

#include <string>
#include <vector>

#include "rlx/ir/graph.h"

namespace rlx::passes {

/// The type that f32 values of each class of operators are stored in: f32, f16 or bf16. Kernels accumulate in f32 whatever they
/// store. Inputs, params and outputs keep their declared types.
struct PrecisionPolicy {
  DType compute = DType::f32;    // products, convolutions, attention
  DType reduction = DType::f32;  // norms, softmax, sums
  DType elementwise = DType::f32;
  DType movement = DType::f32;    // reshape, transpose, concat, gather
  std::vector<std::string> keep;  // operators that stay in f32, by name

  static PrecisionPolicy always_f32() { return {}; }
  static PrecisionPolicy always_f16() { return all(DType::f16); }
  /// Halves, except for sums of many elements.
  static PrecisionPolicy auto_mixed_conservative() {
    PrecisionPolicy p = all(DType::f16);
    p.reduction = DType::f32;
    return p;
  }
  static PrecisionPolicy auto_mixed() { return all(DType::f16); }
  static PrecisionPolicy auto_mixed_bf16() { return all(DType::bf16); }
  static PrecisionPolicy all(DType t) { return {t, t, t, t, {}}; }

  bool changes_nothing() const {
    return compute == DType::f32 && reduction == DType::f32 && elementwise == DType::f32 &&
           movement == DType::f32;
  }
  friend bool operator==(const PrecisionPolicy&, const PrecisionPolicy&) = default;
};

/// Stores f32 values in the type that the policy says, with casts where types meet.
///   y = matmul(x, w)   =>   y = cast(matmul(cast(x, f16), cast(w, f16)), f32)
/// Integers, booleans, f64, complex numbers, quantised codes and whatever an index, an angle or the number of steps of a loop is made of
/// stay as they are; so do operators of no class, control flow (its bodies are treated alike) and those that refuse the type. Casts of weights depend on weights alone, so
/// they run once. Constants, inputs and params keep their finite numbers finite: what lies beyond the largest number of the type, as masks
/// do, becomes that number. `trained`: of a loss graph, whose weights are cast alone.
ir::Graph apply_precision(const ir::Graph&, const PrecisionPolicy&, bool trained = false);

}  // namespace rlx::passes
