// What stands before and behind the products of a convolution: weights in the order in which tiles read them, and sums over parts of the terms.
// After kConvPlaces; before it stand the types T and Acc and kRows, the output channels of a group filled up to whole tiles.
#pragma once

namespace rlx::cuda {

// w as [group][kRows][kSlices kSlice] or, kTurned, [group][kSlices kSlice][kRows], with zeros where nothing is. Tiles of 32 x 32 are turned in shared memory.
inline constexpr char kConvPack[] = R"cuda(
extern "C" __global__ void __launch_bounds__(256) conv_pack(const T* w, T* to) {
  constexpr u32 kAll = kSlices * kSlice;
  __shared__ T tile[32][33];
  const u32 lane = threadIdx.x % 32, line = threadIdx.x / 32, k0 = blockIdx.x * 32, m0 = blockIdx.y * 32, group = blockIdx.z;
  const u32 k = k0 + lane;
  const Term t = term_of(k);
  const int at = t.there ? weight_at(t) : 0;
  to += i64(group) * kAll * kRows;
  #pragma unroll
  for (u32 i = line; i < 32; i += 8) {
    const u32 m = m0 + i;
    T v{};
    if (t.there && m < kOutputs) v = w[int(group * kOutputs + m) * kWsOuter + at];
    if (kTurned) tile[lane][i] = v;
    else if (k < kAll && m < kRows) to[i64(m) * kAll + k] = v;
  }
  if (!kTurned) return;
  __syncthreads();
  #pragma unroll
  for (u32 i = line; i < 32; i += 8) {
    if (k0 + i < kAll && m0 + lane < kRows) to[i64(k0 + i) * kRows + m0 + lane] = tile[i][lane];
  }
}
)cuda";

// y from parts [kSplits][group][output][column], added in this order.
inline constexpr char kConvSum[] = R"cuda(
extern "C" __global__ void __launch_bounds__(256) conv_sum(const Acc* parts, Params y) {
  constexpr i64 kAll = i64(kGroups) * kOutputs * kColumns;
  const i64 e = i64(blockIdx.x) * 256 + threadIdx.x;
  if (e >= kAll || !is_column(u32(e % kColumns))) return;
  Acc sum = 0;
  #pragma unroll 8
  for (int s = 0; s < kSplits; ++s) sum += parts[s * kAll + e];
  finish(y, result_at(position_of(u32(e % kColumns))) + e / kColumns * kYsChannel, sum);
}
)cuda";

}  // namespace rlx::cuda
