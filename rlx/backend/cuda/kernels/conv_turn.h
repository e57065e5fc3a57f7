// x with other neighbours: [outer][image][inner], inner = channels for a convolution, images for the gradient in its weights, filled up with zeros to a multiple of 8, so that some of them are 16
// bytes wherever a tap moves them. A block turns kTileInner x kTileFlat elements in shared memory. Limit: bytes of memory.
// After kConvPlaces; before it stand also T, Word (unsigned, of its size), kTurnBlocks, kTurnWide (blocks along an image), kTurnTall (along inner), kInner, kInnerPadded, kInnerStride and kOuterStride (of x),
// kTileInner, kTileFlat and
//   kWide   so many elements along an image are neighbours that begin at a multiple of their size from the first address on
#pragma once

namespace rlx::cuda {

inline constexpr char kConvTurn[] = R"cuda(
constexpr u32 kFlat = kX0 * kX1 * kX2, kPiece = 16 / sizeof(Word), kTileLine = kTileFlat + (sizeof(Word) == 2 ? 2 : 1), kTurnElements = kTileInner * kTileLine;

inline int in_image(u32 e) { return int(e % kX2) * kXs2 + int(e / kX2 % kX1) * kXs1 + int(e / (kX2 * kX1)) * kXs0; }

template <u32 kEach> void turn_in(const Word* x, u32 inner0, u32 flat0, Word* tile) {
  constexpr u32 kPieces = kTileFlat / kEach;
  #pragma unroll
  for (u32 e = threadIdx.x; e < kTileInner * kPieces; e += 256) {
    const u32 i = e / kPieces, at = e % kPieces * kEach;
    Pack<Word, int(kEach)> v{};
    if (inner0 + i < kInner && flat0 + at < kFlat) v = load<int(kEach)>(x + int(inner0 + i) * kInnerStride + in_image(flat0 + at));
    constexpr u32 kTwo = sizeof(Word) == 2 && kEach > 1 ? 2 : 1;
    #pragma unroll
    for (u32 u = 0; u < kEach; u += kTwo) {
      Word* const to = tile + i * kTileLine + at + u;
      if (kTwo == 2) *reinterpret_cast<u32*>(to) = u32(v.v[u]) | u32(v.v[u + kTwo - 1]) << 16;
      else *to = v.v[u];
    }
  }
}

inline void turn_block(const T* x, T* to, u32 block, Word* tile) {
  const u32 flat0 = block % kTurnWide * kTileFlat, inner0 = block / kTurnWide % kTurnTall * kTileInner, outer = block / (kTurnWide * kTurnTall);
  const Word* const from = reinterpret_cast<const Word*>(x) + kXsFirst + i64(outer) * kOuterStride;
  if (kWide > 1 && reinterpret_cast<u64>(from) % (sizeof(Word) * kWide) == 0) turn_in<kWide>(from, inner0, flat0, tile);
  else turn_in<1>(from, inner0, flat0, tile);
  __syncthreads();
  Word* const out = reinterpret_cast<Word*>(to) + i64(outer) * kFlat * kInnerPadded;
  #pragma unroll
  for (u32 e = threadIdx.x; e < kTileFlat * (kTileInner / kPiece); e += 256) {
    const u32 at = e / (kTileInner / kPiece), piece = e % (kTileInner / kPiece) * kPiece;
    if (flat0 + at >= kFlat || inner0 + piece >= kInnerPadded) continue;
    Pack<Word, int(kPiece)> v;
    #pragma unroll
    for (u32 u = 0; u < kPiece; ++u) v.v[u] = tile[(piece + u) * kTileLine + at];
    store(out + i64(flat0 + at) * kInnerPadded + inner0 + piece, v);
  }
}
)cuda";

inline constexpr char kConvTurnAlone[] = R"cuda(
extern "C" __global__ void __launch_bounds__(256) conv_turn(const T* x, T* turned) {
  __shared__ alignas(16) Word tile[kTurnElements];
  turn_block(x, turned, blockIdx.x, tile);
}
)cuda";

// For f16 and bf16, and conv_rings.h behind it: the first blocks turn x, the others bring w into the order [group][kRows / kTileM][kSlices][kTileM][64], pieces of 8 elements as conv_pieces.h tells, zeros
// where nothing is. A block has eight rows of w and, of each, 64 channels of all taps (kPackTaps) or 64 terms (kPackTaps is 1), which are neighbours in w where rows are not (kRowsFirst).
// Before it stand also kRows and kTileM.
inline constexpr char kConvTurnAndPack[] = R"cuda(
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

constexpr u32 kPackElements = kPackRows * kPackTaps * kPackLine;
extern "C" __global__ void __launch_bounds__(256) conv_turn(const T* x, T* turned, const T* w, T* packed) {
  __shared__ alignas(16) Word tile[kTurnElements > kPackElements ? kTurnElements : kPackElements];
  if (blockIdx.x < kTurnBlocks) turn_block(x, turned, blockIdx.x, tile);
  else pack_block(w, packed, blockIdx.x - kTurnBlocks, tile);
}
)cuda";

}  // namespace rlx::cuda
