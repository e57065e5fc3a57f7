// Convolution in f16 or bf16 on the matrix units of Hopper, sums in f32: each group of four warps multiplies 64 channels with 128 positions straight from shared memory, while its threads
// bring the next slice. kWarpM is 64 and kN 128. Limit: for 64 channels the way to shared memory, for 128 the matrix units. After kMatrixGroups and kConvSlices.
#pragma once

namespace rlx::cuda {

inline constexpr char kConvGroups[] = R"cuda(
extern "C" __global__ void __launch_bounds__(kThreads, kBlocks) conv_groups(const T* x, const T* w, Params y, f32* parts) {
  begin_alone();  // docs/performance/cuda.md: the next kernel must not meet the units of groups of warps
  extern __shared__ uint4 shared[];
  __shared__ Place places[kAlong ? kN : 1];
  const u32 base = (place_of(shared) + 1023) & ~1023u, team = threadIdx.x / 128;
  Slices slices(x, w, places);
  slices.bring_first(base);
  f32 sums[1][16][4] = {};
  u32 now = 0;
  const u32 last = slices.last();
  #pragma unroll 1
  for (u32 slice = slices.first(); slice < last; ++slice) {
    arrived<0>();
    async_sees_shared();
    __syncthreads();  // the slice is there for all, and nobody reads the other place any more
    const u32 here = base + now * kPlaceBytes, next = base + (now ^ 1) * kPlaceBytes;
    hold(sums[0]);
    products_begin();
    #pragma unroll
    for (u32 s = 0; s < 4; ++s) multiply128(sums[0], tile_at(here + team * 8192 + s * 32), tile_at(here + kM * 128 + s * 32), 1, T{});
    products_commit();
    if (slice + 1 < last) {
      slices.begin_slice(slice + 1, next);
      commit();
      #pragma unroll
      for (u32 f = 0; f < kPhases; ++f) {
        slices.read(slice + 1, f);
        slices.keep(next + kM * 128, f);
      }
    }
    products_wait<0>();
    hold(sums[0]);
    now ^= 1;
  }
  slices.write(sums, team * 64 + threadIdx.x / 32 % 4 * 16, 0, y, parts, shared);
}
)cuda";

}  // namespace rlx::cuda
