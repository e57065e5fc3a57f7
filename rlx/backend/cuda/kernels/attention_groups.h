// Attention of many queries on the matrix units of Hopper: groups of four warps multiply 64 queries with tiles of 64 keys that
// lie in shared memory as the units want them. For f16 and bf16 with heads of 64 or 128 lanes; after kAttentionShared, kAttentionWeights
// (attention.h) and kMatrixGroups. It takes every mask, bias and soft-cap; attention_items.h is faster where there are none.
#pragma once

namespace rlx::cuda {

inline constexpr char kAttentionGroups[] = R"cuda(
// Two groups of warps, 128 queries a block. `tiles` as in attention_matrix, with kRowTiles 2.
extern "C" __global__ void __launch_bounds__(256, kDim <= 64 && kValueDim <= 64 ? 2 : 1) attention_groups(Params p, const u8* tiles) {
  constexpr int kRows = 128, kKeys = 64, kTile = kKeys * 128, kKeyBytes = kTile * (kDim / 64), kStage = kKeyBytes + kTile * (kValueDim / 64);
  extern __shared__ uint4 shared[];
  begin_alone();
  const u32 memory = (u32(__cvta_generic_to_shared(shared)) + 1023) & ~1023u;
  const i64 b = blockIdx.z, h = blockIdx.y, kv = h * p.kv_heads / p.q_heads;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  // Blocks with most keys begin first.
  const int block = kCausal ? int(gridDim.x - 1 - blockIdx.x) : int(blockIdx.x), first = block * kRows;
  const int row0 = first + warp * 16, column = lane % 4 * 2, row = row0 + lane / 4;
  const int last = first + kRows - 1 < p.q_len ? first + kRows - 1 : p.q_len - 1, end = keys_to(p, last);
  if (kHasMask && tiles) tiles += ((p.ms.batch ? b : 0) * gridDim.x + block) * ((p.k_len + kKeys - 1) / kKeys);
  const auto next_tile = [&](int start) {
    if (kHasMask && tiles) {
      while (start < end && tiles[start / kKeys] == 0) start += kKeys;
    }
    return start;
  };
  const auto fetch_rows = [&](const T* from, i64 stride, int pieces, int start, u32 to) {
    for (int e = threadIdx.x; e < kKeys * pieces; e += 256) {
      const int r = e / pieces, c = e % pieces;
      const bool there = start + r < p.k_len;
      copy16(to + c / 8 * kTile + r * 128 + ((c ^ r) & 7) * 16, from + i64(there ? start + r : 0) * stride + c * 8, there);
    }
  };
  const auto fetch = [&](int start, u32 stage) {
    fetch_rows(p.k + b * p.ks.batch + kv * p.ks.head, p.ks.row, kDim / 8, start, stage);
    fetch_rows(p.v + b * p.vs.batch + kv * p.vs.head, p.vs.row, kValueDim / 8, start, stage + kKeyBytes);
    asm volatile("cp.async.commit_group;");
  };
  int start = next_tile(keys_from(p, first) / kKeys * kKeys), turn = 0;
  if (start < end) fetch(start, memory);
  u32 q[kDim / 16][4];
  #pragma unroll
  for (int d = 0; d < kDim / 16; ++d) {
    #pragma unroll
    for (int n = 0; n < 4; ++n) {
      const int i = row + n % 2 * 8;
      const T* const from = p.q + b * p.qs.batch + h * p.qs.head + i64(i) * p.qs.row + d * 16 + n / 2 * 8 + column;
      q[d][n] = i < p.q_len ? *reinterpret_cast<const u32*>(from) : 0;
    }
  }
  const f32 minus_infinity = -from_bits(0x7f800000u);
  f32 out[kValueDim / 64][8][4] = {};
  f32 most[2] = {minus_infinity, minus_infinity}, sum[2] = {};
  while (start < end) {
    asm volatile("cp.async.wait_group 0;\nfence.proxy.async;" ::: "memory");
    __syncthreads();
    const u32 stage = memory + turn * kStage;
    const int following = next_tile(start + kKeys);
    if (following < end) fetch(following, memory + (turn ^ 1) * kStage);
    f32 s[8][4];
    products_begin();
    #pragma unroll
    for (int d = 0; d < kDim / 16; ++d) multiply64<false>(s, q[d], tile_at(stage + d / 4 * kTile + d % 4 * 32), d > 0, T{});
    products_end();
    // One bit for each key of the tile.
    const u32 open[2] = {__ballot_sync(~0u, !key_blocked(p, b, h, start + lane)),
                         __ballot_sync(~0u, !key_blocked(p, b, h, start + 32 + lane))};
    const bool behind = kCausal && start + kKeys - 1 > row0 + p.k_len - p.q_len;
    const bool passed = kTableSimple && tiles && tiles[start / kKeys] == 2;
    const bool simple = (kSimple || passed) && p.scale > 0 && (open[0] & open[1]) == ~0u;
    weigh(p, s, most, sum, reinterpret_cast<f32(&)[kValueDim / 8][4]>(out), simple, behind, open, b, h, row, start + column);
    u32 w[4][4];
    pack_rows(w, s, T{});
    products_begin();
    #pragma unroll
    for (int n = 0; n < 4; ++n) {
      #pragma unroll
      for (int d = 0; d < kValueDim / 64; ++d)
        multiply64<true>(out[d], w[n], tile_at(stage + kKeyBytes + d * kTile + n * 2048), 1, T{});
    }
    products_end();
    start = following;
    turn ^= 1;
  }
  write_rows(p, most, sum, reinterpret_cast<f32(&)[kValueDim / 8][4]>(out), b, h, row, column);
}
)cuda";

}  // namespace rlx::cuda
