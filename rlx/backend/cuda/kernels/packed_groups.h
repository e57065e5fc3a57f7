// Products of many rows with packed weights on the matrix units of Hopper, with activations in codes of 8 bits. Inside of a run (256 k where blocks hold 256, else 32) a weight is a whole number of at
// most 11 bits times a number of its block, and x is a code times a number of its run:
//   w = d (c p) - e l,  x = s q      c p: the scale of a strip times its code, l: the least value of a strip
//   y = sum over runs of s (d sum (c p) q - e sum over strips of l sum q)
// Both sums are products in f16 of whole numbers, exact up to 2^24, and their factors are applied in f32, once for each run.
//
// A block has 128 columns of the weights, the rows of the products, 64 for each of two groups of four warps, and 128 rows of x. A lane decodes its own part of the left operand in registers: weights go to
// no shared memory. Lane (g, t) has columns g and g + 8 of its warp and a quarter t of what a column has, whose places along k the kernel that rounds x follows:
//   word v of a quarter has the codes of products 2 v (low half) and 2 v + 1, of which bytes 0 and 2 are places 2 t and 2 t + 1, bytes 1 and 3 places 2 t + 8 and 2 t + 9
// x lies in memory as it will lie in shared memory: for each 128 rows and kDeep features a chunk of kTiles tiles [128][64] (matrix_groups.h), sums of codes, and s [runs][128]; a warp of its own copies chunks ahead.
#pragma once

namespace rlx::cuda {

// After kPackedShared; T.
inline constexpr char kPackedChunks[] = R"cuda(
constexpr int kTiles = kRun / 64 > 0 ? kRun / 64 : 1, kDeep = 64 * kTiles, kRuns = kDeep / kRun, kChunks = kFeatures / kDeep;
template <class F, int kElements> struct Pairs { static constexpr int kApart = 1; };
template <class F> struct Pairs<F, 256> { static constexpr int kApart = F::kApart; };
constexpr int kApart = Pairs<Format, kRun>::kApart;
constexpr int kTileBytes = 128 * 128, kSumsAt = kTiles * kTileBytes, kScalesAt = kSumsAt + (Format::kOffsets ? 4096 : 0);
constexpr int kUsedBytes = kScalesAt + kRuns * 512, kChunkBytes = (kUsedBytes + 1023) / 1024 * 1024;
)cuda";

// x as chunks: a thread has kOwn neighbours of a row. Rows behind the last are zeros. Sums of the codes of a strip are two numbers of f16, a multiple of 64 and what is left, [half][128] of eight strips.
inline constexpr char kPackedChunkRounding[] = R"cuda(
extern "C" __global__ void __launch_bounds__(256) packed_chunks(const T* x, u8* chunks, int m, int rows) {
  const i64 e = i64(blockIdx.x) * 256 + threadIdx.x, row = e * kOwn / kFeatures;
  const int k = int(e * kOwn - row * kFeatures), r = int(row % 128);
  f32 v[kOwn] = {};
  if (row < m) {
    constexpr int kTogether = 4;
    #pragma unroll
    for (int i = 0; i < kOwn; i += kTogether) {
      const auto some = load<kTogether>(x + e * kOwn + i);
      #pragma unroll
      for (int u = 0; u < kTogether; ++u) v[i + u] = as_f32(some.v[u]);
    }
  }
  const Rounded q = rounded(v);
  if (row >= rows) return;
  u8* const chunk = chunks + (row / 128 * kChunks + k / kDeep) * kChunkBytes;
  #pragma unroll
  for (int i = 0; i < kOwn / 4; ++i) {
    // Four neighbours are a word of a lane's: of strip 2 t + half of a block, or of half a strip.
    const int at = (k + 4 * i) % kDeep;
    const int t = kRun == 256 ? pair_of(kApart, at / 32) : at / 4 % 4;
    const int product = kRun == 256 ? at % 32 / 4 * 2 + place_in_pair(kApart, at / 32) : at / 16;
    u16 h[4];
    #pragma unroll
    for (int j = 0; j < 4; ++j) h[j] = to_f16(f32(i32(i8(q.code[i] >> (8 * j))))).bits;
    u8* const to = chunk + product / 4 * kTileBytes + r * 128 + 4 * t;
    const int piece = product % 4 * 2;
    *reinterpret_cast<u32*>(to + (piece ^ r % 8) * 16) = u32(h[0]) | u32(h[2]) << 16;
    *reinterpret_cast<u32*>(to + ((piece + 1) ^ r % 8) * 16) = u32(h[1]) | u32(h[3]) << 16;
  }
  if (k % kRun == 0) reinterpret_cast<f32*>(chunk + kScalesAt)[k % kDeep / kRun * 128 + r] = q.scale;
  if (Format::kOffsets && k % 32 == 0) {
    const i32 sum = q.half[0] + q.half[1], rest = sum & 63;
    u16* const to = reinterpret_cast<u16*>(chunk + kSumsAt + r * 16) + k % 256 / 32;
    to[0] = to_f16(f32(sum - rest)).bits;
    to[1024] = to_f16(f32(rest)).bits;
  }
}
)cuda";

