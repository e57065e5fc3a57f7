// Convolution in f32 or f64 as a product in tiles of kM output channels and kN positions, a square of kEach results for each thread. Slices of kSlice terms lie
// in a ring of kStages places in shared memory, [term][channel] and [term][position]; copies into them go around registers and write zeros for what is not there.
// Per slice a thread makes kSlice kEach^2 sums for 2 kSlice kEach numbers that it reads from shared memory, 16 bytes at a time, so that for eight a side a quarter
// of the cycles of one load are left for every fused product. Limit: FMA units.
// kSideways: x is turned so that kVec columns, which are in the order (o, n), are 16 bytes (conv_turn.h).
// After kConvPlaces and kMatrixFragments; before it stand also T, kRows (channels of the packed weights), kM, kN, kStages, kSplits (blockIdx.z has a part of the slices each;
// 1: results go to y).
#pragma once

namespace rlx::cuda {

inline constexpr char kConvFma[] = R"cuda(
constexpr int kVec = 16 / sizeof(T), kEach = 2 * kVec, kThreads = kM * kN / (kEach * kEach);
constexpr int kWide = kN + (kAlong && !kSideways ? kVec : 0);                // lanes along terms would meet one bank
constexpr int kStage = kSlice * (kM + kWide);                  // elements
constexpr int kRun = kAlong ? 1 : kSlice * kN / kThreads;      // neighbouring terms of a thread
constexpr u32 kTilesM = kRows / kM, kEachSplit = (kSlices + kSplits - 1) / kSplits;

inline void copy_one(u32 to, const f32* from, bool there) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" :: "r"(to), "l"(from), "r"(there ? 4 : 0) : "memory");
}
inline void copy_one(u32 to, const f64* from, bool there) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 8, %2;" :: "r"(to), "l"(from), "r"(there ? 8 : 0) : "memory");
}
inline void copy16(u32 to, const T* from, bool there) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" :: "r"(to), "l"(from), "r"(there ? 16 : 0) : "memory");
}

