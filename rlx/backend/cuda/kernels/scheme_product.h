// Products of rows x [m, k] with weights [k, n] whose scales lie beside their codes (scheme_decoders.h): y[i, j] = sum over k, decoded inside of the product.
//
// A warp takes 16 rows of the weights at a time: lane (g, t), g = lane / 4, t = lane % 4, has rows 4 t .. 4 t + 3 of kLane columns from g kLane on, so that eight lanes read
// neighbours. On the matrix units columns of the weights are rows: the order of a sum is free, so that what a lane has read are its parts of kLane / 2 products
// of 16 columns, 16 k and 8 rows of x, column 2 i of the lane as row g of product i and column 2 i + 1 as row g + 8.
//
// Before the kernels stand T (of x and y), Codes and Factors (for kLane columns), kFeatures (k), kColumns (n), kGroup, kHasZero, kWide, kLane, kRows (of x), kRowTiles (of eight rows, of a block; rows where lanes have all of them), kTileRows (of a block), kSplit (blocks of a cluster
// that share k; parts are added in their order), kWideX (rows of x begin at multiples of 16 bytes), kEarly (no kernel before this one makes the weights), kOneScale (`zero` is one factor of all weights), kCodeUnit and the macro kClusterShape.
#pragma once

namespace rlx::cuda {

// What decoders need.
inline constexpr char kSchemePairs[] = R"cuda(
inline u32 pair(f32 low, f32 high, f16) { u32 r; asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(high), "f"(low)); return r; }
inline u32 pair(f32 low, f32 high, bf16) { u32 r; asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(high), "f"(low)); return r; }
inline u32 pair_sum(u32 a, u32 b, f16) { u32 r; asm("fma.rn.f16x2 %0, %1, %2, %3;" : "=r"(r) : "r"(a), "r"(0x3c003c00u), "r"(b)); return r; }
inline u32 pair_sum(u32 a, u32 b, bf16) { u32 r; asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(r) : "r"(a), "r"(0x3f803f80u), "r"(b)); return r; }
inline u32 pair_product(u32 a, u32 b, bf16) { u32 r; asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(r) : "r"(a), "r"(b), "r"(0x80008000u)); return r; }
)cuda";

inline constexpr char kSchemeShared[] = R"cuda(
struct Params { const T* x; Weights w; T* y; };

// As many rows of weights share factors, of those that a lane or a warp has: 1: one; 4: those of a lane; 16 or 32: those of a warp.
constexpr int kRun = kGroup == 0 || kGroup % 32 == 0 ? 32 : kGroup % 16 == 0 ? 16 : kGroup % 4 == 0 ? 4 : 1;

// The columns of a lane: the first one inside where there are 16 bytes or none.
inline int lane_column(int first, int g) {
  const int c = first + g * kLane;
  return kWide && c >= kColumns ? kColumns - kLane : c;
}

// Four neighbours of a row of x, zeros behind its end.
struct Quad { T v[4]; };
inline Quad quad_of(const T* row, int k, bool there) {
  Quad out{};
  if (kWideX) {
    if (there && k < kFeatures) {
      const auto all = load<4>(row + k);
      #pragma unroll
      for (int i = 0; i < 4; ++i) out.v[i] = all.v[i];
    }
    return out;
  }
  #pragma unroll
  for (int i = 0; i < 4; ++i) {
    if (there && k + i < kFeatures) out.v[i] = row[k + i];
  }
  return out;
}

// What is left to do for the sum of a column: the scale of the column or of all weights.
inline f32 finished(const Params& p, f32 sum, int column) {
  if (kGroup == 0) return sum * (static_cast<const f32*>(p.w.scale)[column] * kCodeUnit);
  return kOneScale ? sum * (p.w.zero[0] * kCodeUnit) : sum;
}
)cuda";

// For 16 bits.
inline constexpr char kSchemeFragments[] = R"cuda(
#define kMultiply(name) \
  asm("mma.sync.aligned.m16n8k16.row.col.f32." name "." name ".f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};" \
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1))
inline void multiply(f32 (&d)[4], const u32 (&a)[4], u32 b0, u32 b1, f16) { kMultiply("f16"); }
inline void multiply(f32 (&d)[4], const u32 (&a)[4], u32 b0, u32 b1, bf16) { kMultiply("bf16"); }

