// x with other neighbours: [outer][image][inner], inner = channels for a convolution, images for the gradient in its weights, filled up with zeros to a multiple of 8, so that 8 of them are 16 bytes
// wherever a tap moves them. A block turns kTileInner x kTileFlat elements in shared memory; limit: bytes of memory.
// After kConvPlaces; before it stand also T, kInner, kOuter, kInnerStride, kOuterStride (of x), kInnerPadded, kTileInner, kTileFlat and
//   kWide   so many elements along an image are neighbours that begin at a multiple of their size from the first address on
#pragma once

namespace rlx::cuda {

inline constexpr char kConvTurn[] = R"cuda(
constexpr u32 kFlat = kX0 * kX1 * kX2, kTileLine = kTileFlat + 2;

inline int in_image(u32 e) { return int(e % kX2) * kXs2 + int(e / kX2 % kX1) * kXs1 + int(e / (kX2 * kX1)) * kXs0; }

template <u32 kEach> void turn_in(const T* x, u32 inner0, u32 flat0, u16* tile) {
  constexpr u32 kPieces = kTileFlat / kEach;
  #pragma unroll
  for (u32 e = threadIdx.x; e < kTileInner * kPieces; e += 256) {
    const u32 i = e / kPieces, at = e % kPieces * kEach;
    Pack<T, int(kEach)> v{};
    if (inner0 + i < kInner && flat0 + at < kFlat) v = load<int(kEach)>(x + int(inner0 + i) * kInnerStride + in_image(flat0 + at));
    if (kEach == 1) {
      tile[i * kTileLine + at] = v.v[0].bits;
    } else {
      #pragma unroll
      for (u32 u = 0; u + 1 < kEach; u += 2) *reinterpret_cast<u32*>(tile + i * kTileLine + at + u) = v.v[u].bits | u32(v.v[u + 1].bits) << 16;
    }
  }
}

extern "C" __global__ void __launch_bounds__(256) conv_turn(const T* x, T* to) {
  __shared__ alignas(16) u16 tile[kTileInner * kTileLine];
  const u32 flat0 = blockIdx.x * kTileFlat, inner0 = blockIdx.y * kTileInner;
  x += kXsFirst + i64(blockIdx.z) * kOuterStride;
  if (kWide > 1 && reinterpret_cast<u64>(x) % (2 * kWide) == 0) turn_in<kWide>(x, inner0, flat0, tile);
  else turn_in<1>(x, inner0, flat0, tile);
  __syncthreads();
  to += i64(blockIdx.z) * kFlat * kInnerPadded;
  #pragma unroll
  for (u32 e = threadIdx.x; e < kTileFlat * (kTileInner / 8); e += 256) {
    const u32 at = e / (kTileInner / 8), piece = e % (kTileInner / 8) * 8;
    if (flat0 + at >= kFlat || inner0 + piece >= kInnerPadded) continue;
    Pack<u16, 8> v;
    #pragma unroll
    for (u32 u = 0; u < 8; ++u) v.v[u] = tile[(piece + u) * kTileLine + at];
    store(reinterpret_cast<u16*>(to) + i64(flat0 + at) * kInnerPadded + inner0 + piece, v);
  }
}
)cuda";

}  // namespace rlx::cuda
