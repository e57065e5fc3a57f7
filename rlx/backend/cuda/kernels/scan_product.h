// A loop whose step is one product of its state with a square matrix and elementwise operators behind it, as recurrent nets have it: h = f(h w, ..). Two
// blocks have a row of the state for the whole loop, half of the columns each; the matrix stays in registers, four threads a column, and each block
// writes what it finds into the shared memory of both. Before it stand kWidth (columns), kLength, kReverse, and
//   struct Params;                                              addresses
//   const f32* weights_of(p)                                    the matrix
//   f32 start_of(p, e), void finish(p, e, h)                    element e of the state before and behind the loop
//   struct Slices { .. };  Slices slices_at(p, t, e)            what the step at time t reads of slices
//   f32 next_state(p, t, e, product, before, slices, write)     the new state; results of the step are written where `write` says so
#pragma once

namespace rlx::cuda {

inline constexpr char kScanProduct[] = R"cuda(
extern "C" __global__ void __cluster_dims__(2, 1, 1) __launch_bounds__(512, 1) scan_product(Params p) {
  __shared__ f32 h[2][4 * kDepth];
  const int rank = blockIdx.x % 2, row = blockIdx.x / 2, part = threadIdx.x % 4, column = rank * kHalf + threadIdx.x / 4;
  const bool mine = threadIdx.x / 4 < kHalf && column < kWidth;
  const i64 e = i64(row) * kWidth + (mine ? column : 0);
  f32 w[kDepth];
  #pragma unroll
  for (int i = 0; i < kDepth; ++i) w[i] = mine && i * 4 + part < kWidth ? (weights_of(p)[i64(i * 4 + part) * kWidth + column]) : 0.0f;
  for (int i = threadIdx.x; i < 8 * kDepth; i += 512) {
    const int c = i % (4 * kDepth);
    h[i / (4 * kDepth)][c] = c < kWidth ? start_of(p, i64(row) * kWidth + c) : 0.0f;
  }
  join_cluster();
  const auto time_of = [](int step) { return kReverse ? kLength - 1 - step : step; };
  Slices now = slices_at(p, time_of(0), e);
  f32 state = start_of(p, e);
  for (int step = 0; step < kLength; ++step) {
    const Slices next = slices_at(p, time_of(step + 1 < kLength ? step + 1 : step), e);
    const f32* const before = h[step % 2];
    f32 acc[4] = {};
    #pragma unroll
    for (int i = 0; i < kDepth; ++i) acc[i % 4] = fmaf(w[i], before[i * 4 + part], acc[i % 4]);
    f32 sum = (acc[0] + acc[1]) + (acc[2] + acc[3]);
    sum += __shfl_xor_sync(~0u, sum, 1);
    sum += __shfl_xor_sync(~0u, sum, 2);
    state = next_state(p, time_of(step), e, sum, state, now, mine && part == 2);
    if (mine && part < 2) store_in_block(&h[(step + 1) % 2][column], part, state);
    now = next;
    join_cluster();
  }
  if (mine && part == 0) finish(p, e, state);
}
)cuda";

}  // namespace rlx::cuda
