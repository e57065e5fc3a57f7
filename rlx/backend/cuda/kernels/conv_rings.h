// Convolution in f16 or bf16 on the matrix units of Hopper, sums in f32: a block has kM channels x kN columns. Four warps bring slices of 64 terms into a ring of kStages places, several slices ahead;
// of the other warps each group of four multiplies 64 channels with all columns, straight from shared memory.
//   y[m, c] = sum over k of w[m, k] x[c, k]
// Columns are positions, or (kAcross) in the order (o, n). The element of x lies at the sum of an offset of the column and one of the term (conv_places.h), and kRun (8 or 4) elements are copied at once:
//   !kSideways   kRun terms in a row are neighbours in memory: a row of a place is a column, 128 bytes are its 64 terms
//   kSideways    kRun columns in a row are: a row is a term, 128 bytes are 64 columns, 64 rows later come the next 64 columns (kN is a multiple of 64)
// w lies in the order of the places (kConvPack with kTileM = kM) and comes by the copy engine, or
//   kDirect    kRunW terms in a row are neighbours in w as it lies
// A place holds kM rows of w, then x. Limit: matrix units from 128 channels on; for 64 the way to shared memory, since slices of neighbouring taps are copied one by one (from the first cache).
// After kConvPlaces, kConvPieces, kConvResults and kMatrixGroups; before it stand also multiply_columns (64 channels x kN columns x 16 terms), kWriters = 2 kM, kOwnX (x and w begin at multiples of 16 bytes)
// and kBlocks (of a processor).
#pragma once

namespace rlx::cuda {

inline constexpr char kConvRings[] = R"cuda(
constexpr u32 kTeams = kM / 64, kThreads = kWriters + 128, kPlaceBytes = (kM + kN) * 128;
constexpr u32 kTilesM = kRows / kM, kEachSplit = (kSlices + kSplits - 1) / kSplits;

// As tile_at, with rows along the sum and 8192 bytes to the next 64 columns.
inline u64 turned_tile_at(u32 place) { return (tile_at(place) & ~(u64(0x3fff) << 16)) | u64(8192 >> 4) << 16; }

inline void copy_bulk(u32 to, const T* from, u32 bytes, u32 barrier) {
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" :: "r"(to), "l"(from), "r"(bytes), "r"(barrier) : "memory");
}
// Where a term lies in x, beside a column.
inline Place place_of_term(const Term& t) {
  Place p = tap_of(t.tap);
  p.at += int(t.input) * kXsChannel;
  return p;
}
// Which taps of a column lie inside of x, where they fit into a word.
constexpr bool kSeen = !kAlong && kTaps <= 32;
inline u32 taps_seen(const Place& p) {
  u32 line = 0, plane = 0, all = 0;
  if (!kSeen) return 0;
  #pragma unroll
  for (int k = 0; k < (kSeen ? kW2 : 0); ++k) line |= u32(kInside2 || u32(p.i2 + k * kDilation2) < u32(kX2)) << k;
  #pragma unroll
  for (int k = 0; k < (kSeen ? kW1 : 0); ++k) plane |= line * u32(kInside1 || u32(p.i1 + k * kDilation1) < u32(kX1)) << k * kW2;
  #pragma unroll
  for (int k = 0; k < (kSeen ? kW0 : 0); ++k) all |= plane * u32(kInside0 || u32(p.i0 + k * kDilation0) < u32(kX0)) << k * kW2 * kW1;
  return all;
}

// The terms of a thread where those are (image, tap) and rows: each is 16 behind the one before, so that no quotient is computed.
constexpr bool kWalks = kSideways && kAlong && kW2 >= 7;
struct Walk {
  u32 k;
  int o0, o1, o2;
  Place t;

