// Convolution in f16 or bf16 on matrix units, sums in f32: tiles of kM output channels and kN positions, kWarpM x 32 of it for each warp. Two places in shared memory hold slices
// of 64 terms: rows of 128 bytes, one for each channel and then one for each position; piece c of 16 bytes of row r lies at piece c ^ (r % 8), so that eight rows meet all banks.
// Weights are copied around registers. x cannot be: a tap moves it by two bytes. While one slice is multiplied, a thread reads its part of the next one element by element, in kPhases
// turns of 16 numbers, and puts it into the other place:
//   along positions   a lane has one position and reads 8 channels of a tap, which are one piece; lanes of a warp are neighbours in memory, and one question for the borders does for all 8
//   along terms       a warp has a position, a lane two neighbouring terms
// Limit: matrix units; an element of x costs some two instructions along positions, some seven along terms.
// After kConvPlaces and kMatrixFragments; before it stand also T, kRows, kM, kN, kWarpM, kSplits (as in conv_fma.h), kBlocks (of a processor) and
//   kDirect   w is read where it lies: pieces of 8 terms are runs that begin at multiples of 8 elements. Otherwise it is packed, [group][kRows][64 kSlices]
#pragma once

namespace rlx::cuda {

inline constexpr char kConvMma[] = R"cuda(
constexpr int kWarpsN = kN / 32, kWarps = kM / kWarpM * kWarpsN, kThreads = 32 * kWarps;
constexpr int kPlaceBytes = (kM + kN) * 128, kPhases = kN * 64 / (kThreads * 16), kSteps = 4 / kPhases;
constexpr u32 kTilesM = kRows / kM, kEachSplit = (kSlices + kSplits - 1) / kSplits;

// 16 bytes, or zeros.
inline void copy16(u32 to, const T* from, bool there, bool aligned) {
  if (aligned) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" :: "r"(to), "l"(from), "r"(there ? 16 : 0) : "memory");
    return;
  }
  u32 v[4];
  #pragma unroll
  for (int i = 0; i < 4; ++i) v[i] = there ? from[2 * i].bits | u32(from[2 * i + 1].bits) << 16 : 0;
  asm volatile("st.shared.v4.b32 [%0], {%1,%2,%3,%4};" :: "r"(to), "r"(v[0]), "r"(v[1]), "r"(v[2]), "r"(v[3]) : "memory");
}
inline void put16(u32 to, const u32 (&v)[4]) {
  asm volatile("st.shared.v4.b32 [%0], {%1,%2,%3,%4};" :: "r"(to), "r"(v[0]), "r"(v[1]), "r"(v[2]), "r"(v[3]) : "memory");
}
inline void put4(u32 to, u32 v) { asm volatile("st.shared.b32 [%0], %1;" :: "r"(to), "r"(v) : "memory"); }
inline u32 piece_at(u32 row, u32 piece) { return row * 128 + ((piece ^ row % 8) * 16); }