// A patch of weights as rows of product i: scaled and rounded to T, or the codes as they are.
inline void scaled_rows(u32 (&a)[4], const Codes& w, const Factors& f, const Weights& all, int k, int c, int i) {
  #pragma unroll
  for (int q = 0; q < 4; ++q) {
    const int h = q / 2, j = 2 * i + q % 2;
    if (kGroup == 0) {
      a[q] = w.codes(h, j, T{});
      continue;
    }
    f32 v[2];
    #pragma unroll
    for (int r = 0; r < 2; ++r) {
      if (kRun > 1) {
        v[r] = weight_of(w.code(2 * h + r, j), f, j);
      } else {
        Factors own;
        own.fetch(all, k + 2 * h + r, c);
        v[r] = weight_of(w.code(2 * h + r, j), own, j);
      }
    }
    a[q] = pair(v[0], v[1], T{});
  }
}
)cuda";

// Few rows: as fast as the weights can be read. A block has 8 kLane columns, its eight warps take 32 rows of weights in turn, and so do the blocks of a cluster.
// In 16 bits on the matrix units: where at least 16 neighbouring k share a factor and have no zero, it multiplies their sum. In f32 in true f32.
inline constexpr char kSchemeNarrowSums[] = R"cuda(
constexpr int kWarps = 8, kSteps = 2, kFactors = kRun == 32 ? 1 : 2;
constexpr bool kSumScaled = kGroup > 0 && !kHasZero && kRun >= 16;

// What a lane has of the sums of its columns: column 2 i + q / 2, row 2 t + q % 2 of a tile.
struct Sums {
  f32 acc[kLane / 2][kRowTiles][4] = {};
  void add(const Codes (&w)[kSteps], const Factors (&f)[kFactors], const Quad (&x)[kSteps][kRowTiles], const Params& p, int k, int c) {
    #pragma unroll
    for (int i = 0; i < kLane / 2; ++i) {
      f32 part[kRowTiles][4];
      #pragma unroll
      for (int s = 0; s < kSteps; ++s) {
        const Factors& own = f[kFactors == 2 ? s : 0];
        u32 a[4];
        if (kSumScaled) {
          #pragma unroll
          for (int q = 0; q < 4; ++q) a[q] = w[s].codes(q / 2, 2 * i + q % 2, T{});
        } else {
          scaled_rows(a, w[s], own, p.w, k + 16 * s, c, i);
        }
        #pragma unroll
        for (int r = 0; r < kRowTiles; ++r) {
          const u32 b0 = u32(x[s][r].v[0].bits) | u32(x[s][r].v[1].bits) << 16, b1 = u32(x[s][r].v[2].bits) | u32(x[s][r].v[3].bits) << 16;
          if (!kSumScaled) {
            multiply(acc[i][r], a, b0, b1, T{});
            continue;
          }
          if (s == 0 || kFactors == 2) {
            #pragma unroll
            for (int q = 0; q < 4; ++q) part[r][q] = 0;
          }
          multiply(part[r], a, b0, b1, T{});
          if (s == 1 || kFactors == 2) {
            #pragma unroll
            for (int q = 0; q < 4; ++q) acc[i][r][q] = fmaf(own.scale(2 * i + q / 2), part[r][q], acc[i][r][q]);
          }
        }
      }
    }
  }
  // `place` is [value][lane].
  void put_into(f32* place, int lane) const {
    #pragma unroll
    for (int i = 0; i < kLane / 2; ++i) {
      #pragma unroll
      for (int r = 0; r < kRowTiles; ++r) {
        #pragma unroll
        for (int q = 0; q < 4; ++q) place[((i * kRowTiles + r) * 4 + q) * 32 + lane] = acc[i][r][q];
      }
    }
  }
  static constexpr int kPlaces = 2 * kLane * kRowTiles * 32;
  static int row_at(int e) { return e / 128 % kRowTiles * 8 + e % 4 * 2 + e / 32 % 2; }
  static int column_at(int e) { return e % 32 / 4 * kLane + e / (128 * kRowTiles) * 2 + e / 64 % 2; }
};
)cuda";