// What a lane has of one column in one chunk. The products of q6_k that are above 2048 are rounded to f16. `fetch` asks for it; `prepare` makes the numbers of the runs; word v becomes two pairs of two products.
inline constexpr char kPackedQuarters[] = R"cuda(
inline u32 fma2(u32 x, u32 y, u32 z) {
  u32 out;
  asm("fma.rn.f16x2 %0, %1, %2, %3;" : "=r"(out) : "r"(x), "r"(y), "r"(z));
  return out;
}
constexpr u32 kThousand = 0x64006400u;  // 1024, whose last bits are whole numbers
inline f32 f32_of(u32 half) { f16 h; h.bits = u16(half); return as_f32(h); }

// d | e | 12 bytes of scales and least values | fifth bits | nibbles: strips 2 t and 2 t + 1.
template <bool Fifth> struct QuarterOfK {
  static constexpr int kCodes = Fifth ? 48 : 16;
  u32 head[4], code[8], fifth[Fifth ? 8 : 1];
  u32 scale[2], shift[2], leasts;
  f32 d[1], e;
  void fetch(const u8* block, int t) {
    words<alignment_at(Format::kBytes, 0), 4>(block, head);
    words<alignment_at(Format::kBytes, kCodes), 8>(block + kCodes + 32 * t, code);
    if (Fifth) words<alignment_at(Format::kBytes, 16), 8>(block + 16, fifth);
  }
  void prepare(int t) {
    u32 scales, least;
    two_scales(head, t, scales, least);
    scale[0] = fma2(__byte_perm(scales, kThousand, 0x5050), 0x3c003c00u, 0xe400e400u);  // less 1024
    scale[1] = fma2(__byte_perm(scales, kThousand, 0x5151), 0x2c002c00u, 0xd400d400u);  // and over 16
    shift[0] = fma2(scale[0], 0xe400e400u, 0), shift[1] = fma2(scale[1], 0xe400e400u, 0);
    leasts = fma2(__byte_perm(least, kThousand, 0x5150), 0x3c003c00u, 0xe400e400u);
    d[0] = f32_of(head[0]), e = f32_of(head[0] >> 16);
    if (Fifth) {
      #pragma unroll
      for (int v = 0; v < 8; ++v) fifth[v] >>= 2 * t;
    }
  }
  // Codes of the low nibbles stand in bits 0 .., those of the high ones in bits 4 .. of 1024 and more.
  void pairs(int v, u32 (&a)[2][2]) const {
    #pragma unroll
    for (int p = 0; p < 2; ++p) {
      const u32 c = code[v] >> (8 * p), f = Fifth ? fifth[v] >> (8 * p) : 0u;
      const u32 low = (c & 0x000f000fu) | kThousand, high = (c & 0x00f000f0u) | kThousand;
      if (Fifth) {  // without registers for what is taken off
        a[0][p] = fma2(fma2(low | (f & 0x00010001u) << 4, 0x3c003c00u, 0xe400e400u), scale[0], 0);
        a[1][p] = fma2(fma2(high | (f & 0x00020002u) << 7, 0x3c003c00u, 0xe400e400u), scale[1], 0);
      } else {
        a[0][p] = fma2(low, scale[0], shift[0]), a[1][p] = fma2(high, scale[1], shift[1]);
      }
    }
  }
};

