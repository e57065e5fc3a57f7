// What conv_rings.h reads, made in one launch: the first kTurnBlocks blocks turn x, the others bring w into the order of the rings. Limit: bytes of memory.
//   x with other neighbours: [outer][image][inner], inner = channels for a convolution, images for the gradient in its weights, filled up with zeros to a multiple of 8, so that 8 of them are
//   16 bytes wherever a tap moves them. A block turns kTileInner x kTileFlat elements in shared memory
//   w as [group][kRows / kTileM][kSlices][kTileM][64], pieces of 8 elements as conv_pieces.h tells, zeros where nothing is. A block has kPackM rows (8) and kPackTerms terms that are neighbours in w:
//   64 channels of all taps (kChunk), or 64 terms
// After kConvPlaces; before it stand also T, kRows, kTileM, kPackTaps (taps of a block: all or 1), kRowsFirst (rows of w are nearer in memory than channels), kTurnBlocks, kTurnWide, kTurnTall, kInner, kOuter, kInnerStride, kOuterStride (of x), kInnerPadded, kTileInner, kTileFlat and
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

inline void turn_block(const T* x, T* to, u32 block, u16* tile) {
  const u32 flat0 = block % kTurnWide * kTileFlat, inner0 = block / kTurnWide % kTurnTall * kTileInner, outer = block / (kTurnWide * kTurnTall);
  x += kXsFirst + i64(outer) * kOuterStride;
  if (kWide > 1 && reinterpret_cast<u64>(x) % (2 * kWide) == 0) turn_in<kWide>(x, inner0, flat0, tile);
  else turn_in<1>(x, inner0, flat0, tile);
  __syncthreads();
  to += i64(outer) * kFlat * kInnerPadded;
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

constexpr u32 kPackRows = 8, kPackLine = 66, kPackSlices = kSlices / kPackTaps;
inline void pack_block(const T* w, T* to, u32 block, u16* tile) {
  const u32 slice0 = block % kPackSlices * kPackTaps, m0 = block / kPackSlices % (kRows / kPackRows) * kPackRows, group = block / (kPackSlices * (kRows / kPackRows));
  #pragma unroll 4
  for (u32 e = threadIdx.x; e < kPackRows * 64 * kPackTaps; e += 256) {
    const u32 tap = e % kPackTaps, i = e / kPackTaps, row = kRowsFirst ? i % kPackRows : i / 64, k = kRowsFirst ? i / kPackRows : i % 64;
    const Term t = term_of((slice0 + tap) * 64 + k);
    u16 v = 0;
    if (t.there && m0 + row < kOutputs) v = w[int(group * kOutputs + m0 + row) * kWsOuter + weight_at(t)].bits;
    tile[(row * kPackTaps + tap) * kPackLine + k] = v;
  }
  __syncthreads();
  to += (i64(group) * (kRows / kTileM) + m0 / kTileM) * kSlices * (kTileM * 64);
  for (u32 e = threadIdx.x; e < kPackRows * kPackTaps * 8; e += 256) {
    const u32 piece = e % 8, row = e / 8 % kPackRows, tap = e / (8 * kPackRows);
    Pack<u16, 8> v;
    #pragma unroll
    for (u32 u = 0; u < 8; ++u) v.v[u] = tile[(row * kPackTaps + tap) * kPackLine + piece * 8 + u];
    store(reinterpret_cast<u16*>(to) + (i64(slice0 + tap) * kTileM + m0 % kTileM + row) * 64 + (piece ^ row) * 8, v);
  }
}

constexpr u32 kTurnElements = kTileInner * kTileLine, kPackElements = kPackRows * kPackTaps * kPackLine;
extern "C" __global__ void __launch_bounds__(256) conv_turn(const T* x, T* turned, const T* w, T* packed) {
  __shared__ alignas(16) u16 tile[kTurnElements > kPackElements ? kTurnElements : kPackElements];
  if (blockIdx.x < kTurnBlocks) turn_block(x, turned, blockIdx.x, tile);
  else pack_block(w, packed, blockIdx.x - kTurnBlocks, tile);
}
)cuda";

}  // namespace rlx::cuda
