// Products of few rows whose weights stream through shared memory: each warp has a ring of places there and asks for the pieces of its columns some places ahead, so that
// what is on its way does not depend on registers. Blocks stay and their warps take kEach columns in turn; the sides of these columns are the tracks of a warp, summed together since they read the same of x, always in the same order.
// Before it stand kRows, kSides, kColumns, kKept and the functions of Params as for column_products (few_rows.h), kBlockThreads, kBlocks (of a processor), kEach, kSlots (of a ring), kEarly (no kernel before this one makes the weights) and
//   struct Weights;            kRowBytes and kChunkBytes of it: multiples of 16
//     Weights(memory)          the room behind the rings
//     make(p, kept)            takes the rows of the left operand, by all threads; ends with a barrier where others read what a thread wrote
//     add(acc, chunks, n, lane) what chunk n of each track adds; acc [tracks][kRows]
#pragma once

namespace rlx::cuda {

inline constexpr char kStreamedRows[] = R"cuda(
constexpr int kChunks = (kRowBytes + kChunkBytes - 1) / kChunkBytes, kTracks = kEach * kSides, kTrackPlace = kChunkBytes + 16, kPlace = kTracks * kTrackPlace;  // decoders read whole words, also behind the last code
constexpr int kGroups = (kColumns + kEach - 1) / kEach;
constexpr bool kWholeChunks = kRowBytes % kChunkBytes == 0;
inline void copy16(u32 to, const u8* from) {
  asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16;" :: "r"(to), "l"(from) : "memory");
}

extern "C" __global__ void __launch_bounds__(kBlockThreads, kBlocks) streamed_rows(Params p) {
  __shared__ alignas(16) T kept[kKept ? kRows * kFeatures : 8];
  extern __shared__ uint4 shared[];
  constexpr int kWarps = kBlockThreads / 32;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, step = gridDim.x * kWarps, first = warp * gridDim.x + blockIdx.x;
  u8* const ring = reinterpret_cast<u8*>(shared) + warp * (kSlots * kPlace);
  const u32 to = u32(__cvta_generic_to_shared(ring)) + lane * 16;
  Weights weights(reinterpret_cast<u8*>(shared) + kWarps * kSlots * kPlace);
  int coming = first, chunk = 0, free = 0;  // what is asked for next, and where it goes
  const auto ask = [&] {
    if (coming < kGroups) {
      #pragma unroll
      for (int r = 0; r < kTracks; ++r) {
        const int column = coming * kEach + r / kSides;
        const u8* const from = reinterpret_cast<const u8*>(weights_of(p, r % kSides, kColumns % kEach == 0 || column < kColumns ? column : kColumns - 1)) + chunk * kChunkBytes + lane * 16;
        #pragma unroll
        for (int t = 0; t < kChunkBytes; t += 512) {
          const bool inside = (t + 512 <= kChunkBytes || t + lane * 16 < kChunkBytes) && (kWholeChunks || chunk * kChunkBytes + t + lane * 16 < kRowBytes);
          if (inside) copy16(to + free * kPlace + r * kTrackPlace + t, from + t);
        }
      }
      if (++chunk == kChunks) chunk = 0, coming += step;
    }
    asm volatile("cp.async.commit_group;" ::: "memory");
    free = free + 1 == kSlots ? 0 : free + 1;
  };
  const auto ask_pieces = [&] {
    for (int i = 0; i < kSlots - 1; ++i) ask();
  };
  if (kEarly) ask_pieces();
  begin();
  if (!kEarly) ask_pieces();
  if (kKept) {
    make_rows(p, kept);
    __syncthreads();
  }
  weights.make(p, kept);
  int place = 0;
  for (int group = first; group < kGroups; group += step) {
    Ahead ahead[kEach][kRows];
    #pragma unroll
    for (int j = 0; j < kEach * kRows; ++j) {
      const int column = group * kEach + j / kRows, inside = kColumns % kEach == 0 || column < kColumns ? column : kColumns - 1;
      ask_first(p, j % kRows, inside, ahead[j / kRows][j % kRows]);
      ask_next(p, j % kRows, inside, ahead[j / kRows][j % kRows]);
    }
    f32 acc[kTracks][kRows] = {};
    #pragma unroll 1
    for (int n = 0; n < kChunks; ++n) {
      asm volatile("cp.async.wait_group %0;" :: "n"(kSlots - 2) : "memory");
      __syncwarp();  // all of the chunk is there, and nobody reads the one before it any more
      ask();
      weights.add(acc, ring + place * kPlace, n, lane);
      place = place + 1 == kSlots ? 0 : place + 1;
    }
    #pragma unroll
    for (int e = 0; e < kEach; ++e) {
      #pragma unroll
      for (int i = 0; i < kRows; ++i) {
        f32 sums[kSides];
        #pragma unroll
        for (int s = 0; s < kSides; ++s) sums[s] = over_warp<Sum>(acc[e * kSides + s][i]);
        if (lane == 0 && (kColumns % kEach == 0 || group * kEach + e < kColumns)) finish(p, i, group * kEach + e, sums, ahead[e][i]);
      }
    }
  }
}
)cuda";

// Packed weights. After kPackedRowParts, with kChunkStrips of a chunk.
inline constexpr char kPackedStream[] = R"cuda(
constexpr int kChunkBytes = kChunkStrips / kBlockStrips * Format::kBytes;
struct Weights {
  Activations x;
  Weights(void* memory) : x(memory) {}
  void make(const Params& p, const T* kept) { x.make(p, kept, 0, kRows); }
  template <int N> void add(f32 (&acc)[N][kRows], const u8* chunks, int n, int lane) const {
    const u8* from[N];
    #pragma unroll
    for (int r = 0; r < N; ++r) from[r] = chunks + r * (kChunkBytes + 16);
    constexpr int kChunkUnits = kChunkStrips / kUnitStrips;
    #pragma unroll
    for (int t = 0; t < kChunkUnits; t += 32) {
      const int unit = n * kChunkUnits + t + lane;
      if (kUnits % kChunkUnits != 0 && unit >= kUnits) break;
      x.add(acc, from, t + lane, unit);
    }
  }
};
)cuda";

}  // namespace rlx::cuda
