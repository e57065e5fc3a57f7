// The gradients of attention for f16 and bf16 without the matrix of scores: weights p = exp(s - lse) are made again, tile by tile, on matrix units.
// One kernel has keys in place and queries going by (dk, dv), one has queries in place and keys going by (dq): two products more than one kernel for all three would
// need, and every sum has a fixed order. After kAttentionShared, kAttentionWeights and kAttentionTiles (attention.h); before it stand also kEven: rows begin at multiples of 16
// bytes, and kRowTiles: what goes by is read once for 16 kRowTiles rows of a warp. Heads have a multiple of 16 lanes, at most 128.
#pragma once

namespace rlx::cuda {

inline constexpr char kAttentionBackward[] = R"cuda(
struct Gradients {
  const T* dy;
  const f32 *lse, *delta;
  T *dq, *dk, *dv;
  Heads ys, dqs, dks, dvs;
};

constexpr f32 kLog2e = 1.4426950408889634f;
constexpr int kPlace = 64 * kRowTiles;                               // rows of a block that stay
constexpr int kTile = kRowTiles == 1 && kDim <= 64 && kValueDim <= 64 ? 64 : 32;  // rows that go by
constexpr int kStride = kDim + 8, kValueStride = kValueDim + 8;      // of rows in shared memory
typedef f32 Scores[kRowTiles][kTile / 8][4];
template <int Lanes> using Sums = f32[kRowTiles][Lanes / 8][4];

inline void copy4(void* to, const void* from, bool there) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" :: "r"(u32(__cvta_generic_to_shared(to))), "l"(from), "r"(there ? 4 : 0));
}

// Rows first .. of a matrix of `count` rows; zeros behind its end.
template <int Rows, int Lanes> void fetch_rows(T* to, const T* from, i64 stride, int first, int count) {
  for (int e = threadIdx.x; e < Rows * (Lanes / 8); e += 128) {
    const int r = e / (Lanes / 8), d = e % (Lanes / 8) * 8;
    const bool there = first + r < count;
    const T* const at = from + i64(there ? first + r : 0) * stride + d;
    T* const place = to + r * (Lanes + 8) + d;
    if (kEven) {
      copy16(place, at, there);
    } else {
      for (int i = 0; i < 8; ++i) place[i] = there ? at[i] : T{};
    }
  }
}

// s += a b^T for the rows of a warp in a and kTile rows of b.
template <int Lanes> void add_scores(Scores& s, const T* a, const T* b, int lane) {
  #pragma unroll
  for (int d = 0; d < Lanes / 16; ++d) {
    u32 x[kRowTiles][4];
    #pragma unroll
    for (int t = 0; t < kRowTiles; ++t) load_matrices(x[t], a + (t * 16 + lane % 16) * (Lanes + 8) + d * 16 + lane / 16 * 8);
    #pragma unroll
    for (int n = 0; n < kTile / 8; n += 2) {
      u32 y[4];
      load_matrices(y, b + (n * 8 + lane % 8 + lane / 16 * 8) * (Lanes + 8) + d * 16 + lane / 8 % 2 * 8);
      #pragma unroll
      for (int t = 0; t < kRowTiles; ++t) {
        multiply(s[t][n], x[t], y[0], y[1], T{});
        multiply(s[t][n + 1], x[t], y[2], y[3], T{});
      }
    }
  }
}

// d += w b.
template <int Lanes> void add_weighted(Sums<Lanes>& d, const Scores& w, const T* b, int lane) {
  #pragma unroll
  for (int n = 0; n < kTile / 16; ++n) {
    u32 a[kRowTiles][4];
    #pragma unroll
    for (int t = 0; t < kRowTiles; ++t) {
      a[t][0] = pair(w[t][2 * n][0], w[t][2 * n][1], T{}), a[t][1] = pair(w[t][2 * n][2], w[t][2 * n][3], T{});
      a[t][2] = pair(w[t][2 * n + 1][0], w[t][2 * n + 1][1], T{}), a[t][3] = pair(w[t][2 * n + 1][2], w[t][2 * n + 1][3], T{});
    }
    #pragma unroll
    for (int c = 0; c < Lanes / 16; ++c) {
      u32 y[4];
      load_transposed(y, b + (n * 16 + lane % 16) * (Lanes + 8) + c * 16 + lane / 16 * 8);
      #pragma unroll
      for (int t = 0; t < kRowTiles; ++t) {
        multiply(d[t][2 * c], a[t], y[0], y[1], T{});
        multiply(d[t][2 * c + 1], a[t], y[2], y[3], T{});
      }
    }
  }
}

