// Running sums and products of long lines: a block for each, tile by tile. Every thread runs along a few neighbours, what the threads
// before it found is summed by doubling steps, and what the tiles before found is carried on; always in the same order. Before it
// stand T, Wide, WIDEN, combined, write, kNothing (0 or 1), kReverse and kExclusive.
#pragma once

namespace rlx::cuda {

inline constexpr char kRunningKernel[] = R"cuda(
extern "C" __global__ void __launch_bounds__(256) running(const T* x, T* y, i64 length, i64 inner) {
  constexpr int kEach = 8;
  __shared__ Wide sums[256];
  const i64 base = i64(blockIdx.x) / inner * length * inner + i64(blockIdx.x) % inner;
  const auto place = [&](i64 step) { return base + (kReverse ? length - 1 - step : step) * inner; };
  const int thread = int(threadIdx.x);
  Wide carried = {kNothing};
  for (i64 tile = 0; tile < length; tile += 256 * kEach) {
    const i64 first = tile + thread * kEach;
    Wide own[kEach + 1] = {{kNothing}};
    #pragma unroll
    for (int u = 0; u < kEach; ++u)
      own[u + 1] = first + u < length ? combined(own[u], WIDEN(x[place(first + u)])) : own[u];
    sums[thread] = own[kEach];
    __syncthreads();
    for (int o = 1; o < 256; o *= 2) {
      const Wide now = thread >= o ? combined(sums[thread - o], sums[thread]) : sums[thread];
      __syncthreads();
      sums[thread] = now;
      __syncthreads();
    }
    const Wide before = thread > 0 ? combined(carried, sums[thread - 1]) : carried;
    #pragma unroll
    for (int u = 0; u < kEach; ++u) {
      if (first + u < length) write(y[place(first + u)], combined(before, own[u + (kExclusive ? 0 : 1)]));
    }
    carried = combined(carried, sums[255]);
    __syncthreads();
  }
}
)cuda";

}  // namespace rlx::cuda
