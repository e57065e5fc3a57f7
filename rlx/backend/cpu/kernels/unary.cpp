#include "rlx/backend/cpu/kernels/unary.h"

#include "rlx/backend/cpu/isa_table.h"

namespace rlx::cpu {

RLX_ISA_TABLE(UnaryKernels, unary_kernels)

namespace {

// Parts smaller than this cost more to hand over than to compute: about 2 us of work.
constexpr int64_t kGrain = 4096;
// Above this size the result cannot stay in any cache, and writing past them saves the read of each line.
constexpr int64_t kStreamingBytes = int64_t(32) << 20;

bool may_stream(const void* y, int64_t bytes) {
  return bytes >= kStreamingBytes && reinterpret_cast<uintptr_t>(y) % 64 == 0;
}

}  // namespace

std::string_view unary_name(Unary op) {
  constexpr std::string_view names[kUnaryCount] = {
      "identity", "neg",  "abs",   "square",    "sqrt",       "rsqrt",   "reciprocal", "exp",
      "expm1",    "log",  "log1p", "sin",       "cos",        "tanh",    "sigmoid",    "erf",
      "relu",     "silu", "gelu",  "gelu_tanh", "gelu_quick", "softplus"};
  return names[size_t(op)];
}

void unary(Team team, Unary op, const float* x, float* y, int64_t n) {
  const auto run = unary_kernels().f32[size_t(op)];
  const bool streaming = x != y && may_stream(y, 4 * n);
  team.parallel_for(n, kGrain, [&](int64_t b, int64_t e) { run(x + b, y + b, e - b, streaming); });
}

void unary(Team team, Unary op, const double* x, double* y, int64_t n) {
  const auto run = unary_kernels().f64[size_t(op)];
  team.parallel_for(n, kGrain / 4, [&](int64_t b, int64_t e) { run(x + b, y + b, e - b); });
}

void unary_affine(Team team, Unary op, const float* x, const float* w, const float* b, float* y, int64_t n) {
  const auto run = unary_kernels().affine_f32[size_t(op)];
  const bool streaming = x != y && w != y && b != y && may_stream(y, 4 * n);
  team.parallel_for(n, kGrain,
                    [&](int64_t i, int64_t e) { run(x + i, w + i, b + i, y + i, e - i, streaming); });
}

void power(Team team, const float* a, const float* b, float* y, int64_t n) {
  const auto run = unary_kernels().power_f32;
  team.parallel_for(n, kGrain / 4, [&](int64_t i, int64_t e) { run(a + i, b + i, y + i, e - i); });
}

}  // namespace rlx::cpu