// All keys are seen by all queries; only those behind a query are not; any mask.
enum class TileKind { open, causal, any };

// The product s = q k becomes the weight, ds = dy v the gradient of the score but for the factor `scale`. `base` is lse log2(e).
template <TileKind Kind> void weigh_back(const Params& p, f32& s, f32& ds, bool open, f32 base, f32 delta, i64 b, i64 h, int i, int j) {
  f32 slope = 1;
  if (Kind != TileKind::any) {
    const bool seen = Kind == TileKind::open || j <= i + p.k_len - p.q_len;
    s = seen ? power_of_two(fmaf(s, p.scale * kLog2e, -base)) : 0.0f;
  } else {
    if (kSoftcap) {
      const f32 t = tanhf(s * p.scale / p.softcap);
      slope = 1.0f - t * t;
    }
    s = open ? power_of_two(fmaf(masked(p, s, b, h, i < p.q_len ? i : p.q_len - 1, j), kLog2e, -base)) : 0.0f;
  }
  ds = s * (ds - delta) * slope;
}
struct OpenTile { static constexpr TileKind value = TileKind::open; };
struct CausalTile { static constexpr TileKind value = TileKind::causal; };
struct AnyTile { static constexpr TileKind value = TileKind::any; };
// One loop over the scores of a tile for each kind.
template <class Weigh> void weigh_tile(Weigh weigh, bool simple, bool behind) {
  if (!simple) {
    weigh(AnyTile{});
  } else if (kCausal && behind) {
    weigh(CausalTile{});
  } else {
    weigh(OpenTile{});
  }
}
inline f32 base_of(f32 lse) { return lse == -from_bits(0x7f800000u) ? 0.0f : lse * kLog2e; }

template <int N> void write_gradient(T* to, const f32 (&x)[N][4], int c, f32 factor, int column) {
  #pragma unroll
  for (int d = 0; d < N; ++d) {
    T* const at = to + d * 8 + column;
    if (kEven) {
      *reinterpret_cast<u32*>(at) = pair(x[d][2 * c] * factor, x[d][2 * c + 1] * factor, T{});
    } else {
      put(at[0], x[d][2 * c] * factor), put(at[1], x[d][2 * c + 1] * factor);
    }
  }
}
)cuda";

