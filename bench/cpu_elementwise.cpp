// Elementwise functions, reductions, running sums and copies against the bandwidth of memory.
#include <vector>

#include "bench/bench.h"
#include "rlx/backend/cpu/kernels/binary.h"
#include "rlx/backend/cpu/kernels/copy.h"
#include "rlx/backend/cpu/kernels/cumulative.h"
#include "rlx/backend/cpu/kernels/gemm.h"
#include "rlx/backend/cpu/kernels/reduce.h"
#include "rlx/backend/cpu/kernels/unary.h"

namespace rlx::bench {
namespace {

using namespace cpu;

template <class Body>
void measure(int argc, char** argv, const std::string& name, double bytes, bool writes, Body body) {
  if (!wanted(argc, argv, name)) return;
  const double t = interleaved({body})[0];
  report({.name = name,
          .value = bytes * 1e-9 / t,
          .unit = "GB/s",
          .limit = writes ? limits().copy_gbs : limits().read_gbs});
}

}  // namespace
}  // namespace rlx::bench

int main(int argc, char** argv) {
  using namespace rlx;
  using namespace rlx::bench;
  using namespace rlx::cpu;
  const Team team(default_pool());
  const int64_t n = int64_t(1) << 24;
  AlignedBytes m1 = allocate_aligned(size_t(n) * 8), m2 = allocate_aligned(size_t(n) * 8),
               m3 = allocate_aligned(size_t(n) * 8);
  auto* x = reinterpret_cast<double*>(m1.get());
  auto* y = reinterpret_cast<double*>(m2.get());
  auto* z = reinterpret_cast<double*>(m3.get());
  for (int64_t i = 0; i < n; ++i) x[i] = double(i % 97) * 0.01 + 0.5, y[i] = x[i], z[i] = 0;
  const int64_t half = n / 2;
  for (Unary op : {Unary::exp, Unary::log, Unary::sin, Unary::tanh, Unary::gelu}) {
    measure(argc, argv, "f64 " + std::string(unary_name(op)) + " 8M", 16.0 * double(half), true,
            [&] { unary(team, op, x, z, half); });
  }
  measure(argc, argv, "f64 pow 8M", 24.0 * double(half), true, [&] { power(team, x, y, z, half); });
  for (int64_t i = 0; i < 2 * n; ++i) reinterpret_cast<float*>(x)[i] = float(i % 97) * 0.01f - 0.4f;
  const Broadcast same{.rank = 1, .size = {n}, .strides = {{1}, {1}}};
  const Broadcast row{.rank = 2, .size = {n / 1024, 1024}, .strides = {{1024, 1}, {0, 1}}};
  measure(argc, argv, "binary add f32 16M", 12.0 * double(n), true,
          [&] { binary(team, {.op = Binary::add, .box = same, .a = x, .b = y, .y = z}); });
  measure(argc, argv, "binary add a row f32 16M", 8.0 * double(n), true,
          [&] { binary(team, {.op = Binary::add, .box = row, .a = x, .b = y, .y = z}); });
  std::vector<std::byte> workspace(size_t(1) << 20);
  const auto reduction = [&](const std::string& name, Reduction kind, Reduce p) {
    p.kind = kind, p.x = x, p.y = z;
    measure(argc, argv, name, 4.0 * double(n), false, [&, p] { reduce(team, p, workspace.data()); });
  };
  const Reduce rows{.rank = 2, .size = {4096, 4096}, .stride = {4096, 1}, .reduced = {false, true}};
  const Reduce columns{.rank = 2, .size = {4096, 4096}, .stride = {4096, 1}, .reduced = {true, false}};
  const Reduce middle{.rank = 4,
                      .size = {16, 16, 256, 256},
                      .stride = {1048576, 65536, 256, 1},
                      .reduced = {true, false, true, true}};
  reduction("reduce sum of rows 4096x4096", Reduction::sum, rows);
  reduction("reduce sum of columns 4096x4096", Reduction::sum, columns);
  reduction("reduce variance over axes 0, 2, 3 of 16x16x256x256", Reduction::variance, middle);
  reduction("reduce log_sum_exp of rows 4096x4096", Reduction::log_sum_exp, rows);
  measure(argc, argv, "argmax of rows 4096x4096", 4.0 * double(n), false,
          [&] { arg_extreme(team, {.outer = 4096, .n = 4096, .x = x, .y = reinterpret_cast<int64_t*>(z)}); });
  measure(argc, argv, "cumsum along rows 4096x4096", 8.0 * double(n), true,
          [&] { cumulative(team, {.outer = 4096, .n = 4096, .x = x, .y = z}); });
  measure(argc, argv, "cumsum along columns 4096x4096", 8.0 * double(n), true,
          [&] { cumulative(team, {.n = 4096, .inner = 4096, .x = x, .y = z}); });
  for (int bytes : {1, 2, 8, 16}) {
    const int64_t side = bytes == 16 ? 2048 : 4096;
    measure(argc, argv, "transpose of " + std::to_string(bytes) + "-byte elements",
            2.0 * double(side * side * bytes), true, [&, bytes, side] {
              strided_copy(team, {.rank = 2,
                                  .size = {side, side},
                                  .from_stride = {side, 1},
                                  .to_stride = {1, side},
                                  .element_bytes = bytes,
                                  .from = x,
                                  .to = z});
            });
  }
  measure(argc, argv, "permute 0213 of 8x512x16x64 f32", 8.0 * double(n / 4), true, [&] {
    strided_copy(team, {.rank = 4,
                        .size = {8, 16, 512, 64},
                        .from_stride = {524288, 64, 1024, 1},
                        .to_stride = {524288, 32768, 64, 1},
                        .from = x,
                        .to = z});
  });
  measure(argc, argv, "flip of rows 4096x4096 f32", 8.0 * double(n), true, [&] {
    strided_copy(team, {.rank = 2,
                        .size = {4096, 4096},
                        .from_stride = {4096, -1},
                        .to_stride = {4096, 1},
                        .from = reinterpret_cast<float*>(x) + 4095,
                        .to = z});
  });
  measure(argc, argv, "copy 64 MiB", 8.0 * double(n), true, [&] {
    strided_copy(team, {.rank = 1, .size = {n}, .from_stride = {1}, .to_stride = {1}, .from = x, .to = z});
  });
}
