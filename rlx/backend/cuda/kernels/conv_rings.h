// Convolution in f16 or bf16 on the matrix units of Hopper, sums in f32: a block has kM channels x kN columns. Four warps bring slices of 64 terms into a ring of kStages places, several slices ahead;
// of the other warps each group of four multiplies 64 channels with all columns, straight from shared memory.
//   y[m, c] = sum over k of w[m, k] x[c, k]
// Columns are positions, or (kAcross) in the order (o, n). The element of x lies at the sum of an offset of the column and one of the term (conv_places.h), and kRun (8 or 4) elements are copied at once:
//   !kSideways   kRun terms in a row are neighbours in memory: a row of a place is a column, 128 bytes are its 64 terms
//   kSideways    kRun columns in a row are: a row is a term, 128 bytes are 64 columns, 64 rows later come the next 64 columns (kN is a multiple of 64)
// w lies in the order of the places (kConvPack with kTileM = kM) and comes by the copy engine, or
//   kDirect    kRunW terms in a row are neighbours in w as it lies
// A place holds kM rows of w, then x. Limit: matrix units from 128 channels on; for 64 the way to shared memory, since slices of neighbouring taps are copied one by one (from the first cache).
// After kConvPlaces, kConvPieces, kConvResults and kMatrixGroups; before it stand also multiply_columns (64 channels x kN columns x 16 terms), kWriters = 2 kM and kBlocks (of a processor).
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

// What one of the 128 threads that bring slices does: piece tid % 8 of every 16th row.
struct Bringer {
  const T *x, *w;
  u32 m0, c0, piece, row0;
  bool aligned;
  const Place* places;  // of the columns
  Place columns[kSideways ? kN / 64 : 1][8 / kRun];

  Bringer(const T* x_, const T* w_, u32 m, u32 c, u32 group, const Place* all)
      : x(x_), w(w_), m0(m), c0(c), piece(threadIdx.x % 8), row0(threadIdx.x % 128 / 8), places(all) {
    aligned = reinterpret_cast<u64>(x) % (2 * kRun) == 0 && (!kDirect || reinterpret_cast<u64>(w) % (2 * kRunW) == 0);
    x += i64(group) * kInputs * kXsChannel;
    w += kDirect ? i64(group) * kOutputs * kWsOuter : i64(group * kTilesM + m0 / kM) * kSlices * (kM * 64);
    if (!kSideways) return;
    #pragma unroll
    for (u32 b = 0; b < (kSideways ? kN / 64 : 1); ++b) {
      #pragma unroll
      for (u32 h = 0; h < 8 / kRun; ++h) columns[b][h] = place_at(position_of(column(b, h) < kColumns ? column(b, h) : 0));
    }
  }
  u32 column(u32 block, u32 half) const { return c0 + block * 64 + piece * 8 + half * kRun; }

  void bring_one(u32 to, const Place& p, const Place& t, bool there) const {
    const bool ok = there && inside(p, t);
    copy_run<kRun>(to, x + (ok ? p.at + t.at : 0), ok, aligned);
  }
  void bring_weights(u32 slice, u32 to) const {
    #pragma unroll
    for (u32 h = 0; h < 8 / kRunW; ++h) {
      const Term term = term_of(slice * 64 + piece * 8 + h * kRunW);
      const int at = term.there ? weight_at(term) : 0;
      #pragma unroll
      for (u32 r = 0; r < kM; r += 16) {
        const bool ok = term.there && m0 + row0 + r < kOutputs;
        copy_run<kRunW>(to + piece_at(row0 + r, piece) + h * 2 * kRunW, w + (ok ? int(m0 + row0 + r) * kWsOuter + at : 0), ok, aligned);
      }
    }
  }
  void bring_columns(u32 slice, u32 to) const {
    if (kSideways) {
      #pragma unroll
      for (u32 r = 0; r < 64; r += 16) {
        const Term term = term_of(slice * 64 + row0 + r);
        const Place t = place_of_term(term);
        #pragma unroll
        for (u32 b = 0; b < kN / 64; ++b) {
          #pragma unroll
          for (u32 h = 0; h < 8 / kRun; ++h) bring_one(to + b * 8192 + piece_at(row0 + r, piece) + h * 2 * kRun, columns[b][h], t, term.there && column(b, h) < kColumns);
        }
      }
      return;
    }
    Place terms[8 / kRun];
    bool there[8 / kRun];
    #pragma unroll
    for (u32 h = 0; h < 8 / kRun; ++h) {
      const Term term = term_of(slice * 64 + piece * 8 + h * kRun);
      terms[h] = place_of_term(term), there[h] = term.there;
    }
    #pragma unroll
    for (u32 r = 0; r < kN; r += 16) {
      const Place p = places[row0 + r];
      #pragma unroll
      for (u32 h = 0; h < 8 / kRun; ++h) bring_one(to + piece_at(row0 + r, piece) + h * 2 * kRun, p, terms[h], there[h] && c0 + row0 + r < kColumns);
    }
  }
};