inline constexpr char kSchemeWideSums[] = R"cuda(
constexpr int kWarps = 8, kSteps = 2, kFactors = kRun == 32 ? 1 : 2;

// What a lane has of the sums of its columns.
struct Sums {
  f32 acc[kLane][kRowTiles] = {};
  void add(const Codes (&w)[kSteps], const Factors (&f)[kFactors], const Quad (&x)[kSteps][kRowTiles], const Params& p, int k, int c) {
    #pragma unroll
    for (int s = 0; s < kSteps; ++s) {
      #pragma unroll
      for (int r = 0; r < 4; ++r) {
        Factors own = f[kFactors == 2 ? s : 0];
        if (kRun == 1) own.fetch(p.w, k + 16 * s + r, c);
        #pragma unroll
        for (int j = 0; j < kLane; ++j) {
          const f32 weight = weight_of(w[s].code(r, j), own, j);
          #pragma unroll
          for (int i = 0; i < kRowTiles; ++i) acc[j][i] = fmaf(x[s][i].v[r], weight, acc[j][i]);
        }
      }
    }
  }
  // `place` is [column of the lane][row][g].
  void put_into(f32* place, int lane) {
    #pragma unroll
    for (int j = 0; j < kLane; ++j) {
      #pragma unroll
      for (int i = 0; i < kRowTiles; ++i) {
        f32 sum = acc[j][i];
        sum += __shfl_xor_sync(~0u, sum, 1);
        sum += __shfl_xor_sync(~0u, sum, 2);
        if (lane % 4 == (j * kRowTiles + i) % 4) place[(j * kRowTiles + i) * 8 + lane / 4] = sum;
      }
    }
  }
  static constexpr int kPlaces = kLane * kRowTiles * 8;
  static int row_at(int e) { return e / 8 % kRowTiles; }
  static int column_at(int e) { return e % 8 * kLane + e / (8 * kRowTiles); }
};
)cuda";

// Rows of x that a lane reads: kRowTiles, of eight each where they are shared out among lanes.
inline constexpr char kSchemeRows[] = R"cuda(
extern "C" __global__ void kClusterShape __launch_bounds__(256, 2) scheme_rows(Params p) {
  extern __shared__ f32 parts[];
  constexpr bool kNarrowX = sizeof(T) == 2;
  constexpr int kBlockRows = kNarrowX ? 8 * kRowTiles : kRowTiles;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, g = lane / 4, t = lane % 4;
  const int rank = blockIdx.x % kSplit, first = blockIdx.x / kSplit * (8 * kLane), row0 = blockIdx.y * kBlockRows, c = lane_column(first, g);
  const int start = (rank * kWarps + warp) * 32;
  if (kEarly && kWide && g == 0) {
    #pragma unroll
    for (int r = 0; r < 8; ++r) {
      const int k = start + r / 4 * 16 + t * 4 + r % 4;
      if (k < kFeatures) asm volatile("prefetch.global.L2 [%0];" :: "l"(Codes::at(p.w.codes, k, c)));
    }
  }
  begin();
  Sums sums;
  for (int k0 = start; k0 < kFeatures; k0 += 32 * kWarps * kSplit) {
    Codes w[kSteps];
    Factors f[kFactors];
    Quad x[kSteps][kRowTiles];
    #pragma unroll
    for (int s = 0; s < kSteps; ++s) w[s].fetch(p.w.codes, k0 + 16 * s + 4 * t, c);
    #pragma unroll
    for (int s = 0; kRun > 1 && s < kFactors; ++s) f[s].fetch(p.w, k0 + 16 * s + (kRun == 4 ? 4 * t : 0), c);
    #pragma unroll
    for (int s = 0; s < kSteps; ++s) {
      #pragma unroll
      for (int i = 0; i < kRowTiles; ++i) {
        const int row = row0 + (kNarrowX ? 8 * i + g : i);
        x[s][i] = quad_of(p.x + i64(row) * kFeatures, k0 + 16 * s + 4 * t, row < kRows);
      }
    }
    asm volatile("" ::: "memory");  // all are on their way
    sums.add(w, f, x, p, k0 + 4 * t, c);
  }
  sums.put_into(parts + warp * Sums::kPlaces, lane);
  __syncthreads();
  if (kSplit > 1) {
    for (int e = threadIdx.x; e < Sums::kPlaces; e += 256) {
      f32 sum = parts[e];
      #pragma unroll
      for (int n = 1; n < kWarps; ++n) sum += parts[n * Sums::kPlaces + e];
      parts[e] = sum;
    }
    join_cluster();
  }
  for (int e = (kSplit > 1 ? rank * 256 : 0) + threadIdx.x; e < Sums::kPlaces; e += 256 * kSplit) {
    f32 sum = kSplit > 1 ? in_block(parts + e, 0) : parts[e];
    #pragma unroll
    for (int n = 1; n < (kSplit > 1 ? kSplit : kWarps); ++n) sum += kSplit > 1 ? in_block(parts + e, n) : parts[n * Sums::kPlaces + e];
    const int row = row0 + Sums::row_at(e), column = first + Sums::column_at(e);
    if (row < kRows && column < kColumns) put(p.y[i64(row) * kColumns + column], finished(p, sum, column));
  }
  if (kSplit > 1) join_cluster();  // nobody leaves while others read
}
)cuda";

