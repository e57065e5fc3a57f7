// Updates that are sorted by the row they go to, in the order in which they came: those of a row are neighbours. Before it stand T, Index,
// Wide, kUpdates, kRows, kInner, kClamp, read, combined, write, and kStart: what nothing is, such as 0 of a sum.
#pragma once

namespace rlx::cuda {

inline constexpr char kScatterRowNumbers[] = R"cuda(
// The row of each update; those out of range are told and come last, behind all rows.
extern "C" __global__ void __launch_bounds__(256) scatter_rows_of(const Index* indices, i32* rows, i64 count, u64* fault, u64 number) {
  const i64 e = i64(blockIdx.x) * 256 + threadIdx.x;
  if (e >= count) return;
  i64 row = i64(indices[e]);
  if (kClamp) row = row < 0 ? 0 : row >= kRows ? kRows - 1 : row;
  if (row < 0 || row >= kRows) *fault = (number << 40) + u64(e), row = kRows;
  rows[e] = i32(row);
}
)cuda";

inline constexpr char kScatterStarts[] = R"cuda(
// Where the updates of each row begin; one more for the end of the last.
extern "C" __global__ void __launch_bounds__(256) scatter_starts(const i32* sorted, i32* starts, i64 batches) {
  const i64 e = i64(blockIdx.x) * 256 + threadIdx.x;
  if (e >= batches * (kRows + 1)) return;
  const i64 batch = e / (kRows + 1), row = e % (kRows + 1);
  const i32* const rows = sorted + batch * kUpdates;
  i64 low = 0, high = kUpdates;
  while (low < high) {
    const i64 middle = (low + high) / 2;
    if (rows[middle] < row) low = middle + 1; else high = middle;
  }
  starts[e] = i32(low);
}
)cuda";

inline constexpr char kScatterSums[] = R"cuda(
// kLanes threads for each element of the result take turns at its updates; what they found is joined in a fixed order.
extern "C" __global__ void __launch_bounds__(256)
scatter_sorted(const T* base, const T* updates, const i32* order, const i32* starts, T* y, i64 count) {
  constexpr int kElements = 256 / kLanes;
  __shared__ Wide parts[kLanes > 1 ? 256 : 1];
  const int lane = threadIdx.x % kLanes;
  const i64 given = i64(blockIdx.x) * kElements + threadIdx.x / kLanes, e = given < count ? given : count - 1;
  const i64 column = e % kInner, row = e / kInner % kRows, batch = e / kInner / kRows;
  const i32* const places = order + batch * kUpdates;
  const T* const column_updates = updates + batch * kUpdates * kInner + column;
  const i64 first = starts[batch * (kRows + 1) + row], behind = starts[batch * (kRows + 1) + row + 1];
  Wide all = kStart;
  #pragma unroll 4
  for (i64 k = first + lane; k < behind; k += kLanes) all = combined(all, read(column_updates[i64(places[k]) * kInner]));
  if (kLanes > 1) {
    parts[threadIdx.x] = all;
    #pragma unroll
    for (int o = kLanes / 2; o > 0; o >>= 1) {
      __syncthreads();
      if (lane < o) parts[threadIdx.x] = combined(parts[threadIdx.x], parts[threadIdx.x + o]);
    }
    all = parts[threadIdx.x];
  }
  if (lane != 0 || given >= count) return;
  if (first < behind) write(y[e], combined(read(base[e]), all));
  else if (base != y) y[e] = base[e];
}
)cuda";

// The last update of a row is the one that stays.
inline constexpr char kScatterLast[] = R"cuda(
extern "C" __global__ void __launch_bounds__(256)
scatter_sorted(const T* base, const T* updates, const i32* order, const i32* starts, T* y, i64 count) {
  const i64 e = i64(blockIdx.x) * 256 + threadIdx.x;
  if (e >= count) return;
  const i64 column = e % kInner, row = e / kInner % kRows, batch = e / kInner / kRows;
  const i64 first = starts[batch * (kRows + 1) + row], behind = starts[batch * (kRows + 1) + row + 1];
  if (first < behind) y[e] = updates[(batch * kUpdates + order[batch * kUpdates + behind - 1]) * kInner + column];
  else if (base != y) y[e] = base[e];
}
)cuda";

}  // namespace rlx::cuda