extern "C" __global__ void __launch_bounds__(kThreads, kBlocks) conv_rings(const T* x, const T* w, Params y, f32* parts) {
  extern __shared__ uint4 shared[];
  __shared__ u64 barriers[2 * kStages];
  __shared__ Place places[kSideways ? 1 : kN];
  const u32 ring = (place_of(shared) + 1023) & ~1023u, full = place_of(barriers), empty = full + 8 * kStages;
  const u32 warp = __shfl_sync(~0u, threadIdx.x / 32, 0), team = warp / 4, group = blockIdx.y;
  const u32 m0 = blockIdx.x % kTilesM * kM, c0 = blockIdx.x / kTilesM * kN;
  const u32 first = blockIdx.z * kEachSplit, last = first + kEachSplit < kSlices ? first + kEachSplit : kSlices;
  if (threadIdx.x == 0) {
    for (u32 i = 0; i < kStages; ++i) barrier_init(full + 8 * i, kDirect ? 128 : 129), barrier_init(empty + 8 * i, 4 * kTeams);
    asm volatile("fence.mbarrier_init.release.cluster;\nfence.proxy.async;" ::: "memory");
  }
  if (!kSideways) {
    for (u32 i = threadIdx.x; i < kN; i += kThreads) places[i] = place_at(position_of(c0 + i < kColumns ? c0 + i : 0));
  }
  __syncthreads();
  begin_alone();  // docs/performance/cuda.md: the next kernel must not meet the units of groups of warps
  u32 stage = 0, turn = 0;  // the turn of the ring, 0 and 1 in alternation
  const auto go_on = [&] {
    if (++stage == kStages) stage = 0, turn ^= 1;
  };
  if (team == kTeams) {
    const Bringer bringer(x, w, m0, c0, group, places);
    #pragma unroll 1
    for (u32 slice = first; slice < last; ++slice) {
      const u32 to = ring + stage * kPlaceBytes, ready = full + 8 * stage;
      if (slice - first >= kStages) barrier_wait(empty + 8 * stage, turn ^ 1);
      if (kDirect) {
        bringer.bring_weights(slice, to);
      } else if (threadIdx.x % 128 == 0) {
        barrier_expect(ready, kM * 128);
        copy_bulk(to, bringer.w + i64(slice) * (kM * 64), kM * 128, ready);
      }
      bringer.bring_columns(slice, to + kM * 128);
      if (bringer.aligned) {
        asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" :: "r"(ready) : "memory");
      } else {
        barrier_arrive(ready);
      }
      go_on();
    }
    return;
  }
  f32 sums[kN / 8][4];  // no zeros: the first product makes them, or products would wait for each other
  #pragma unroll 1
  for (u32 slice = first; slice < last; ++slice) {
    barrier_wait(full + 8 * stage, turn);
    asm volatile("fence.proxy.async;" ::: "memory");  // the units see what threads wrote
    const u32 rows = ring + stage * kPlaceBytes + team * 8192, columns = ring + stage * kPlaceBytes + kM * 128;
    products_begin();
    #pragma unroll
    for (u32 s = 0; s < 4; ++s) multiply_columns(sums, tile_at(rows + s * 32), kSideways ? turned_tile_at(columns + s * 2048) : tile_at(columns + s * 32), slice > first || s > 0);
    products_commit();
    products_wait<1>();  // the place before is free
    if (slice > first && threadIdx.x % 32 == 0) barrier_arrive(empty + 8 * (stage == 0 ? kStages - 1 : stage - 1));
    go_on();
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