inline constexpr char kKeysBackward[] = R"cuda(
// Keys in place: scores are k q^T, so that their weights multiply rows of queries. blockIdx = head of keys and batch, block of keys.
extern "C" __global__ void __launch_bounds__(128, 2) attention_keys_backward(Params p, Gradients g) {
  extern __shared__ uint4 shared[];
  T* const ks = reinterpret_cast<T*>(shared);
  T* const vs = ks + kPlace * kStride;
  T* const qs = vs + kPlace * kValueStride;
  T* const ys = qs + 2 * kTile * kStride;
  f32* const rows = reinterpret_cast<f32*>(ys + 2 * kTile * kValueStride);  // lse and delta of the queries of both buffers
  const int kv = blockIdx.x % p.kv_heads, lane = threadIdx.x % 32, warp = threadIdx.x / 32, column = lane % 4 * 2;
  const i64 b = blockIdx.x / p.kv_heads;
  const int start = blockIdx.y * kPlace, group = p.q_heads / p.kv_heads, shift = p.k_len - p.q_len;
  // The queries that may see one of these keys.
  int from = kCausal && start - shift > 0 ? (start - shift) / kTile * kTile : 0, to = p.q_len;
  if (kWindow) {
    const i64 end = i64(start) + kPlace - shift + p.window;
    to = end < to ? int(end) : to;
  }
  const int tiles = to > from ? (to - from + kTile - 1) / kTile : 0, count = tiles * group;
  const auto fetch = [&](int n, int turn) {
    const i64 h = kv * group + n / tiles;
    const int first = from + n % tiles * kTile;
    fetch_rows<kTile, kDim>(qs + turn * kTile * kStride, p.q + b * p.qs.batch + h * p.qs.head, p.qs.row, first, p.q_len);
    fetch_rows<kTile, kValueDim>(ys + turn * kTile * kValueStride, g.dy + b * g.ys.batch + h * g.ys.head, g.ys.row, first, p.q_len);
    if (threadIdx.x < 2 * kTile) {
      const int which = threadIdx.x / kTile, i = threadIdx.x % kTile;
      const bool there = first + i < p.q_len;
      copy4(rows + (turn * 2 + which) * kTile + i, (which ? g.delta : g.lse) + (b * p.q_heads + h) * p.q_len + (there ? first + i : 0), there);
    }
    asm volatile("cp.async.commit_group;");
  };
  fetch_rows<kPlace, kDim>(ks, p.k + b * p.ks.batch + kv * p.ks.head, p.ks.row, start, p.k_len);
  fetch_rows<kPlace, kValueDim>(vs, p.v + b * p.vs.batch + kv * p.vs.head, p.vs.row, start, p.k_len);
  if (count > 0) fetch(0, 0);
  Sums<kDim> dk = {};
  Sums<kValueDim> dv = {};
  const int key0 = start + warp * 16 * kRowTiles, key = key0 + lane / 4;
  for (int n = 0; n < count; ++n) {
    asm volatile("cp.async.wait_group 0;" ::: "memory");
    __syncthreads();
    if (n + 1 < count) fetch(n + 1, (n + 1) % 2);
    const i64 h = kv * group + n / tiles;
    const int first = from + n % tiles * kTile;
    if (kCausal && key0 > first + kTile - 1 + shift) continue;  // behind all of these queries
    const T* const q = qs + n % 2 * kTile * kStride;
    const T* const y = ys + n % 2 * kTile * kValueStride;
    const f32* const row = rows + n % 2 * 2 * kTile;
    Scores s = {}, ds = {};
    add_scores<kDim>(s, ks + warp * 16 * kRowTiles * kStride, q, lane);
    add_scores<kValueDim>(ds, vs + warp * 16 * kRowTiles * kValueStride, y, lane);
    bool open[2 * kRowTiles], all = true;
    #pragma unroll
    for (int t = 0; t < 2 * kRowTiles; ++t) open[t] = !key_blocked(p, b, h, key + t * 8), all = all && open[t];
    const bool behind = kCausal && key0 + 16 * kRowTiles - 1 > first + shift;
    const auto weigh_all = [&](auto kind) {
      #pragma unroll
      for (int m = 0; m < kTile / 8; ++m) {
        #pragma unroll
        for (int e = 0; e < 2; ++e) {
          const int i = m * 8 + column + e;
          const f32 base = base_of(row[i]), delta = row[kTile + i];
          #pragma unroll
          for (int t = 0; t < 2 * kRowTiles; ++t) {
            const int c = t % 2 * 2 + e;
            weigh_back<decltype(kind)::value>(p, s[t / 2][m][c], ds[t / 2][m][c], open[t], base, delta, b, h, first + i, key + t * 8);
          }
        }
      }
    };
    weigh_tile(weigh_all, kSimple && __all_sync(~0u, all), behind);
    add_weighted<kValueDim>(dv, s, y, lane);
    add_weighted<kDim>(dk, ds, q, lane);
  }
  #pragma unroll
  for (int t = 0; t < 2 * kRowTiles; ++t) {
    const int j = key + t * 8;
    if (j >= p.k_len) continue;
    write_gradient(g.dk + b * g.dks.batch + kv * g.dks.head + i64(j) * g.dks.row, dk[t / 2], t % 2, p.scale, column);
    write_gradient(g.dv + b * g.dvs.batch + kv * g.dvs.head + i64(j) * g.dvs.row, dv[t / 2], t % 2, 1.0f, column);
  }
}
)cuda";