  explicit Walk(u32 first) : k(first), o0(0), o1(0), o2(0), t{} {
    if (!kWalks) return;
    const Term term = term_of(k);
    o2 = term.tap % kW2, o1 = term.tap / kW2 % kW1, o0 = term.tap / (kW2 * kW1);
    t = place_of_term(term);
  }
  void step() {
    k += 16, o2 += 16, t.at += 16 * kDilation2 * kXs2;
    #pragma unroll
    for (int i = 0; i < (16 + kW2 - 1) / kW2; ++i) {
      if (o2 < kW2) continue;
      o2 -= kW2, ++o1, t.at += kDilation1 * kXs1 - kW2 * kDilation2 * kXs2;
      if (o1 == kW1) {
        o1 = 0, ++o0, t.at += kDilation0 * kXs0 - kW1 * kDilation1 * kXs1;
        if (o0 == kW0) o0 = 0, t.at += kXsChannel - kW0 * kDilation0 * kXs0;
      }
    }
    t.i0 = o0 * kDilation0, t.i1 = o1 * kDilation1, t.i2 = o2 * kDilation2;
  }
};

// What one of the 128 threads that bring slices does: piece tid % 8 of every 16th row. All that does not change from slice to slice is in registers, so that a copy is three instructions where a
// word tells the taps. An address is not used where there is nothing to copy.
template <bool kAligned> struct Bringer {
  static constexpr u32 kHalves = 8 / kRun, kLines = kSideways ? kN / 64 * kHalves : kN / 16;
  const T *x, *w;
  u32 m0, piece, row0, mine;
  Place lines[kLines];  // columns of a thread
  u32 seen[kLines];     // their taps, or whether they are there
  Walk walk;

  Bringer(const T* x_, const T* w_, u32 m, u32 c0, u32 group, u32 first)
      : x(x_ + i64(group) * kInputs * kXsChannel), w(w_), m0(m), piece(threadIdx.x % 8), row0(threadIdx.x % 128 / 8), mine(piece_at(row0, piece)), walk(first * 64 + row0) {
    w += kDirect ? i64(group * kOutputs + m0 + row0) * kWsOuter : i64(group * kTilesM + m0 / kM) * kSlices * (kM * 64);
    #pragma unroll
    for (u32 i = 0; i < kLines; ++i) {
      const u32 c = c0 + (kSideways ? i / kHalves * 64 + piece * 8 + i % kHalves * kRun : row0 + i * 16);
      lines[i] = place_at(position_of(c < kColumns ? c : 0));
      seen[i] = (kSeen ? taps_seen(lines[i]) : 1) * u32(c < kColumns);
    }
  }

  void bring_weights(u32 slice, u32 to) const {
    #pragma unroll
    for (u32 h = 0; h < 8 / kRunW; ++h) {
      const Term term = term_of(slice * 64 + piece * 8 + h * kRunW);
      const T* const from = w + weight_at(term);
      #pragma unroll
      for (u32 r = 0; r < kM / 16; ++r)
        copy_run<kRunW>(to + mine + r * 2048 + h * 2 * kRunW, from + r * (16 * i64(kWsOuter)), term.there && m0 + row0 + r * 16 < kOutputs, kAligned);
    }
  }
  void bring_line(u32 to, u32 i, const T* from, u32 bit, const Place& t) const {
    const bool ok = kSeen ? (seen[i] & bit) != 0 : bit != 0 && seen[i] != 0 && inside(lines[i], t);
    copy_run<kRun>(to, from + lines[i].at, ok, kAligned);
  }
  void bring_columns(u32 slice, u32 to) {
    #pragma unroll
    for (u32 r = 0; r < (kSideways ? 4 : kHalves); ++r) {
      const Term term = kWalks ? Term{0, 0, walk.k < kDepth} : term_of(slice * 64 + (kSideways ? row0 + r * 16 : piece * 8 + r * kRun));
      const Place t = kWalks ? walk.t : place_of_term(term);
      const T* const from = x + t.at;
      const u32 bit = !term.there ? 0 : kSeen ? 1u << term.tap : 1;
      #pragma unroll
      for (u32 i = 0; i < kLines; ++i)
        bring_line(to + mine + (kSideways ? r * 2048 + i / kHalves * 8192 + i % kHalves * (2 * kRun) : i * 2048 + r * (2 * kRun)), i, from, bit, t);
      if (kWalks) walk.step();
    }
  }
};

// The ring: which place is next, and its turn, 0 and 1 in alternation.
struct Ring {
  u32 places, full, empty, stage, turn;
  u32 here() const { return places + stage * kPlaceBytes; }
  u32 ready() const { return full + 8 * stage; }
  u32 before() const { return empty + 8 * (stage == 0 ? kStages - 1 : stage - 1); }
  void go_on() {
    if (++stage == kStages) stage = 0, turn ^= 1;
  }
};

template <bool kAligned> void bring_all(const T* x, const T* w, u32 m0, u32 c0, u32 group, u32 first, u32 last, Ring ring) {
  Bringer<kAligned> bringer(x, w, m0, c0, group, first);
  begin_alone();  // docs/performance/cuda.md: the next kernel must not meet the units of groups of warps
  #pragma unroll 1
  for (u32 slice = first; slice < last; ++slice) {
    if (slice - first >= kStages) barrier_wait(ring.empty + 8 * ring.stage, ring.turn ^ 1);
    if (kDirect) {
      bringer.bring_weights(slice, ring.here());
    } else if (threadIdx.x % 128 == 0) {
      barrier_expect(ring.ready(), kM * 128);
      copy_bulk(ring.here(), bringer.w + i64(slice) * (kM * 64), kM * 128, ring.ready());
    }
    bringer.bring_columns(slice, ring.here() + kM * 128);
    if (kAligned) asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" :: "r"(ring.ready()) : "memory");
    else barrier_arrive(ring.ready());
    ring.go_on();
  }
}

extern "C" __global__ void __launch_bounds__(kThreads, kBlocks) conv_rings(const T* x, const T* w, Params y, f32* parts) {
  extern __shared__ uint4 shared[];
  __shared__ u64 barriers[2 * kStages];
  const u32 full = place_of(barriers), empty = full + 8 * kStages;
  Ring ring{(place_of(shared) + 1023) & ~1023u, full, empty, 0, 0};
  const u32 warp = __shfl_sync(~0u, threadIdx.x / 32, 0), team = warp / 4, group = blockIdx.y;
  const u32 m0 = blockIdx.x % kTilesM * kM, c0 = blockIdx.x / kTilesM * kN;
  const u32 first = blockIdx.z * kEachSplit, last = first + kEachSplit < kSlices ? first + kEachSplit : kSlices;
  if (threadIdx.x == 0) {
    for (u32 i = 0; i < kStages; ++i) barrier_init(full + 8 * i, kDirect ? 128 : 129), barrier_init(empty + 8 * i, 4 * kTeams);
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    async_sees_shared();
  }
  __syncthreads();
  if (team == kTeams) {
    const bool aligned = kOwnX || (reinterpret_cast<u64>(x) % (2 * kRun) == 0 && (!kDirect || reinterpret_cast<u64>(w) % (2 * kRunW) == 0));
    if (aligned) bring_all<true>(x, w, m0, c0, group, first, last, ring);
    else bring_all<false>(x, w, m0, c0, group, first, last, ring);
    return;
  }
  begin_alone();
  f32 sums[kN / 8][4];  // no zeros: the first product makes them, or products would wait for each other
  #pragma unroll 1
  for (u32 slice = first; slice < last; ++slice) {
    barrier_wait(ring.ready(), ring.turn);
    async_sees_shared();
    const u32 rows = ring.here() + team * 8192, columns = ring.here() + kM * 128;
    products_begin();
    #pragma unroll
    for (u32 s = 0; s < 4; ++s)
      multiply_columns(sums, tile_at(rows + s * 32), kSideways ? turned_tile_at(columns + s * 2048) : tile_at(columns + s * 32), slice > first || s > 0);
    products_commit();
    products_wait<1>();  // the place before is free
    if (slice > first && threadIdx.x % 32 == 0) barrier_arrive(ring.before());
    ring.go_on();
  }
  products_wait<0>();
  hold(sums);
  if (kSplits > 1) {
    write_parts(sums, m0 + warp * 16, c0, group, parts);
    return;
  }
  const auto meet = [] { asm volatile("bar.sync 1, %0;" :: "n"(kWriters) : "memory"); };
  T* const tile = reinterpret_cast<T*>(shared);
  meet();  // nobody reads slices any more
  keep_results(sums, warp * 16, 0, tile);
  meet();
  write_results(tile, m0, c0, group, y);
}
)cuda";

}  // namespace rlx::cuda
