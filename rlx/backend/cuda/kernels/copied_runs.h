// The products of copied_tiles.h with all processors at work to the end: kRuns blocks stay, and each has an equal run of steps in the order of (unit, slice of k), so that weights come through its ring without a break over
// the ends of units. A unit whose slices belong to several runs is finished by the last of their blocks to come (last_block.h): each writes its sums as a part in f32, and all parts are added in the order of k.
//   parts  [run][whether the unit begins in this run][kRows][kTile]   a run has at most one unit that others began and one that others end
//   words  [kUnits]                                                  zero before and behind the kernel
// After kCopiedSlices and kLastBlock, with kRuns before it; hooks are those of copied_tiles.h.
#pragma once

namespace rlx::cuda {

inline constexpr char kCopiedRuns[] = R"cuda(
constexpr int kThreads = 32 * kWarps, kSteps = kUnits * kSlices, kPart = kRows * kTile, kVectors = kPart / 4;
static_assert(kRuns <= kSteps && i64(kSteps) * (kRuns + 1) < (i64(1) << 31), "every run has steps");

inline int first_step(int run) { return kSteps * run / kRuns; }
inline int run_of(int step) { return ((step + 1) * kRuns - 1) / kSteps; }

inline f32* vector_of(f32* sums, int v) { return sums + v / (kTile / 4) * kStride + v % (kTile / 4) * 4; }

inline void write_part(f32* part, f32* sums) {
  for (int v = threadIdx.x; v < kVectors; v += kThreads)
    *reinterpret_cast<float4*>(part + v * 4) = *reinterpret_cast<const float4*>(vector_of(sums, v));
}

// The sum of the parts of runs first .. last, in order. Loads of several parts are on their way together.
inline void add_parts(f32* sums, const f32* parts, int first, int last) {
  constexpr int kMost = (kVectors + kThreads - 1) / kThreads, kEach = kMost < 4 ? kMost : 4, kTogether = kTexts <= 32 ? 4 : 1;
  #pragma unroll 1
  for (int from = threadIdx.x; from < kVectors; from += kEach * kThreads) {
    f32 all[kEach][4] = {};
    #pragma unroll kTogether
    for (int run = first; run <= last; ++run) {
      const f32* const part = parts + i64(2 * run + (run == first)) * kPart;
      #pragma unroll
      for (int n = 0; n < kEach; ++n) {
        const int v = from + n * kThreads;
        f32 x[4] = {};
        if (kVectors % (kEach * kThreads) == 0 || v < kVectors)
          asm volatile("ld.global.cg.v4.f32 {%0,%1,%2,%3}, [%4];" : "=f"(x[0]), "=f"(x[1]), "=f"(x[2]), "=f"(x[3]) : "l"(part + v * 4) : "memory");
        #pragma unroll
        for (int e = 0; e < 4; ++e) all[n][e] += x[e];
      }
    }
    #pragma unroll
    for (int n = 0; n < kEach; ++n) {
      const int v = from + n * kThreads;
      if (kVectors % (kEach * kThreads) == 0 || v < kVectors) *reinterpret_cast<float4*>(vector_of(sums, v)) = float4{all[n][0], all[n][1], all[n][2], all[n][3]};
    }
  }
}

extern "C" __global__ void __launch_bounds__(kThreads, kBlocks)
copied_runs(Params p, const __grid_constant__ TensorMap a_map, const __grid_constant__ TensorMap w_map, const __grid_constant__ TensorMap other_map, f32* parts, u32* words) {
  extern __shared__ uint4 shared[];
  __shared__ u64 barriers[2 * kPlaces];
  const u32 ring = (place_of(shared) + 1023) & ~1023u, full = place_of(barriers), empty = full + 8 * kPlaces;
  f32* const sums = reinterpret_cast<f32*>(reinterpret_cast<u8*>(shared) + (ring - place_of(shared)) + kPlaces * kPlace);
#ifdef kMovesRows
  T* const rounded = reinterpret_cast<T*>(sums + kTexts * kStride);
#endif
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, group = warp / kShares, share = warp % kShares;
  const int run = blockIdx.x, step0 = first_step(run), steps = first_step(run + 1) - step0;
  const auto ask_weights = [&](int i, int place) {
    const u32 to = ring + place * kPlace, barrier = full + place * 8;
    barrier_expect(barrier, kPlace);
    each_tile(w_map, other_map, (step0 + i) / kSlices, (step0 + i) % kSlices, [&](const TensorMap& map, int x, int y, int at) {
      copy_tile_once(to + at, map, x, y, 0, 0, barrier);
    });
  };
  const auto ask_texts = [&](int i, int place) {
    copy_tile(ring + place * kPlace + kWeightBytes, a_map, (step0 + i) % kSlices * 64, 0, 0, 0, full + 8 * place);
  };
  const auto ask_first = [&] {
    for (int i = 0; i < kPlaces && i < steps; ++i) ask_weights(i, i);
    for (int i = kPlaces; i < kPlaces + kAhead && i < steps; ++i)
      each_tile(w_map, other_map, (step0 + i) / kSlices, (step0 + i) % kSlices, [&](const TensorMap& map, int x, int y, int) { ask_ahead(map, x, y, 0, 0); });
  };
  if (threadIdx.x == 0) {
    for (int i = 0; i < kPlaces; ++i) barrier_init(full + 8 * i, 1), barrier_init(empty + 8 * i, kWarps);
    asm volatile("fence.mbarrier_init.release.cluster;\nfence.proxy.async;" ::: "memory");
    if (kEarly) ask_first();
  }
  __syncthreads();
  begin();
  if (threadIdx.x == 0) {
    if (!kEarly) ask_first();
    for (int i = 0; i < kPlaces && i < steps; ++i) ask_texts(i, i);
  }
  __syncwarp();
  int place = 0, parity = 0, before = 0, before_parity = 0;  // of a step and of the one before it
  int turn = 0;                                              // the warp that asks next
  for (int i = 0; i < steps;) {
    const int unit = (step0 + i) / kSlices, behind = (unit + 1) * kSlices - step0, end = behind < steps ? behind : steps;
    const bool again = i > 0;
    f32 acc[kTilesEach][kPairs][4] = {};
    #pragma unroll 1
    for (; i < end; ++i) {
      // The place of the step before is asked for again when all warps have left it.
      if (lane == 0 && warp == turn && i > 0 && i + kPlaces - 1 < steps) {
        barrier_wait(empty + 8 * before, before_parity);
        ask_weights(i + kPlaces - 1, before);
        ask_texts(i + kPlaces - 1, before);
      }
      __syncwarp();
      if (++turn == kWarps) turn = 0;
      barrier_wait(full + 8 * place, parity);
      const u32 columns = ring + place * kPlace;
      multiply_slice(acc, columns, columns + kWeightBytes, group, share);
      __syncwarp();
      if (lane == 0) barrier_arrive(empty + 8 * place);
      before = place, before_parity = parity;
      if (++place == kPlaces) place = 0, parity ^= 1;
    }
    if (again) __syncthreads();  // nobody reads the sums of the unit before any more
    put_sums(sums, acc, group, share);
    __syncthreads();
    const int first = run_of(unit * kSlices), last = run_of((unit + 1) * kSlices - 1);
    if (first < last) {
      write_part(parts + i64(2 * run + (run == first)) * kPart, sums);
      if (!is_last_block(words + unit, last - first + 1)) continue;
      add_parts(sums, parts, first, last);
      __syncthreads();
    }
    for (int e = threadIdx.x; e < kRows * kSideTile; e += kThreads) {
      const int row = e / kSideTile, at = e % kSideTile, column = unit * kSideTile + at;
      f32 all[kSides];
      #pragma unroll
      for (int side = 0; side < kSides; ++side) all[side] = sums[row * kStride + side * kSideTile + at];
#ifdef kMovesRows
      put(rounded[row * (kTile + 8) + at], all[0]);
#else
      if (column < kColumns) finish(p, row, column, all);
#endif
    }
#ifdef kMovesRows
    __syncthreads();
    finish_rows(p, rounded, 0, kRows, unit * kSideTile);
#endif
    __syncwarp();
  }
}
)cuda";

}  // namespace rlx::cuda
