// Elementwise functions of one f32 or f64 array.
#pragma once

#include <cstdint>
#include <string_view>

#include "rlx/base/pool.h"

namespace rlx::cpu {

// At most 2 ulp from the true value in f32 and 4 ulp in f64. round: halves to even.
enum class Unary : uint8_t {
  identity,
  neg,
  abs,
  square,
  sqrt,
  rsqrt,
  reciprocal,
  exp,
  expm1,
  log,
  log1p,
  sin,
  cos,
  tanh,
  sigmoid,
  erf,
  relu,
  silu,
  gelu,
  gelu_tanh,
  gelu_quick,
  softplus,
  tan,
  atan,
  floor,
  ceil,
  round,
  sign,
};
inline constexpr int kUnaryCount = 28;

std::string_view unary_name(Unary);

/// y[i] = f(x[i]); y may be x.
void unary(Team, Unary, const float* x, float* y, int64_t n);
void unary(Team, Unary, const double* x, double* y, int64_t n);

/// y[i] = f(x[i] * w[i] + b[i]) in one pass; y may be any of the inputs.
void unary_affine(Team, Unary, const float* x, const float* w, const float* b, float* y, int64_t n);

/// y[i] = a[i] ^ b[i], 2 ulp in f32 and 4 ulp in f64.
void power(Team, const float* a, const float* b, float* y, int64_t n);
void power(Team, const double* a, const double* b, double* y, int64_t n);

/// Serial forms of one level; `streaming` writes past the caches and needs y aligned to 64 bytes.
struct UnaryKernels {
  void (*f32[kUnaryCount])(const float* x, float* y, int64_t n, bool streaming);
  void (*affine_f32[kUnaryCount])(const float* x, const float* w, const float* b, float* y, int64_t n,
                                  bool streaming);
  void (*f64[kUnaryCount])(const double* x, double* y, int64_t n, bool streaming);
  void (*power_f32)(const float* a, const float* b, float* y, int64_t n);
  void (*power_f64)(const double* a, const double* b, double* y, int64_t n);
};

}  // namespace rlx::cpu