// Many rows in 16 bits: tiles of 8 kRowTiles rows and 128 columns, 64 k at a time. Four warps share the columns, two the k of a stage. Weights go from memory into registers
// and are decoded there; x comes through a ring of kStages places of [rows][64] in shared memory, rows 160 bytes apart, so that lanes read from different banks.
inline constexpr char kSchemeTiles[] = R"cuda(
constexpr int kPitch = 80, kStages = 3, kDeep = 64, kStageCount = (kFeatures + kDeep - 1) / kDeep;
constexpr int kPieces = kTileRows * 8 / 256;  // of 16 bytes, that a thread moves

inline void copy16(u32 to, const T* from, int k, bool there) {
  if (kWideX) {
    const bool inside = there && k < kFeatures;
    asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;" :: "r"(to), "l"(inside ? from : from - k), "r"(inside ? 16 : 0) : "memory");
    return;
  }
  u32 v[4];
  #pragma unroll
  for (int i = 0; i < 4; ++i) {
    const u32 low = there && k + 2 * i < kFeatures ? from[2 * i].bits : 0, high = there && k + 2 * i + 1 < kFeatures ? from[2 * i + 1].bits : 0;
    v[i] = low | high << 16;
  }
  asm volatile("st.shared.v4.b32 [%0], {%1,%2,%3,%4};" :: "r"(to), "r"(v[0]), "r"(v[1]), "r"(v[2]), "r"(v[3]) : "memory");
}

