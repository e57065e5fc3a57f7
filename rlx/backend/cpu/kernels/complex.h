// Arithmetic of complex numbers c64, two f32 with the real part first.
#pragma once

#include "rlx/backend/cpu/kernels/binary.h"

namespace rlx::cpu {

enum class ComplexBinary : uint8_t {
  add,
  sub,
  mul,
  div,   // through f64, which neither overflows nor loses the smaller part
  make,  // a + i b of two real arrays
};

/// y = op(a, b), y contiguous; strides of the box in elements of a and b.
struct ComplexMap {
  ComplexBinary op = ComplexBinary::add;
  Broadcast box;
  const void* a = nullptr;
  const void* b = nullptr;
  void* y = nullptr;
};
void complex_binary(Team, const ComplexMap&);

enum class ComplexUnary : uint8_t {
  conjugate,
  negative,
  exp,  // this and the next two through f64, principal values
  log,
  sqrt,
  norm_squared,  // from here on f32
  real,
  imaginary,
  is_finite,  // these two give bytes 0 or 1
  is_nan,
};

/// y[i] = op(x[i]) for n contiguous numbers. y may be x where both are complex.
void complex_unary(Team, ComplexUnary, const void* x, void* y, int64_t n);

}  // namespace rlx::cpu