inline constexpr char kQueriesBackward[] = R"cuda(
// Queries in place. blockIdx = head of queries and batch, block of queries.
extern "C" __global__ void __launch_bounds__(128, 2) attention_queries_backward(Params p, Gradients g) {
  extern __shared__ uint4 shared[];
  T* const qs = reinterpret_cast<T*>(shared);
  T* const ys = qs + kPlace * kStride;
  T* const ks = ys + kPlace * kValueStride;
  T* const vs = ks + 2 * kTile * kStride;
  const int h = blockIdx.x % p.q_heads, kv = h * p.kv_heads / p.q_heads, lane = threadIdx.x % 32, warp = threadIdx.x / 32, column = lane % 4 * 2;
  const i64 b = blockIdx.x / p.q_heads;
  // Blocks with most keys begin first.
  const int first = int(kCausal ? gridDim.y - 1 - blockIdx.y : blockIdx.y) * kPlace, shift = p.k_len - p.q_len;
  const int last = first + kPlace - 1 < p.q_len ? first + kPlace - 1 : p.q_len - 1, end = keys_to(p, last);
  const auto fetch = [&](int start, int turn) {
    fetch_rows<kTile, kDim>(ks + turn * kTile * kStride, p.k + b * p.ks.batch + kv * p.ks.head, p.ks.row, start, p.k_len);
    fetch_rows<kTile, kValueDim>(vs + turn * kTile * kValueStride, p.v + b * p.vs.batch + kv * p.vs.head, p.vs.row, start, p.k_len);
    asm volatile("cp.async.commit_group;");
  };
  int start = keys_from(p, first) / kTile * kTile, turn = 0;
  fetch_rows<kPlace, kDim>(qs, p.q + b * p.qs.batch + h * p.qs.head, p.qs.row, first, p.q_len);
  fetch_rows<kPlace, kValueDim>(ys, g.dy + b * g.ys.batch + h * g.ys.head, g.ys.row, first, p.q_len);
  if (start < end) fetch(start, 0);
  const int row0 = first + warp * 16 * kRowTiles, row = row0 + lane / 4;
  f32 base[2 * kRowTiles], delta[2 * kRowTiles];
  #pragma unroll
  for (int t = 0; t < 2 * kRowTiles; ++t) {
    const i64 at = (b * p.q_heads + h) * p.q_len + row + t * 8;
    const bool there = row + t * 8 < p.q_len;
    base[t] = there ? base_of(g.lse[at]) : 0.0f, delta[t] = there ? g.delta[at] : 0.0f;
  }
  Sums<kDim> dq = {};
  for (; start < end; start += kTile, turn ^= 1) {
    asm volatile("cp.async.wait_group 0;" ::: "memory");
    __syncthreads();
    if (start + kTile < end) fetch(start + kTile, turn ^ 1);
    if (kCausal && start > row0 + 16 * kRowTiles - 1 + shift) continue;  // behind all of these queries
    const T* const k = ks + turn * kTile * kStride;
    Scores s = {}, ds = {};
    add_scores<kDim>(s, qs + warp * 16 * kRowTiles * kStride, k, lane);
    add_scores<kValueDim>(ds, ys + warp * 16 * kRowTiles * kValueStride, vs + turn * kTile * kValueStride, lane);
    // One bit for each key of the tile.
    u32 open[kTile / 32];
    bool all = true;
    #pragma unroll
    for (int w = 0; w < kTile / 32; ++w) {
      open[w] = __ballot_sync(~0u, !key_blocked(p, b, h, start + w * 32 + lane));
      all = all && open[w] == ~0u;
    }
    const auto weigh_all = [&](auto kind) {
      #pragma unroll
      for (int m = 0; m < kTile / 8; ++m) {
        #pragma unroll
        for (int e = 0; e < 2; ++e) {
          const int j = m * 8 + column + e;
          #pragma unroll
          for (int t = 0; t < 2 * kRowTiles; ++t) {
            const int c = t % 2 * 2 + e;
            weigh_back<decltype(kind)::value>(p, s[t / 2][m][c], ds[t / 2][m][c], open[m / 4] >> (j % 32) & 1, base[t], delta[t], b, h,
                                              row + t * 8, start + j);
          }
        }
      }
    };
    weigh_tile(weigh_all, kSimple && all, kCausal && start + kTile - 1 > row0 + shift);
    add_weighted<kDim>(dq, ds, k, lane);
  }
  #pragma unroll
  for (int t = 0; t < 2 * kRowTiles; ++t) {
    const int i = row + t * 8;
    if (i < p.q_len)
      write_gradient(g.dq + b * g.dqs.batch + h * g.dqs.head + i64(i) * g.dqs.row, dq[t / 2], t % 2, p.scale, column);
  }
}
)cuda";

}  // namespace rlx::cuda