// Sixteen warps of a processor, with 128 registers each: a warp waits for shared memory between two terms.
extern "C" __global__ void __launch_bounds__(kThreads, 512 / kThreads) conv_fma(const T* x, const T* w, Params y, T* parts) {
  extern __shared__ uint4 shared[];
  __shared__ Place places[kAlong ? kN : 1];
  T* const ring = reinterpret_cast<T*>(shared);
  const u32 base = u32(__cvta_generic_to_shared(ring));
  const u32 tid = threadIdx.x, group = blockIdx.y, m0 = blockIdx.x % kTilesM * kM, p0 = blockIdx.x / kTilesM * kN;
  const u32 first = blockIdx.z * kEachSplit, last = first + kEachSplit < kSlices ? first + kEachSplit : kSlices;
  x += i64(group) * kInputs * kXsChannel;
  w += i64(group) * kSlices * kSlice * kRows + m0;
  const u32 mine = kSideways ? tid % (kN / kVec) * kVec : tid % kN;
  const bool there = p0 + mine < kColumns;
  const Place place = kAlong && !kSideways ? Place{} : place_at(there ? position_of(p0 + mine) : 0);
  if (kAlong && !kSideways) {
    for (u32 i = tid; i < kN; i += kThreads) places[i] = place_at(p0 + i < kPositions ? p0 + i : 0);
    __syncthreads();
  }

  const auto ask = [&](u32 slice, u32 stage) {
    const u32 to = base + stage * kStage * u32(sizeof(T)), to_x = to + kSlice * kM * u32(sizeof(T));
    #pragma unroll
    for (u32 e = tid; e < kSlice * kM / kVec; e += kThreads) {
      const u32 row = e / (kM / kVec), piece = e % (kM / kVec) * kVec;
      copy16(to + (row * kM + piece) * u32(sizeof(T)), w + i64(slice * kSlice + row) * kRows + piece, true);
    }
    if (kSideways) {
      #pragma unroll
      for (u32 line = tid / (kN / kVec); line < kSlice; line += kThreads / (kN / kVec)) {
        const Term term = term_of(slice * kSlice + line);
        Place t = tap_of(term.tap);
        t.at += int(term.input) * kXsChannel;
        const bool ok = there && term.there && inside(place, t);
        copy16(to_x + (line * kWide + mine) * u32(sizeof(T)), x + (ok ? place.at + t.at : 0), ok);
      }
    } else if (kAlong) {
      const u32 line = tid % kSlice, k = slice * kSlice + line;
      const Term term = term_of(k);
      Place t = tap_of(term.tap);
      t.at += int(term.input) * kXsChannel;
      #pragma unroll
      for (u32 i = tid / kSlice; i < kN; i += kThreads / kSlice) {
        const Place p = places[i];
        const bool ok = term.there && p0 + i < kPositions && inside(p, t);
        copy_one(to_x + (line * kWide + i) * u32(sizeof(T)), x + (ok ? p.at + t.at : 0), ok);
      }
    } else {
      #pragma unroll
      for (u32 r = 0; r < kRun; r += kSub) {
        const u32 line = tid / kN * kRun + r;
        const Term term = term_of(slice * kSlice + line);
        const Place t = tap_of(term.tap);
        const bool ok = there && term.there && inside(place, t);
        const T* const from = x + (ok ? place.at + t.at + int(term.input) * kXsChannel : 0);
        #pragma unroll
        for (u32 u = 0; u < kSub; ++u) {
          const bool one = ok && (kPadded == kInputs || term.input + u < kInputs);
          copy_one(to_x + ((line + u) * kWide + mine) * u32(sizeof(T)), one ? from + int(u) * kXsChannel : x, one);
        }
      }
    }
  };

  #pragma unroll
  for (u32 i = 0; i < kStages - 1; ++i) {
    if (first + i < last) ask(first + i, i);
    commit();
  }
  const u32 tx = tid % (kN / kEach), ty = tid / (kN / kEach);
  T sums[kEach][kEach] = {};
  u32 stage = 0, free = kStages - 1;
  #pragma unroll 1
  for (u32 slice = first; slice < last; ++slice) {
    arrived<kStages - 2>();
    __syncthreads();  // the slice is there for all, and nobody reads the one before it any more
    if (slice + kStages - 1 < last) ask(slice + kStages - 1, free);
    commit();
    const T* const a = ring + stage * kStage + ty * kVec;
    const T* const b = ring + stage * kStage + kSlice * kM + tx * kVec;
    #pragma unroll
    for (int k = 0; k < kSlice; ++k) {
      Pack<T, kVec> u[2], v[2];
      #pragma unroll
      for (int h = 0; h < 2; ++h) u[h] = load<kVec>(a + k * kM + h * (kM / 2)), v[h] = load<kVec>(b + k * kWide + h * (kN / 2));
      #pragma unroll
      for (int i = 0; i < kEach; ++i) {
        #pragma unroll
        for (int j = 0; j < kEach; ++j) sums[i][j] = op_fma(u[i / kVec].v[i % kVec], v[j / kVec].v[j % kVec], sums[i][j]);
      }
    }
    stage = stage + 1 == kStages ? 0 : stage + 1;
    free = free + 1 == kStages ? 0 : free + 1;
  }

  // Neighbours of a thread are neighbours in y where an image is a run whose size kVec divides.
  constexpr bool kRuns = !kAcross && kYs2 == 1 && (kY1 == 1 || kYs1 == kY2) && (kY0 == 1 || kYs0 == kY1 * kY2) && (kY0 * kY1 * kY2) % kVec == 0 &&
                         kYsFirst % kVec == 0 && kYsChannel % kVec == 0 && (kBatch == 1 || kYsOuter % kVec == 0);
  const bool together = kSplits == 1 ? kPlain && kRuns && reinterpret_cast<u64>(plain_results(y)) % 16 == 0 : kColumns % kVec == 0;
  #pragma unroll
  for (int h = 0; h < 2; ++h) {
    const u32 p = p0 + h * (kN / 2) + tx * kVec;
    if (p >= kColumns) continue;
    i64 at[kVec];
    #pragma unroll
    for (int j = 0; j < kVec; ++j) at[j] = kSplits == 1 ? result_at(position_of(is_column(p + j) ? p + j : p)) : p + j;
    #pragma unroll
    for (int i = 0; i < kEach; ++i) {
      const u32 m = m0 + i / kVec * (kM / 2) + ty * kVec + i % kVec;
      if (m >= kOutputs) continue;
      const i64 channel = i64(group * kOutputs + m) * kYsChannel;
      T* const row = kSplits == 1 ? plain_results(y) + channel : parts + (i64(blockIdx.z * kGroups + group) * kOutputs + m) * kColumns;
      if (together) {
        Pack<T, kVec> out;
        #pragma unroll
        for (int j = 0; j < kVec; ++j) out.v[j] = sums[i][h * kVec + j];
        store(row + at[0], out);
      } else {
        #pragma unroll
        for (int j = 0; j < kVec; ++j) {
          if (!is_column(p + j)) continue;
          if (kSplits == 1) finish(y, channel + at[j], sums[i][h * kVec + j]);
          else row[at[j]] = sums[i][h * kVec + j];
        }
      }
    }
  }
}
)cuda";

}  // namespace rlx::cuda
