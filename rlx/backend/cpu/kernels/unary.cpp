#include "rlx/backend/cpu/kernels/unary.h"

#include "rlx/backend/cpu/isa_table.h"
#include "rlx/backend/cpu/kernels/grain.h"
#include "rlx/backend/cpu/kernels/sizes.h"

namespace rlx::cpu {

RLX_ISA_TABLE(UnaryKernels, unary_kernels)

std::string_view unary_name(Unary op) {
  constexpr std::string_view names[kUnaryCount] = {
      "identity", "neg",   "abs",  "square", "sqrt", "rsqrt",     "reciprocal",
      "exp",      "expm1", "log",  "log1p",  "sin",  "cos",       "tanh",
      "sigmoid",  "erf",   "relu", "silu",   "gelu", "gelu_tanh", "gelu_quick",
      "softplus", "tan",   "atan", "floor",  "ceil", "round",     "sign"};
  return names[size_t(op)];
}

void unary(Team team, Unary op, const float* x, float* y, int64_t n) {
  const auto run = unary_kernels().f32[size_t(op)];
  const bool streaming = x != y && may_stream(y, 8 * n);
  team.parallel_for(n, kHeavyGrain, [&](int64_t b, int64_t e) { run(x + b, y + b, e - b, streaming); });
}

void unary(Team team, Unary op, const double* x, double* y, int64_t n) {
  const auto run = unary_kernels().f64[size_t(op)];
  const bool streaming = x != y && may_stream(y, 16 * n);
  team.parallel_for(n, kHeavyGrain / 2, [&](int64_t b, int64_t e) { run(x + b, y + b, e - b, streaming); });
}

void unary_affine(Team team, Unary op, const float* x, const float* w, const float* b, float* y, int64_t n) {
  const auto run = unary_kernels().affine_f32[size_t(op)];
  const bool streaming = x != y && w != y && b != y && may_stream(y, 16 * n);
  team.parallel_for(n, kHeavyGrain,
                    [&](int64_t i, int64_t e) { run(x + i, w + i, b + i, y + i, e - i, streaming); });
}

void power(Team team, const float* a, const float* b, float* y, int64_t n) {
  const auto run = unary_kernels().power_f32;
  team.parallel_for(n, kHeavyGrain / 4, [&](int64_t i, int64_t e) { run(a + i, b + i, y + i, e - i); });
}

void power(Team team, const double* a, const double* b, double* y, int64_t n) {
  const auto run = unary_kernels().power_f64;
  team.parallel_for(n, kHeavyGrain / 8, [&](int64_t i, int64_t e) { run(a + i, b + i, y + i, e - i); });
}

}  // namespace rlx::cpu