// Low bits | high bits | scales of 16 | d, less 32: strips 4 h + j and 4 h + j + 2 with t = 2 h + j.
struct QuarterOf6 {
  u32 code[8], top[8], scales[2], head;
  u32 scale[2][2];  // of halves of strips
  f32 d[1];
  static constexpr f32 e = 0;
  static constexpr u32 leasts = 0;
  void fetch(const u8* block, int t) {
    words<alignment_at(Q6_K::kBytes, 32), 8>(block + 32 * t, code);
    words<alignment_at(Q6_K::kBytes, 128), 8>(block + 128 + t / 2 * 32, top);
    scales[0] = two_bytes(block + 192 + t / 2 * 8 + t % 2 * 2), scales[1] = two_bytes(block + 196 + t / 2 * 8 + t % 2 * 2);
    head = two_bytes(block + 208);
  }
  void prepare(int t) {
    #pragma unroll
    for (int p = 0; p < 2; ++p) {
      const u32 c = scales[p] ^ 0x8080u;
      scale[p][0] = fma2(__byte_perm(c, kThousand, 0x5050), 0x3c003c00u, 0xe480e480u);  // less 1152
      scale[p][1] = fma2(__byte_perm(c, kThousand, 0x5151), 0x3c003c00u, 0xe480e480u);
    }
    d[0] = f32_of(head);
    #pragma unroll
    for (int v = 0; v < 8; ++v) top[v] >>= t % 2 * 2;
  }
  void pairs(int v, u32 (&a)[2][2]) const {
    #pragma unroll
    for (int p = 0; p < 2; ++p) {
      const u32 c = code[v] >> (8 * p), f = top[v] >> (8 * p);
      const u32 low = fma2((c & 0x000f000fu) | (f & 0x00030003u) << 4 | kThousand, 0x3c003c00u, 0xe420e420u);   // less 1056
      const u32 high = fma2((c & 0x00f000f0u) | (f & 0x00300030u) << 4 | kThousand, 0x2c002c00u, 0xd600d600u);  // over 16, less 96
      a[0][p] = fma2(low, scale[0][v / 4], 0), a[1][p] = fma2(high, scale[1][v / 4], 0);
    }
  }
};

// d | nibbles, less 8: word t of each of two blocks.
struct QuarterOf4 {
  u32 head[2], code[2];
  f32 d[2];
  static constexpr f32 e = 0;
  static constexpr u32 leasts = 0;
  void fetch(const u8* block, int t) {
    #pragma unroll
    for (int i = 0; i < 2; ++i) {
      head[i] = two_bytes(block + 18 * i);
      words<alignment_at(18, 2), 1>(block + 18 * i + 2 + 4 * t, &code[i]);
    }
  }
  void prepare(int) { d[0] = f32_of(head[0]), d[1] = f32_of(head[1]); }
  void pairs(int v, u32 (&a)[2][2]) const {
    #pragma unroll
    for (int p = 0; p < 2; ++p) {
      const u32 c = code[v] >> (8 * p);
      a[0][p] = fma2((c & 0x000f000fu) | kThousand, 0x3c003c00u, 0xe408e408u);  // less 1032
      a[1][p] = fma2((c & 0x00f000f0u) | kThousand, 0x2c002c00u, 0xd480d480u);  // over 16, less 72
    }
  }
};

// d | 32 codes: words t and t + 4 of each of two blocks.
struct QuarterOf8 {
  u32 head[2], code[2][2];
  f32 d[2];
  static constexpr f32 e = 0;
  static constexpr u32 leasts = 0;
  void fetch(const u8* block, int t) {
    #pragma unroll
    for (int i = 0; i < 2; ++i) {
      head[i] = two_bytes(block + 34 * i);
      #pragma unroll
      for (int h = 0; h < 2; ++h) words<alignment_at(34, 2), 1>(block + 34 * i + 2 + 4 * t + 16 * h, &code[i][h]);
    }
  }
  void prepare(int) { d[0] = f32_of(head[0]), d[1] = f32_of(head[1]); }
  void pairs(int v, u32 (&a)[2][2]) const {
    #pragma unroll
    for (int h = 0; h < 2; ++h) {
      const u32 c = code[v][h] ^ 0x80808080u;
      a[h][0] = fma2(__byte_perm(c, kThousand, 0x5250), 0x3c003c00u, 0xe480e480u);  // less 1152
      a[h][1] = fma2(__byte_perm(c, kThousand, 0x5351), 0x3c003c00u, 0xe480e480u);
    }
  }
};
)cuda";

