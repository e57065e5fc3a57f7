// Memory-bound kernels against the read + write bandwidth of a streaming copy.
#include <vector>

#include "bench/bench.h"
#include "rlx/backend/cpu/kernels/copy.h"
#include "rlx/backend/cpu/kernels/gemm.h"
#include "rlx/backend/cpu/kernels/rows.h"
#include "rlx/backend/cpu/kernels/unary.h"

namespace rlx::bench {
namespace {

using namespace cpu;

float* floats(AlignedBytes& memory, int64_t n) {
  memory = allocate_aligned(size_t(n) * 4);
  float* p = reinterpret_cast<float*>(memory.get());
  for (int64_t i = 0; i < n; ++i) p[i] = float(i % 97) * 0.01f - 0.5f;
  return p;
}

// The peer is a streaming copy that moves as many bytes, in turn with the kernel: its ratio holds on a
// machine that others use, where the limit, taken once, does not.
template <class Body>
void bench(int argc, char** argv, const std::string& name, double bytes, const std::string& goal, Body body) {
  if (!wanted(argc, argv, name)) return;
  static AlignedBytes from, to;
  static const int64_t most = int64_t(1) << 25;
  if (from == nullptr) floats(from, most), floats(to, most);
  const int64_t n = int64_t(bytes / 8);
  const auto copy = [&] {
    strided_copy(
        Team(default_pool()),
        {.rank = 1, .size = {n}, .from_stride = {1}, .to_stride = {1}, .from = from.get(), .to = to.get()});
  };
  const std::vector<double> t = interleaved({body, copy});
  report({.name = name,
          .value = bytes * 1e-9 / t[0],
          .unit = "GB/s",
          .limit = limits().copy_gbs,
          .peer = bytes * 1e-9 / t[1],
          .peer_name = "copy",
          .goal = goal});
}

}  // namespace
}  // namespace rlx::bench

int main(int argc, char** argv) {
  using namespace rlx;
  using namespace rlx::bench;
  using namespace rlx::cpu;
  const Team team(default_pool());
  AlignedBytes m1, m2, m3, m4;
  const int64_t big = int64_t(1) << 24, rows = 4096, n = 1024;
  float *x = floats(m1, big), *y = floats(m2, big), *w = floats(m3, big), *b = floats(m4, big);
  const double moved = 8.0 * rows * n;
  bench::bench(argc, argv, "layer_norm 4096x1024", moved, ">= 85 %", [&] {
    norm(team, {.rows = rows, .n = n, .x = x, .x_stride = n, .gamma = w, .beta = b, .y = y, .y_stride = n});
  });
  bench::bench(argc, argv, "rms_norm 4096x1024", moved, ">= 85 %", [&] {
    norm(team, {.kind = NormKind::rms,
                .rows = rows,
                .n = n,
                .x = x,
                .x_stride = n,
                .gamma = w,
                .y = y,
                .y_stride = n});
  });
  bench::bench(argc, argv, "softmax 4096x1024", moved, ">= 85 %",
               [&] { softmax(team, {.rows = rows, .n = n, .x = x, .x_stride = n, .y = y, .y_stride = n}); });
  bench::bench(argc, argv, "transpose 4096x4096", 8.0 * big, ">= 60 %", [&] {
    strided_copy(team, {.rank = 2,
                        .size = {4096, 4096},
                        .from_stride = {4096, 1},
                        .to_stride = {1, 4096},
                        .from = x,
                        .to = y});
  });
  bench::bench(argc, argv, "gelu_affine 16M", 16.0 * big, ">= 85 %",
               [&] { unary_affine(team, Unary::gelu_tanh, x, w, b, y, big); });
  bench::bench(argc, argv, "gelu_erf 16M", 8.0 * big, "", [&] { unary(team, Unary::gelu, x, y, big); });
  bench::bench(argc, argv, "exp 16M", 8.0 * big, "", [&] { unary(team, Unary::exp, x, y, big); });
}
