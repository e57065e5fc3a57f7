// What the kernels of convolutions on matrix units share: slices of 64 terms in two places in shared memory, rows of 128 bytes, one for each of kM channels and then one for each of kN
// positions; piece c of 16 bytes of row r lies at piece c ^ (r % 8), so that eight rows meet all banks. Weights are copied around registers. x cannot be: a tap moves it by two bytes.
// While one slice is multiplied, a thread reads its part of the next one element by element, in kPhases turns of kNumbers, and puts it into the other place:
//   along positions   a lane has one position and reads 8 channels of a tap, which are one piece; lanes of a warp are neighbours in memory, and one question for the borders does for all 8
//   along terms       a warp has a position, a lane two neighbouring terms
// An element of x costs some two instructions along positions, some seven along terms.
// After kConvPlaces, kMatrixFragments, kConvPieces and kConvResults; before it stand also T, kRows, kM, kN, kWarpM (kWarpM x 32 of a tile for each warp), kNumbers (16 or 32), kSplits (as in conv_fma.h), kBlocks (of a processor) and
//   kDirect   w is read where it lies: pieces of 8 terms are runs that begin at multiples of 8 elements. Otherwise it is packed, [group][kRows][64 kSlices]
#pragma once

namespace rlx::cuda {

inline constexpr char kConvSlices[] = R"cuda(
constexpr int kThreads = kWriters, kWarps = kThreads / 32;  // kM / kWarpM times kN / 32
constexpr int kPlaceBytes = (kM + kN) * 128, kPhases = kN * 64 / (kThreads * kNumbers);
constexpr u32 kTurns = kAlong ? kNumbers / 2 : kNumbers / 8;  // rows or pieces of a turn
constexpr bool kPaired = kAlong && kW2 % 2 == 0;              // two terms of a lane are neighbours on the last axis
constexpr u32 kTilesM = kRows / kM, kEachSplit = (kSlices + kSplits - 1) / kSplits;

inline void put16(u32 to, const u32 (&v)[4]) {
  asm volatile("st.shared.v4.b32 [%0], {%1,%2,%3,%4};" :: "r"(to), "r"(v[0]), "r"(v[1]), "r"(v[2]), "r"(v[3]) : "memory");
}
inline void put4(u32 to, u32 v) { asm volatile("st.shared.b32 [%0], %1;" :: "r"(to), "r"(v) : "memory"); }

// The tile of a block and what a thread brings of its slices.
struct Slices {
  const T *x, *w;
  u32 group, m0, p0, tid, mine;
  bool there, aligned;
  Place place;
  const Place* places;
  Place terms[2];
  bool known[2];
  u16 raw[kNumbers];

  Slices(const T* x_, const T* w_, Place* all)
      : x(x_), w(w_), group(blockIdx.y), m0(blockIdx.x % kTilesM * kM), p0(blockIdx.x / kTilesM * kN), tid(threadIdx.x), mine(tid % kN),
        there(p0 + mine < kPositions), aligned(!kDirect || reinterpret_cast<u64>(w_) % 16 == 0), place{}, places(all) {
    x += i64(group) * kInputs * kXsChannel;
    if (!kDirect) w += (i64(group) * kRows + m0) * (kSlices * 64);
    if (!kAlong) {
      place = place_at(there ? p0 + mine : 0);
      return;
    }
    for (u32 i = tid; i < kN; i += kThreads) all[i] = place_at(p0 + i < kPositions ? p0 + i : 0);
    __syncthreads();
  }
  u32 first() const { return blockIdx.z * kEachSplit; }
  u32 last() const { return first() + kEachSplit < kSlices ? first() + kEachSplit : kSlices; }

