// Tiles of up to kSize elements of a line in order, in shared memory: a bitonic network over (value, place). Places
// make all keys different, so that the order is the stable one. Before it stand X, Wide, WIDEN, kSize (a
// power of two), kThreads, kRuns (whether results lie line by line, for merges) and first(a, b): whether value a comes before b.
#pragma once

namespace rlx::cuda {

inline constexpr char kSortKernel[] = R"cuda(
extern "C" __global__ void __launch_bounds__(kThreads)
sort(const X* x, X* y, i32* where, i64 whole, i64 inner) {
  __shared__ Wide values[kSize];
  __shared__ i32 places[kSize];
  const i64 tiles = (whole + kSize - 1) / kSize, line = i64(blockIdx.x) / tiles, offset = i64(blockIdx.x) % tiles * kSize;
  const i64 length = whole - offset < kSize ? whole - offset : kSize;
  const i64 base = line / inner * whole * inner + line % inner + offset * inner;
  for (int k = threadIdx.x; k < kSize; k += kThreads) {
    values[k] = k < length ? WIDEN(x[base + k * inner]) : Wide(0);
    places[k] = k;
  }
  __syncthreads();
  // What lies behind the line comes last, whatever its value.
  const auto before = [&](int a, int b) {
    const bool a_in = places[a] < length, b_in = places[b] < length;
    if (a_in != b_in) return a_in;
    if (a_in && first(values[a], values[b])) return true;
    if (a_in && first(values[b], values[a])) return false;
    return places[a] < places[b];
  };
  for (int run = 2; run <= kSize; run *= 2) {
    for (int gap = run / 2; gap > 0; gap /= 2) {
      for (int k = threadIdx.x; k < kSize / 2; k += kThreads) {
        const int a = k / gap * 2 * gap + k % gap, b = a + gap;
        const bool up = (a & run) == 0;
        if (up ? before(b, a) : before(a, b)) {
          const Wide v = values[a];
          const i32 p = places[a];
          values[a] = values[b], places[a] = places[b];
          values[b] = v, places[b] = p;
        }
      }
      __syncthreads();
    }
  }
  for (int k = threadIdx.x; k < length; k += kThreads) {
    const i64 to = kRuns ? line * whole + offset + k : base + k * inner;
    y[to] = x[base + places[k] * inner];
    where[to] = i32(offset) + places[k];
  }
}
)cuda";

}  // namespace rlx::cuda
