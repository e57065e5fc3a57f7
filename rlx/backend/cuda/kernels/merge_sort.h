// Lines of any length in order: tiles of kTile elements are sorted in shared memory (kernels/sort.h, whose order this shares), then runs
// are merged in pairs, twice as long in each pass. Of equal elements those of the left run come first, so that the order is the
// stable one. A block makes kTile neighbours of the result: it finds, by bisection along a diagonal, how many of them come from
// either run (all of the first k of a merge are known to come from a prefix of each), brings both parts to shared memory,
// and every thread merges a few. Before it stand X, Wide, WIDEN, kTile, kThreads, kLast (whether the pass writes the results) and first(a, b):
// whether value a comes before b.
#pragma once

namespace rlx::cuda {

inline constexpr char kMergeKernel[] = R"cuda(
// How many of the first `count` of a merge come from the left: the least number a with left[a] behind right[count - a - 1].
template <class Left, class Right> i64 from_left(i64 count, i64 lefts, i64 rights, Left left, Right right) {
  i64 low = count > rights ? count - rights : 0, high = count < lefts ? count : lefts;
  while (low < high) {
    const i64 a = (low + high) / 2;
    if (first(right(count - a - 1), left(a))) high = a; else low = a + 1;
  }
  return low;
}

// Line by line in `x` and `places`; runs of `run` elements become runs of twice as many. The last pass writes with the stride of the axis.
extern "C" __global__ void __launch_bounds__(kThreads)
merge_runs(const X* x, const i32* places, X* y, i32* where, i64 length, i64 inner, i64 run) {
  constexpr int kEach = kTile / kThreads;
  __shared__ X values[kTile];
  __shared__ i32 from[kTile];
  const i64 tiles = (length + kTile - 1) / kTile, line = i64(blockIdx.x) / tiles, at = i64(blockIdx.x) % tiles * kTile;
  x += line * length;
  places += line * length;
  const i64 begin = at / (2 * run) * (2 * run), middle = begin + run < length ? begin + run : length;
  const i64 end = begin + 2 * run < length ? begin + 2 * run : length;
  const i64 lefts = middle - begin, rights = end - middle;
  const auto left = [&](i64 i) { return WIDEN(x[begin + i]); };
  const auto right = [&](i64 i) { return WIDEN(x[middle + i]); };
  const i64 behind = at + kTile < end ? at + kTile : end;
  __shared__ i64 cut[2];
  if (threadIdx.x < 2) cut[threadIdx.x] = from_left(threadIdx.x ? behind - begin : at - begin, lefts, rights, left, right);
  __syncthreads();
  const i64 left0 = cut[0], right0 = at - begin - left0;
  const int own_lefts = int(cut[1] - left0), count = int(behind - at), own_rights = count - own_lefts;
  for (int i = threadIdx.x; i < count; i += kThreads) {
    const i64 e = i < own_lefts ? begin + left0 + i : middle + right0 + (i - own_lefts);
    values[i] = x[e];
    from[i] = places[e];
  }
  __syncthreads();
  const auto own_left = [&](i64 i) { return WIDEN(values[i]); };
  const auto own_right = [&](i64 i) { return WIDEN(values[own_lefts + i]); };
  const int mine = int(threadIdx.x) * kEach;
  if (mine >= count) return;
  int a = int(from_left(mine, own_lefts, own_rights, own_left, own_right)), b = mine - a;
  for (int k = mine; k < mine + kEach && k < count; ++k) {
    const bool take_right = a >= own_lefts || (b < own_rights && first(own_right(b), own_left(a)));
    const int e = take_right ? own_lefts + b++ : a++;
    const i64 to = kLast ? line / inner * length * inner + line % inner + (at + k) * inner : line * length + at + k;
    y[to] = values[e];
    where[to] = from[e];
  }
}
)cuda";

}  // namespace rlx::cuda