extern "C" __global__ void kClusterShape __launch_bounds__(256, kRowTiles <= 4 ? 2 : 1) scheme_tiles(Params p) {
  extern __shared__ uint4 shared[];
  T* const ring = reinterpret_cast<T*>(shared);
  f32* const parts = reinterpret_cast<f32*>(shared);  // behind the last product
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, g = lane / 4, t = lane % 4, half = warp / 4;
  const int rank = blockIdx.x % kSplit, block0 = blockIdx.x / kSplit * 128, row0 = blockIdx.y * kTileRows, c = lane_column(block0 + warp % 4 * 32, g);
  const auto ask = [&](int stage, int slot) {
    if (stage < kStageCount) {
      #pragma unroll
      for (int i = 0; i < kPieces; ++i) {
        const int e = i * 256 + threadIdx.x, row = e / 8, at = e % 8 * 8, k = stage * kDeep + at;
        const bool there = row0 + row < kRows;
        copy16(u32(__cvta_generic_to_shared(ring + (slot * kTileRows + row) * kPitch + at)), p.x + i64(there ? row0 + row : 0) * kFeatures + k, k, there);
      }
    }
    asm volatile("cp.async.commit_group;" ::: "memory");
  };
  Codes next[2];
  Factors next_factors[2];
  const auto fetch = [&](int stage) {
    #pragma unroll
    for (int s = 0; s < 2; ++s) {
      const int k = stage * kDeep + half * 32 + s * 16;
      next[s].fetch(p.w.codes, k + 4 * t, c);
      if (kRun > 1) next_factors[s].fetch(p.w, k + (kRun == 4 ? 4 * t : 0), c);
    }
  };
  if (kEarly) fetch(rank);
  begin();
  if (!kEarly) fetch(rank);
  ask(rank, 0);
  ask(rank + kSplit, 1);
  f32 acc[2][kRowTiles][4] = {};
  int slot = 0;
  for (int stage = rank; stage < kStageCount; stage += kSplit) {
    asm volatile("cp.async.wait_group 1;" ::: "memory");
    __syncthreads();
    ask(stage + 2 * kSplit, slot == 0 ? 2 : slot - 1);
    Codes w[2];
    Factors f[2];
    #pragma unroll
    for (int s = 0; s < 2; ++s) w[s] = next[s], f[s] = next_factors[s];
    if (stage + kSplit < kStageCount) fetch(stage + kSplit);
    #pragma unroll
    for (int s = 0; s < 2; ++s) {
      const int deep = half * 32 + s * 16;
      u32 a[2][4];
      #pragma unroll
      for (int i = 0; i < 2; ++i) scaled_rows(a[i], w[s], f[s], p.w, stage * kDeep + deep + 4 * t, c, i);
      const T* const x = ring + (slot * kTileRows + g) * kPitch + deep + 4 * t;
      #pragma unroll
      for (int r = 0; r < kRowTiles; ++r) {
        const Pack<u32, 2> b = load<2>(reinterpret_cast<const u32*>(x + r * 8 * kPitch));
        multiply(acc[0][r], a[0], b.v[0], b.v[1], T{});
        multiply(acc[1][r], a[1], b.v[0], b.v[1], T{});
      }
    }
    slot = slot == kStages - 1 ? 0 : slot + 1;
  }
  asm volatile("cp.async.wait_group 0;" ::: "memory");
  __syncthreads();
  // [warp of four][row tile][low or high row][column of the lane][lane]
  constexpr int kPlaces = kRowTiles * 8 * 32;
  f32* const own = parts + warp % 4 * kPlaces + lane;
  if (half == 1) {
    #pragma unroll
    for (int r = 0; r < kRowTiles; ++r) {
      #pragma unroll
      for (int v = 0; v < 8; ++v) own[(r * 8 + v) * 32] = acc[v % 4 / 2][r][v / 4 + v % 2 * 2];
    }
  }
  __syncthreads();
  if (half == 0) {
    #pragma unroll
    for (int r = 0; r < kRowTiles; ++r) {
      #pragma unroll
      for (int v = 0; v < 8; ++v) own[(r * 8 + v) * 32] += acc[v % 4 / 2][r][v / 4 + v % 2 * 2];
    }
  }
  __syncthreads();
  if (kSplit > 1) join_cluster();
  // A thread stores four neighbouring columns.
  for (int e = (kSplit > 1 ? rank * 256 : 0) + threadIdx.x; e < kPlaces; e += 256 * kSplit) {
    const int from = e % 32, group = e / 32, tile = group / 2 % kRowTiles, high = group % 2, quarter = group / (2 * kRowTiles);
    const f32* const place = parts + quarter * kPlaces + (tile * 8 + high * 4) * 32 + from;
    f32 sum[4];
    #pragma unroll
    for (int j = 0; j < 4; ++j) {
      sum[j] = kSplit > 1 ? in_block(place + j * 32, 0) : place[j * 32];
      #pragma unroll
      for (int n = 1; n < kSplit; ++n) sum[j] += in_block(place + j * 32, n);
    }
    const int row = row0 + tile * 8 + from % 4 * 2 + high, column = block0 + quarter * 32 + from / 4 * 4;
    if (row >= kRows) continue;
    T* const to = p.y + i64(row) * kColumns + column;
    if (kWide) {
      if (column >= kColumns) continue;
      Pack<T, 4> four;
      #pragma unroll
      for (int j = 0; j < 4; ++j) put(four.v[j], finished(p, sum[j], column + j));
      store(to, four);
    } else {
      #pragma unroll
      for (int j = 0; j < 4; ++j) {
        if (column + j < kColumns) put(to[j], finished(p, sum[j], column + j));
      }
    }
  }
  if (kSplit > 1) join_cluster();  // nobody leaves while others read
}
)cuda";