  // Asks for the weights of a slice and begins with its x.
  void begin_slice(u32 slice, u32 to) {
    #pragma unroll
    for (u32 e = tid; e < kM * 8; e += kThreads) {
      const u32 row = e / 8, piece = e % 8, k = slice * 64 + piece * 8;
      if (kDirect) {
        const bool ok = k < kDepth && m0 + row < kOutputs;
        copy_run<8>(to + piece_at(row, piece), w + (ok ? int(group * kOutputs + m0 + row) * kWsOuter + weight_at(term_of(k)) : 0), ok, aligned);
      } else {
        copy_run<8>(to + piece_at(row, piece), w + row * (kSlices * 64) + k, true, true);
      }
    }
    if (!kAlong) return;
    #pragma unroll
    for (u32 i = 0; i < 2; ++i) {
      const Term term = term_of(slice * 64 + 2 * (tid % 32) + i);
      terms[i] = tap_of(term.tap);
      terms[i].at += int(term.input) * kXsChannel;
      known[i] = term.there;
    }
  }
  void read(u32 slice, u32 phase) {
    #pragma unroll
    for (u32 j = 0; j < kTurns; ++j) {
      if (kAlong) {
        const u32 row = (phase * kTurns + j) * kWarps + tid / 32;
        const Place p = places[row];
        if (kPaired) {
          const bool ok = known[0] && p0 + row < kPositions && (kInside0 || u32(p.i0 + terms[0].i0) < u32(kX0)) && (kInside1 || u32(p.i1 + terms[0].i1) < u32(kX1));
          const T* const from = x + (p.at + terms[0].at);
          const int i2 = p.i2 + terms[0].i2;
          raw[2 * j] = 0, raw[2 * j + 1] = 0;
          if (ok && (kInside2 || u32(i2) < u32(kX2))) raw[2 * j] = from->bits;
          if (ok && (kInside2 || u32(i2 + kDilation2) < u32(kX2))) raw[2 * j + 1] = from[kDilation2 * kXs2].bits;
          continue;
        }
        #pragma unroll
        for (u32 i = 0; i < 2; ++i) {
          raw[2 * j + i] = 0;
          if (known[i] && p0 + row < kPositions && inside(p, terms[i])) raw[2 * j + i] = x[p.at + terms[i].at].bits;
        }
        continue;
      }
      const u32 piece = (phase * kTurns + j) * (kThreads / kN) + tid / kN;
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
  // `to` is where the rows of positions begin.
  void keep(u32 to, u32 phase) const {
    #pragma unroll
    for (u32 j = 0; j < kTurns; ++j) {
      if (kAlong) {
        const u32 row = (phase * kTurns + j) * kWarps + tid / 32;
        put4(to + piece_at(row, tid % 32 / 4) + tid % 4 * 4, raw[2 * j] | u32(raw[2 * j + 1]) << 16);
        continue;
      }
      u32 v[4];
      #pragma unroll
      for (u32 i = 0; i < 4; ++i) v[i] = raw[8 * j + 2 * i] | u32(raw[8 * j + 2 * i + 1]) << 16;
      put16(to + piece_at(mine, (phase * kTurns + j) * (kThreads / kN) + tid / kN), v);
    }
  }
  void bring_first(u32 base) {
    if (first() < last()) {
      begin_slice(first(), base);
      #pragma unroll
      for (u32 f = 0; f < kPhases; ++f) {
        read(first(), f);
        keep(base + kM * 128, f);
      }
    }
    commit();
  }

  // Sums of 16 Tall channels from row0 and 8 Wide positions from column0 on.
  template <int Tall, int Wide> void write(const f32 (&sums)[Tall][Wide][4], u32 row0, u32 column0, const Params& y, f32* parts, void* shared) const {
    if (kSplits > 1) {
      #pragma unroll
      for (u32 i = 0; i < Tall; ++i) write_parts(sums[i], m0 + row0 + i * 16, p0 + column0, group, parts);
      return;
    }
    __syncthreads();  // nobody reads slices any more
    T* const tile = static_cast<T*>(shared);
    #pragma unroll
    for (u32 i = 0; i < Tall; ++i) keep_results(sums[i], row0 + i * 16, column0, tile);
    __syncthreads();
    write_results(tile, m0, p0, group, y);
  }
};
)cuda";

}  // namespace rlx::cuda
