// What `attention_split` and `attention_join` (attention_split.h) need of keys and values in pages: key j of row b lies in slot pages[b, j / kPage] kPage + j % kPage of stores
// that all rows share. Before it stand T (of q), Store (of the stores), Key (of their numbers), Index and Position (types in memory), kDim, kValueDim, kPage, kWindow, kSoftcap.
#pragma once

namespace rlx::cuda {

inline constexpr char kPagedShared[] = R"cuda(
struct Heads { i64 batch, head, row; };
struct Params {
  const T* q;
  const Store *k, *v;
  T* o;
  f32* lse;
  const Index* pages;
  const Position* positions;
  u64* fault;
  u64 wrong_page, wrong_position;
  Heads qs, ks, vs, os;
  i64 window;
  int q_heads, kv_heads, q_len, k_len, head_dim, value_dim, pages_each, page_count;
  f32 scale, softcap;
};

// The keys that the queries of this row may see; a position behind the last page is told.
inline int keys_to(const Params& p, int) {
  const i64 first = i64(blockIdx.z) * p.q_len;
  i64 most = -1;
  for (int i = 0; i < p.q_len; ++i) {
    const i64 at = i64(p.positions[first + i]);
    if (at >= p.k_len) *p.fault = (p.wrong_position << 40) + u64(first + i);
    most = at > most ? at : most;
  }
  return most + 1 < p.k_len ? int(most + 1) : p.k_len;
}
inline int keys_from(const Params& p, int) {
  if (!kWindow) return 0;
  i64 least = p.k_len;
  for (int i = 0; i < p.q_len; ++i) {
    const i64 at = i64(p.positions[i64(blockIdx.z) * p.q_len + i]);
    if (at >= 0 && at < least) least = at;
  }
  return least - p.window + 1 > 0 ? int(least - p.window + 1) : 0;
}

// Keys that nobody sees may have any page.
inline i64 slot_of(const Params& p, i64 b, int j) {
  const i64 at = b * p.pages_each + j / kPage, page = i64(p.pages[at]);
  if (page >= 0 && page < p.page_count) return page * kPage + j % kPage;
  if (j < keys_to(p, 0) && j >= keys_from(p, 0)) *p.fault = (p.wrong_page << 40) + u64(at);
  return 0;
}
inline const Store* key_row(const Params& p, i64 b, int kv, int j) { return p.k + kv * p.ks.head + slot_of(p, b, j) * p.ks.row; }
inline const Store* value_row(const Params& p, i64 b, int kv, int j) { return p.v + kv * p.vs.head + slot_of(p, b, j) * p.vs.row; }

inline bool key_blocked(const Params&, i64, i64, int) { return false; }
inline f32 masked(const Params& p, f32 product, i64 b, i64, int i, int j) {
  f32 s = product * p.scale;
  if (kSoftcap) s = p.softcap * tanhf(s / p.softcap);
  const i64 at = i64(p.positions[b * p.q_len + i]);
  return j <= at && (!kWindow || at - j < p.window) ? s : -from_bits(0x7f800000u);
}
)cuda";

// Rows of blocks of q8_0: a scale in f16, then 32 codes of 8 bits; heads are whole blocks, strides count bytes, Key is f32. kWide: rows lie at even addresses.
inline constexpr char kBlockRows[] = R"cuda(
inline u32 two_bytes(const u8* p) { return kWide ? *reinterpret_cast<const u16*>(p) : p[0] | p[1] << 8; }
inline f32 scale_of(const u8* block) {
  f16 x;
  x.bits = u16(two_bytes(block));
  return as_f32(x);
}
template <int N> void keys_at(const u8* row, int d, int, f32 (&to)[N]) {
  const u8* const block = row + d / 32 * 34;
  const f32 scale = scale_of(block);
  if (N == 1) {
    to[0] = scale * f32(i8(block[2 + d % 32]));
  } else {
    #pragma unroll
    for (int u = 0; u + 1 < N; u += 2) {
      const u32 codes = two_bytes(block + 2 + d % 32 + u);
      to[u] = scale * f32(i8(codes & 255u));
      to[u + 1] = scale * f32(i8(codes >> 8));
    }
  }
}
template <int N> void values_at(const u8* row, int column, int lanes, f32 (&to)[N]) { keys_at(row, column, lanes, to); }
)cuda";

}  // namespace rlx::cuda
