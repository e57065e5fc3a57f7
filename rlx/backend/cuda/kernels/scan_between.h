// A loop whose step is elementwise operators in front of a product of its state with a square matrix, as gradients of recurrent nets have it: d = f(d, ..) w^T. As
// kernels/scan_product.h, but a block writes into the shared memory of both what it made in front of the product, and both wait once a step between that and the
// product. What is read in one step lies in the place that the step after the next writes, so no second wait is needed. Before it stand kWidth, kLength, kReverse,
// Params, start_of, finish, Slices and slices_at as there, and
//   f32 weight_at(p, k, column)                                        the matrix
//   struct Made;                                                       what is made in front
//   f32 in_front(p, t, e, before, made, slices, write)                 what is multiplied
//   f32 next_state(p, t, e, product, before, made, slices, write)      the new state
#pragma once

namespace rlx::cuda {

inline constexpr char kScanBetween[] = R"cuda(
extern "C" __global__ void __cluster_dims__(2, 1, 1) __launch_bounds__(512, 1) scan_between(Params p) {
  __shared__ f32 left[2][4 * kDepth];
  const int rank = blockIdx.x % 2, row = blockIdx.x / 2, part = threadIdx.x % 4, column = rank * kHalf + threadIdx.x / 4;
  const bool mine = threadIdx.x / 4 < kHalf && column < kWidth;
  const i64 e = i64(row) * kWidth + (mine ? column : 0);
  f32 w[kDepth];
  #pragma unroll
  for (int i = 0; i < kDepth; ++i) w[i] = mine && i * 4 + part < kWidth ? weight_at(p, i * 4 + part, column) : 0.0f;
  for (int i = threadIdx.x; i < 8 * kDepth; i += 512) left[i / (4 * kDepth)][i % (4 * kDepth)] = 0.0f;  // behind the last column it stays so
  join_cluster();
  const auto time_of = [](int step) { return kReverse ? kLength - 1 - step : step; };
  Slices now = slices_at(p, time_of(0), e);
  f32 state = start_of(p, e);
  for (int step = 0; step < kLength; ++step) {
    const Slices next = slices_at(p, time_of(step + 1 < kLength ? step + 1 : step), e);
    Made made;
    const f32 x = in_front(p, time_of(step), e, state, made, now, mine && part == 2);
    if (mine && part < 2) store_in_block(&left[step % 2][column], part, x);
    join_cluster();
    const f32* const multiplied = left[step % 2];
    f32 acc[4] = {};
    #pragma unroll
    for (int i = 0; i < kDepth; ++i) acc[i % 4] = fmaf(w[i], multiplied[i * 4 + part], acc[i % 4]);
    f32 sum = (acc[0] + acc[1]) + (acc[2] + acc[3]);
    sum += __shfl_xor_sync(~0u, sum, 1);
    sum += __shfl_xor_sync(~0u, sum, 2);
    state = next_state(p, time_of(step), e, sum, state, made, now, mine && part == 2);
    now = next;
  }
  if (mine && part == 0) finish(p, e, state);
}
)cuda";

}  // namespace rlx::cuda
