// One reference rule for real, integer and complex tensors: it is written once over the accumulator type.
#pragma once

#include <complex>
#include <vector>

#include "rlx/ops/vocabulary.h"

namespace rlx::ops {

template <class T>
std::vector<T> values_as(const Literal& x) {
  if constexpr (std::is_same_v<T, double>) {
    return x.to_reals();
  } else if constexpr (std::is_same_v<T, int64_t>) {
    return x.to_integers();
  } else {
    return x.to_complexes();
  }
}

/// The literal of type `out` whose elements `compute.operator()<T>()` returns as a vector, T the accumulator
/// of its dtype: double, int64_t or std::complex<double>.
template <class F>
Literal by_accumulator(const Shape& out, F compute) {
  if (is_complex(out.dtype())) {
    return Literal::complexes(out, compute.template operator()<std::complex<double>>());
  }
  if (is_float(out.dtype())) return Literal::reals(out, compute.template operator()<double>());
  return Literal::integers(out, compute.template operator()<int64_t>());
}

}  // namespace rlx::ops