extern "C" __global__ void __launch_bounds__(kThreads, kBlocks) conv_mma(const T* x, const T* w, T* y, f32* parts) {
  extern __shared__ uint4 shared[];
  __shared__ Place places[kAlong ? kN : 1];
  const u32 base = u32(__cvta_generic_to_shared(shared));
  const u32 tid = threadIdx.x, lane = tid % 32, warp = tid / 32;
  const u32 group = blockIdx.y, m0 = blockIdx.x % kTilesM * kM, p0 = blockIdx.x / kTilesM * kN;
  const u32 first = blockIdx.z * kEachSplit, last = first + kEachSplit < kSlices ? first + kEachSplit : kSlices;
  const bool aligned = !kDirect || reinterpret_cast<u64>(w) % 16 == 0;
  x += i64(group) * kInputs * kXsChannel;
  if (!kDirect) w += (i64(group) * kRows + m0) * (kSlices * 64);
  const u32 mine = tid % kN;
  const bool there = p0 + mine < kPositions;
  const Place place = kAlong ? Place{} : place_of(there ? p0 + mine : 0);
  if (kAlong) {
    for (u32 i = tid; i < kN; i += kThreads) places[i] = place_of(p0 + i < kPositions ? p0 + i : 0);
    __syncthreads();
  }

  const auto ask_weights = [&](u32 slice, u32 to) {
    #pragma unroll
    for (u32 e = tid; e < kM * 8; e += kThreads) {
      const u32 row = e / 8, piece = e % 8, k = slice * 64 + piece * 8;
      if (kDirect) {
        const bool ok = k < kDepth && m0 + row < kOutputs;
        copy16(to + piece_at(row, piece), w + (ok ? int(group * kOutputs + m0 + row) * kWsOuter + weight_at(term_of(k)) : 0), ok, aligned);
      } else {
        copy16(to + piece_at(row, piece), w + row * (kSlices * 64) + k, true, true);
      }
    }
  };

  // What a thread has of a slice of x: two terms in a row along terms.
  Place terms[2];
  bool known[2];
  const auto begin_slice = [&](u32 slice) {
    if (!kAlong) return;
    #pragma unroll
    for (u32 i = 0; i < 2; ++i) {
      const Term term = term_of(slice * 64 + 2 * lane + i);
      terms[i] = tap_of(term.tap);
      terms[i].at += int(term.input) * kXsChannel;
      known[i] = term.there;
    }
  };
  u16 raw[16];
  const auto read = [&](u32 slice, u32 phase) {
    #pragma unroll
    for (u32 j = 0; j < (kAlong ? 8 : 2); ++j) {
      if (kAlong) {
        const u32 row = (phase * 8 + j) * kWarps + warp;
        const Place p = places[row];
        #pragma unroll
        for (u32 i = 0; i < 2; ++i) {
          const bool ok = known[i] && p0 + row < kPositions && inside(p, terms[i]);
          raw[2 * j + i] = 0;
          if (ok) raw[2 * j + i] = x[p.at + terms[i].at].bits;
        }
      } else {
        const u32 piece = (phase * 2 + j) * (kThreads / kN) + tid / kN;
        #pragma unroll
        for (u32 r = 0; r < 8; r += kSub) {
          const Term term = term_of(slice * 64 + piece * 8 + r);
          const Place t = tap_of(term.tap);
          const bool ok = there && term.there && inside(place, t);
          const T* const from = x + (ok ? place.at + t.at + int(term.input) * kXsChannel : 0);
          #pragma unroll
          for (u32 u = 0; u < kSub; ++u) {
            raw[8 * j + r + u] = 0;
            if (ok && (kPadded == kInputs || term.input + u < kInputs)) raw[8 * j + r + u] = from[int(u) * kXsChannel].bits;
          }
        }
      }
    }
  };
  const auto keep = [&](u32 to, u32 phase) {
    #pragma unroll
    for (u32 j = 0; j < (kAlong ? 8 : 2); ++j) {
      if (kAlong) {
        const u32 row = (phase * 8 + j) * kWarps + warp;
        put4(to + piece_at(row, lane / 4) + lane % 4 * 4, raw[2 * j] | u32(raw[2 * j + 1]) << 16);
      } else {
        u32 v[4];
        #pragma unroll
        for (u32 i = 0; i < 4; ++i) v[i] = raw[8 * j + 2 * i] | u32(raw[8 * j + 2 * i + 1]) << 16;
        put16(to + piece_at(mine, (phase * 2 + j) * (kThreads / kN) + tid / kN), v);
      }
    }
  };

  if (first < last) {
    ask_weights(first, base);
    begin_slice(first);
    #pragma unroll
    for (u32 f = 0; f < kPhases; ++f) {
      read(first, f);
      keep(base + kM * 128, f);
    }
  }
  commit();
  constexpr int kTall = kWarpM / 16;
  const u32 row0 = warp / kWarpsN * kWarpM, column0 = warp % kWarpsN * 32;
  f32 sums[kTall][4][4] = {};
  u32 now = 0;
  #pragma unroll 1
  for (u32 slice = first; slice < last; ++slice) {
    arrived<0>();
    __syncthreads();  // the slice is there for all, and nobody reads the other place any more
    const u32 here = base + now * kPlaceBytes, next = base + (now ^ 1) * kPlaceBytes;
    const bool more = slice + 1 < last;
    if (more) {
      ask_weights(slice + 1, next);
      begin_slice(slice + 1);
    }
    commit();
    #pragma unroll
    for (u32 f = 0; f < kPhases; ++f) {
      if (more) read(slice + 1, f);
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
      if (more) keep(next + kM * 128, f);
    }
    now ^= 1;
  }

  // Parts go out as they lie in the sums. Results go through shared memory, so that neighbours are written together.
  if (kSplits > 1) {
    #pragma unroll
    for (u32 i = 0; i < kTall; ++i) {
      #pragma unroll
      for (u32 h = 0; h < 2; ++h) {
        const u32 m = m0 + row0 + i * 16 + h * 8 + lane / 4;
        if (m >= kOutputs) continue;
        f32* const row = parts + (i64(blockIdx.z * kGroups + group) * kOutputs + m) * kPositions;
        #pragma unroll
        for (u32 j = 0; j < 4; ++j) {
          #pragma unroll
          for (u32 e = 0; e < 2; ++e) {
            const u32 p = p0 + column0 + j * 8 + lane % 4 * 2 + e;
            if (p < kPositions) row[p] = sums[i][j][h * 2 + e];
          }
        }
      }
    }
    return;
  }
  __syncthreads();
  constexpr u32 kLine = kN + 8;  // rows of 8 meet different banks
  T* const tile = reinterpret_cast<T*>(shared);
  #pragma unroll
  for (u32 i = 0; i < kTall; ++i) {
    #pragma unroll
    for (u32 j = 0; j < 4; ++j) {
      #pragma unroll
      for (u32 e = 0; e < 4; ++e)
        put(tile[(row0 + i * 16 + e / 2 * 8 + lane / 4) * kLine + column0 + j * 8 + lane % 4 * 2 + e % 2], sums[i][j][e]);
    }
  }
  __syncthreads();
  // Two neighbours are one word where images are runs of even size.
  constexpr bool kRuns = kYs2 == 1 && (kY1 == 1 || kYs1 == kY2) && (kY0 == 1 || kYs0 == kY1 * kY2) && (kY0 * kY1 * kY2) % 2 == 0 &&
                         kYsFirst % 2 == 0 && kYsChannel % 2 == 0 && (kBatch == 1 || kYsOuter % 2 == 0);
  if (kRuns && reinterpret_cast<u64>(y) % 4 == 0) {
    const u32 column = tid % (kN / 2) * 2, p = p0 + column;
    if (p >= kPositions) return;
    const i64 at = result_at(p);
    #pragma unroll 4
    for (u32 row = tid / (kN / 2); row < kM && m0 + row < kOutputs; row += kThreads / (kN / 2))
      *reinterpret_cast<u32*>(y + at + i64(group * kOutputs + m0 + row) * kYsChannel) = *reinterpret_cast<const u32*>(tile + row * kLine + column);
    return;
  }
  if (!there) return;
  const i64 at = result_at(p0 + mine);
  #pragma unroll 4
  for (u32 row = tid / kN; row < kM && m0 + row < kOutputs; row += kThreads / kN) y[at + i64(group * kOutputs + m0 + row) * kYsChannel] = tile[row * kLine + mine];
}
)cuda";

}  // namespace rlx::cuda
