// Products of some rows, c [m, n] = a [m, k] w with 5 to 32 rows of a, on the matrix units: as fast as w can be read. A block has 16 kTiles columns; its warps share k, each with
// a ring of places in shared memory of its own, so that nothing but the end waits for others. A place holds a slice of 64 along k: of the columns of w, then of the rows of a.
// Columns of w are the rows of the matrix units. Partial sums are added in the order of the warps.
//   w [n, k]           rows of a place are columns of w, 128 bytes; piece c of 16 bytes of row r lies at piece c ^ (r % 8), as in the rows of a
//   w [k, n] (kTurned) rows of a place are rows of w, 2 kTiles pieces; piece c of row r lies at piece c ^ (r kTiles / 4 % (2 kTiles)): eight rows meet all banks. kTiles is 1, 2 or 4
// After kMatrixFragments; before it stand T (f16 or bf16), kRows (m), kColumns (n), kDepth (k), kTiles, kTurned, kSlots (of a ring), kBlocks (of a processor), kEarly (no kernel before this one makes w),
// kAligned (rows of a and w begin at multiples of 16 bytes), Params and
//   void finish(p, row, column, const f32 (&sums)[1])
#pragma once

namespace rlx::cuda {

inline constexpr char kStreamedTiles[] = R"cuda(
constexpr int kWarps = 4, kTexts = (kRows + 7) / 8 * 8, kWide = 16 * kTiles, kPlace = (kWide + kTexts) * 128, kSlices = (kDepth + 63) / 64;
constexpr int kPairs = kTexts / 8;

// Where a piece of a turned place lies.
inline u32 turned_at(int row, int piece) { return (row * (2 * kTiles) + (piece ^ (row * kTiles / 4 % (2 * kTiles)))) * 16; }

// 16 bytes, or zeros.
inline void copy16(u32 to, const T* from, bool there) {
  if (!kAligned) {
    u32 v[4];
    #pragma unroll
    for (int i = 0; i < 4; ++i) v[i] = there ? from[2 * i].bits | u32(from[2 * i + 1].bits) << 16 : 0;
    asm volatile("st.shared.v4.b32 [%0], {%1,%2,%3,%4};" :: "r"(to), "r"(v[0]), "r"(v[1]), "r"(v[2]), "r"(v[3]) : "memory");
    return;
  }
  asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;" :: "r"(to), "l"(from), "r"(there ? 16 : 0) : "memory");
}

extern "C" __global__ void __launch_bounds__(kWarps * 32, kBlocks)
streamed_tiles(Params p, const T* a, const T* w, i64 a_row, i64 w_row) {
  extern __shared__ uint4 shared[];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, column0 = blockIdx.x * kWide;
  const u32 ring = u32(__cvta_generic_to_shared(shared)) + warp * (kSlots * kPlace);
  // A thread moves piece lane % 8 of every fourth row.
  const int piece = lane % 8, row0 = lane / 8;
  const auto ask_columns = [&](int slice, int slot) {
    if (kTurned) {
      #pragma unroll
      for (int e = lane; e < 128 * kTiles; e += 32) {
        const int row = e / (2 * kTiles), at = e % (2 * kTiles), k = slice * 64 + row, column = column0 + at * 8;
        const bool there = k < kDepth && column < kColumns;
        copy16(ring + slot * kPlace + turned_at(row, at), w + (there ? k * w_row + column : 0), there);
      }
      return;
    }
    const int k = slice * 64 + piece * 8;
    #pragma unroll
    for (int r = 0; r < kWide; r += 4) {
      const int row = r + row0, column = column0 + row;
      const bool there = k < kDepth && slice < kSlices && column < kColumns;
      copy16(ring + slot * kPlace + row * 128 + ((piece ^ (row % 8)) * 16), w + (there ? column * w_row + k : 0), there);
    }
  };
  const auto ask_rows = [&](int slice, int slot) {
    const int k = slice * 64 + piece * 8;
    #pragma unroll
    for (int r = 0; r < kTexts; r += 4) {
      const int row = r + row0;
      const bool there = k < kDepth && slice < kSlices && row < kRows;
      copy16(ring + slot * kPlace + (kWide + row) * 128 + ((piece ^ (row % 8)) * 16), a + (there ? row * a_row + k : 0), there);
    }
  };
  const auto ask_first = [&] {
    #pragma unroll
    for (int i = 0; i < kSlots - 1; ++i) ask_columns(warp + i * kWarps, i);
  };
  if (kEarly) ask_first();
  begin();
  if (!kEarly) ask_first();
  #pragma unroll
  for (int i = 0; i < kSlots - 1; ++i) {
    ask_rows(warp + i * kWarps, i);
    commit();
  }
  f32 acc[kTiles][kPairs][4] = {};
  int slot = 0, free = kSlots - 1;
  #pragma unroll 1
  for (int slice = warp; slice < kSlices; slice += kWarps) {
    asm volatile("cp.async.wait_group %0;" :: "n"(kSlots - 2) : "memory");
    __syncwarp();  // all of the slice is there, and nobody reads the one before it any more
    const int next = slice + (kSlots - 1) * kWarps;
    if (next < kSlices) {
      ask_columns(next, free);
      ask_rows(next, free);
    }
    commit();
    const u32 columns = ring + slot * kPlace, rows = columns + kWide * 128;
    #pragma unroll
    for (int k = 0; k < 4; ++k) {
      u32 x[kPairs][2];
      load_right(x, rows, k);
      #pragma unroll
      for (int t = 0; t < kTiles; ++t) {
        u32 v[4];
        if (kTurned) {
          load4_turned(v, columns + turned_at(k * 16 + lane / 16 * 8 + lane % 8, t * 2 + lane / 8 % 2));
        } else {
          const int row = t * 16 + lane % 16;
          load4(v, columns + row * 128 + (((k * 2 + lane / 16) ^ (row % 8)) * 16));
        }
        #pragma unroll
        for (int j = 0; j < kPairs; ++j) multiply(acc[t][j], v, x[j][0], x[j][1], T{});
      }
    }
    slot = slot + 1 == kSlots ? 0 : slot + 1;
    free = free + 1 == kSlots ? 0 : free + 1;
  }
  asm volatile("cp.async.wait_group 0;" ::: "memory");
  __syncthreads();  // the rings are free
  f32* const parts = reinterpret_cast<f32*>(shared);  // [kWarps][kTexts][kWide + 1]
  constexpr int kStride = kWide + 1;
  #pragma unroll
  for (int t = 0; t < kTiles; ++t) {
    #pragma unroll
    for (int j = 0; j < kPairs; ++j) {
      #pragma unroll
      for (int e = 0; e < 4; ++e) parts[(warp * kTexts + j * 8 + lane % 4 * 2 + e % 2) * kStride + t * 16 + lane / 4 + e / 2 * 8] = acc[t][j][e];
    }
  }
  __syncthreads();
  for (int e = threadIdx.x; e < kRows * kWide; e += kWarps * 32) {
    const int row = e / kWide, at = e % kWide;
    f32 sums[1] = {parts[row * kStride + at]};
    #pragma unroll
    for (int i = 1; i < kWarps; ++i) sums[0] += parts[(i * kTexts + row) * kStride + at];
    if (column0 + at < kColumns) finish(p, row, column0 + at, sums);
  }
}
)cuda";

}  // namespace rlx::cuda