// After kMatrixGroups, with Quarter, kPlaces of chunks in shared memory and kWide: rows of y begin at multiples of 16 bytes.
inline constexpr char kPackedGroups[] = R"cuda(
// total += sum * factor of the column * s of the row
inline void add_scaled(f32 (&total)[16][4], const f32 (&sum)[16][4], f32 first, f32 second, const u8* scales, int t) {
  #pragma unroll
  for (int n = 0; n < 16; ++n) {
    const Pack<f32, 2> s = load<2>(reinterpret_cast<const f32*>(scales) + n * 8 + t * 2);
    #pragma unroll
    for (int i = 0; i < 4; ++i) total[n][i] = fmaf(sum[n][i] * (i < 2 ? first : second), s.v[i % 2], total[n][i]);
  }
}
// 16 lanes of 128 rows, [half][row]: eight rows are 128 bytes.
inline u64 plain_tile_at(u32 place) { return u64(place >> 4 & 0x3fff) | u64(128) << 16 | u64(8) << 32; }

// 16 columns and 16 rows of y, columns 16 warp + g and + 8 of a thread: through shared memory, so that rows are written in pieces of 16 bytes.
inline void put_rows(T* tile, const f32 (&total)[16][4], int i, T* y, int row, int column, int m, int n, int lane) {
  constexpr int kStride = 16 + 16 / sizeof(T), kPiece = 16 / sizeof(T);
  #pragma unroll
  for (int h = 0; h < 2; ++h) {
    #pragma unroll
    for (int e = 0; e < 4; ++e) put(tile[(h * 8 + lane % 4 * 2 + e % 2) * kStride + lane / 4 + e / 2 * 8], total[i + h][e]);
  }
  __syncwarp();
  constexpr int kTogether = kWide ? kPiece : 1;
  #pragma unroll
  for (int e = lane; e < 256 / kTogether; e += 32) {
    const int r = e / (16 / kTogether), c = e % (16 / kTogether) * kTogether;
    if (row + r < m && column + c < n) store(y + i64(row + r) * n + column + c, load<kTogether>(tile + r * kStride + c));
  }
  __syncwarp();
}

