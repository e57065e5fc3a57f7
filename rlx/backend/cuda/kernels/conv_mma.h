// Convolution in f16 or bf16 on matrix units, sums in f32, on any card: a warp multiplies kWarpM channels with 32 positions, its operands loaded from shared memory. With 64 x 32 a warp loads
// 96 rows for 16 products of 16 x 16 x 8 a step; the way to shared memory is the limit. After kConvSlices.
#pragma once

namespace rlx::cuda {

inline constexpr char kConvMma[] = R"cuda(
extern "C" __global__ void __launch_bounds__(kThreads, kBlocks) conv_mma(const T* x, const T* w, Params y, f32* parts) {
  extern __shared__ uint4 shared[];
  __shared__ Place places[kAlong ? kN : 1];
  const u32 base = u32(__cvta_generic_to_shared(shared)), lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  constexpr int kTall = kWarpM / 16, kSteps = 4 / kPhases;
  const u32 row0 = warp / (kN / 32) * kWarpM, column0 = warp % (kN / 32) * 32;
  Slices slices(x, w, places);
  slices.bring_first(base);
  f32 sums[kTall][4][4] = {};
  u32 now = 0;
  const u32 last = slices.last();
  #pragma unroll 1
  for (u32 slice = slices.first(); slice < last; ++slice) {
    arrived<0>();
    __syncthreads();  // the slice is there for all, and nobody reads the other place any more
    const u32 here = base + now * kPlaceBytes, next = base + (now ^ 1) * kPlaceBytes;
    const bool more = slice + 1 < last;
    if (more) slices.begin_slice(slice + 1, next);
    commit();
    #pragma unroll
    for (u32 f = 0; f < kPhases; ++f) {
      if (more) slices.read(slice + 1, f);
      #pragma unroll
      for (u32 s = f * kSteps; s < (f + 1) * kSteps; ++s) {
        u32 b[4][2];
        #pragma unroll
        for (u32 j = 0; j < 4; j += 2) {
          u32 both[4];
          load4(both, here + kM * 128 + piece_at(column0 + j * 8 + lane / 16 * 8 + lane % 8, s * 2 + lane / 8 % 2));
          b[j][0] = both[0], b[j][1] = both[1], b[j + 1][0] = both[2], b[j + 1][1] = both[3];
        }
        #pragma unroll
        for (u32 i = 0; i < kTall; ++i) {
          u32 a[4];
          load4(a, here + piece_at(row0 + i * 16 + lane % 16, s * 2 + lane / 16));
          #pragma unroll
          for (u32 j = 0; j < 4; ++j) multiply(sums[i][j], a, b[j][0], b[j][1], T{});
        }
      }
      if (more) slices.keep(next + kM * 128, f);
    }
    now ^= 1;
  }
  slices.write(sums, row0, column0, y, parts, shared);
}
)cuda";

}  // namespace rlx::cuda