// Many rows in f32: tiles of kTileRows rows and 128 columns in true f32, weights decoded into shared memory, 32 k at a time, the next ones on their way meanwhile.
inline constexpr char kSchemeWideTiles[] = R"cuda(
extern "C" __global__ void __launch_bounds__(256) scheme_wide_tiles(Params p) {
  constexpr int kDeep = 32, kOwn = kTileRows / 16, kPieces = kTileRows * 8 / 256;
  __shared__ alignas(16) f32 xs[kDeep][kTileRows + 4];
  __shared__ alignas(16) f32 ws[kDeep][132];
  const int row0 = blockIdx.y * kTileRows, first = blockIdx.x * 128;
  const int tx = threadIdx.x % 16, ty = threadIdx.x / 16, patch_row = threadIdx.x / 32 * 4, patch = threadIdx.x % 32 * 4;
  const int inside = first + patch, c = kWide && inside >= kColumns ? kColumns - 4 : inside;
  Codes next;
  Factors factors;
  Quad rows[kPieces];
  const auto fetch = [&](int k0) {
    next.fetch(p.w.codes, k0 + patch_row, c);
    if (kRun > 1) factors.fetch(p.w, k0 + patch_row, c);
    #pragma unroll
    for (int i = 0; i < kPieces; ++i) {
      const int e = i * 256 + threadIdx.x, row = row0 + e / 8;
      rows[i] = quad_of(p.x + i64(row) * kFeatures, k0 + e % 8 * 4, row < kRows);
    }
  };
  fetch(0);
  f32 acc[kOwn][8] = {};
  for (int k0 = 0; k0 < kFeatures; k0 += kDeep) {
    __syncthreads();
    #pragma unroll
    for (int r = 0; r < 4; ++r) {
      if (kRun == 1) factors.fetch(p.w, k0 + patch_row + r, c);
      Pack<f32, 4> four;
      #pragma unroll
      for (int j = 0; j < 4; ++j) four.v[j] = weight_of(next.code(r, j), factors, j);
      store(&ws[patch_row + r][patch], four);
    }
    #pragma unroll
    for (int i = 0; i < kPieces; ++i) {
      const int e = i * 256 + threadIdx.x;
      #pragma unroll
      for (int j = 0; j < 4; ++j) xs[e % 8 * 4 + j][e / 8] = rows[i].v[j];
    }
    __syncthreads();
    if (k0 + kDeep < kFeatures) fetch(k0 + kDeep);
    #pragma unroll 8
    for (int d = 0; d < kDeep; ++d) {
      f32 a[kOwn], b[8];
      #pragma unroll
      for (int i = 0; i < kOwn; i += 4) {
        const auto four = load<4>(&xs[d][i * 16 + ty * 4]);
        #pragma unroll
        for (int u = 0; u < 4; ++u) a[i + u] = four.v[u];
      }
      #pragma unroll
      for (int j = 0; j < 8; j += 4) {
        const auto four = load<4>(&ws[d][j * 16 + tx * 4]);
        #pragma unroll
        for (int u = 0; u < 4; ++u) b[j + u] = four.v[u];
      }
      #pragma unroll
      for (int i = 0; i < kOwn; ++i) {
        #pragma unroll
        for (int j = 0; j < 8; ++j) acc[i][j] = fmaf(a[i], b[j], acc[i][j]);
      }
    }
  }
  #pragma unroll
  for (int i = 0; i < kOwn; ++i) {
    #pragma unroll
    for (int j = 0; j < 8; ++j) {
      const int row = row0 + i / 4 * 64 + ty * 4 + i % 4, column = first + j / 4 * 64 + tx * 4 + j % 4;
      if (row < kRows && column < kColumns) p.y[i64(row) * kColumns + column] = finished(p, acc[i][j], column);
    }
  }
}
)cuda";

}  // namespace rlx::cuda
