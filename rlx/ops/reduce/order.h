// What operators that order elements have in common: comparing them, and derivatives by index.
#pragma once

#include <cmath>
#include <cstdint>

#include "rlx/ops/vocabulary.h"

namespace rlx::ops {

/// Refuses dtypes of operand 0 that have no order.
void require_order(const Infer& c);

/// Derivatives where result 0 is x picked along `axis` by result 1: the cotangent is added where the values
/// came from; the tangent is picked as they were.
Exprs routed_vjp(const Vjp& c, int axis);
Exprs routed_jvp(const Jvp& c, int axis);

/// Calls f with the elements as doubles or, for integers and bool, as int64_t, so that nothing is lost.
template <class F>
auto with_values(const Literal& x, F f) {
  return is_float(x.dtype()) ? f(x.to_reals()) : f(x.to_integers());
}

inline bool is_nan_value(double v) { return std::isnan(v); }
inline bool is_nan_value(int64_t) { return false; }

/// a < b in a total order with NaN above everything; NaNs are equal among themselves.
template <class T>
bool below(T a, T b) {
  return is_nan_value(b) ? !is_nan_value(a) : a < b;
}

}  // namespace rlx::ops