// Blocks stay and take tiles in turn; neighbours have the same columns. The copies of the next tile begin while results are written.
extern "C" __global__ void __launch_bounds__(384, 1) packed_groups(const u8* x, const u8* w, T* y, int m, int n, int row_tiles, int tiles) {
  extern __shared__ uint4 shared[];
  __shared__ u64 barriers[kPlaces * (kTiles + 1)];
  __shared__ alignas(16) T results[8][16 * (16 + 16 / sizeof(T))];
  const u32 ring = (place_of(shared) + 1023) & ~1023u, full = place_of(barriers), empty = full + 8 * kPlaces * kTiles;
  const u8* const memory = reinterpret_cast<const u8*>(shared) + (ring - place_of(shared));
  const int lane = threadIdx.x % 32, warp = __shfl_sync(~0u, threadIdx.x / 32, 0), g = lane / 4, t = lane % 4;
  if (threadIdx.x == 0) {
    for (int i = 0; i < kPlaces * kTiles; ++i) barrier_init(full + 8 * i, 1);
    for (int i = 0; i < kPlaces; ++i) barrier_init(empty + 8 * i, 256);
    asm volatile("fence.mbarrier_init.release.cluster;\nfence.proxy.async;" ::: "memory");
  }
  __syncthreads();
  begin_alone();
  int place = 0, round = 0;
  const auto go_on = [&] {
    if (++place == kPlaces) place = 0, ++round;
  };
  if (warp >= 8) {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 24;");
    if (threadIdx.x != 256) return;
    for (int item = blockIdx.x; item < tiles; item += gridDim.x) {
      const u8* from = x + i64(item % row_tiles) * kChunks * kChunkBytes;
      for (int c = 0; c < kChunks; ++c, from += kChunkBytes, go_on()) {
        if (round > 0) barrier_wait(empty + 8 * place, (round - 1) % 2);
        for (int i = 0; i < kTiles; ++i) {
          const int bytes = i + 1 < kTiles ? kTileBytes : kUsedBytes - i * kTileBytes;
          const u32 barrier = full + 8 * (place * kTiles + i);
          barrier_expect(barrier, bytes);
          asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
                       :: "r"(ring + place * kChunkBytes + i * kTileBytes), "l"(from + i * kTileBytes), "r"(bytes), "r"(barrier) : "memory");
        }
      }
    }
    return;
  }
  asm volatile("setmaxnreg.inc.sync.aligned.u32 240;");
  // Groups take turns on the units: while one multiplies, the other applies factors and decodes. Left to themselves both would do the same at the same time. With runs of 32 turns are too short to gain.
  constexpr bool kTurns = kRun == 256;
  const int group = warp / 4;
  const auto wait_turn = [&] {
    if (kTurns) asm volatile("bar.sync %0, 256;" :: "r"(2 + group) : "memory");
  };
  const auto give_turn = [&](bool last) {
    if (kTurns && (group == 0 || !last)) asm volatile("bar.arrive %0, 256;" :: "r"(3 - group) : "memory");
  };
  if (group == 1) give_turn(false);
  constexpr int kStepBytes = kDeep / Format::kElements * Format::kBytes;
  const auto column_of = [&](int item) { return item / row_tiles * 128 + warp * 16; };
  Quarter next[2];
  const u8* from[2];
  const auto turn_to = [&](int item) {
    #pragma unroll
    for (int h = 0; h < 2; ++h) {
      const int column = column_of(item) + g + 8 * h;
      from[h] = w + i64(column < n ? column : n - 1) * kRowBytes;
    }
  };
  const auto fetch = [&] {
    #pragma unroll
    for (int h = 0; h < 2; ++h) next[h].fetch(from[h], t), from[h] += kStepBytes;
  };
  turn_to(blockIdx.x);
  fetch();
  f32 sum[16][4] = {};
  #pragma unroll 1
  for (int item = blockIdx.x; item < tiles; item += gridDim.x) {
    const int then = item + gridDim.x < tiles ? item + gridDim.x : item;
    f32 total[16][4] = {};
    #pragma unroll 1
    for (int c = 0; c < kChunks; ++c) {
      Quarter now[2] = {next[0], next[1]};
      const bool ends = c + 1 == kChunks, last = ends && then == item;
      if (ends) turn_to(then);
      fetch();
      now[0].prepare(t), now[1].prepare(t);
      const u32 chunk = ring + place * kChunkBytes;
      const u8* const scales = memory + place * kChunkBytes + kScalesAt;
      u32 a[2][4][4];
      #pragma unroll
      for (int i = 0; i < kTiles; ++i) {
        #pragma unroll
        for (int v = 0; v < 2; ++v) {
          u32 one[2][2], other[2][2];
          now[0].pairs(2 * i + v, one), now[1].pairs(2 * i + v, other);
          #pragma unroll
          for (int h = 0; h < 2; ++h) {
            u32 (&to)[4] = a[i % 2][2 * v + h];
            to[0] = one[h][0], to[1] = other[h][0], to[2] = one[h][1], to[3] = other[h][1];
          }
        }
        barrier_wait(full + 8 * (place * kTiles + i), round % 2);
        #pragma unroll
        for (int v = 0; v < 2; ++v) {
          if (kRun == 32 || (i == 0 && v == 0)) wait_turn();
          if (v == 0 || kRun == 32) {
            hold(a[i % 2]);
            hold(sum);
            products_begin();
          }
          #pragma unroll
          for (int h = 0; h < 2; ++h) {
            const int s = 2 * v + h;
            multiply128(sum, a[i % 2][s], tile_at(chunk + i * kTileBytes + s * 32), (kRun == 32 ? h : i * 4 + s) > 0, f16{});
          }
          if (kRun == 32) {
            products_commit();
            give_turn(last && v == 1);
            products_wait<0>();
            hold(sum);
            add_scaled(total, sum, now[0].d[v % kRuns], now[1].d[v % kRuns], scales + v * 512, t);
          }
        }
        if (kRun == 256) {
          products_commit();
          if (i + 1 == kTiles) give_turn(last);
          products_wait<1>();
        }
      }
      if (kRun == 256) {
        products_wait<0>();
        hold(sum);
        add_scaled(total, sum, now[0].d[0], now[1].d[0], scales, t);
        if (Format::kOffsets) {
          u32 least[1][4] = {{now[0].leasts, now[1].leasts, now[0].leasts, now[1].leasts}};
          hold(least);
          hold(sum);
          products_begin();
          multiply128(sum, least[0], plain_tile_at(chunk + kSumsAt), 0, f16{});
          products_end();
          hold(sum);
          add_scaled(total, sum, -now[0].e, -now[1].e, scales, t);
        }
      }
      barrier_arrive(empty + 8 * place);
      go_on();
    }
    #pragma unroll
    for (int i = 0; i < 16; i += 2) put_rows(results[warp], total, i, y, item % row_tiles * 128 + i * 8, column_of(item), m, n, lane);
  }
}
)cuda";

}  // namespace rlx::cuda
