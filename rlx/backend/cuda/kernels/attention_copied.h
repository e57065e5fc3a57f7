// Attention of few queries over the keys of many texts: as attention_fragments.h, but the copy engine of Hopper brings keys and values into shared memory some places ahead, so that what is on its way does not depend on
// registers. A block has a ring of kSlots places; a place holds 16 keys for each warp, then their values, in tiles of 64 lanes as matrix_groups.h says: few large copies, since the engine takes its time for each of them. The first
// places are asked into the second cache before the kernel in front has ended: what that one writes is there too.
// After kFragmentParts and kFragmentJoin, with kShares 1, kSlots, kBlocks (of a processor) and kMatrixGroups before it; heads and values of 64 or 128 lanes.
#pragma once

namespace rlx::cuda {

inline constexpr char kAttentionCopied[] = R"cuda(
constexpr int kKeys = Finder::kKeys * kWarps, kTileBytes = kKeys * 128, kKeyTiles = kDim / 64, kTiles = kKeyTiles + kValueDim / 64, kPlace = kTiles * kTileBytes;
static_assert(sizeof(Found) * kWarps <= kSlots * kPlace, "what the warps find takes the place of the ring");

// The first lane of a tile of a place.
inline int lane_of(int tile) { return (tile < kKeyTiles ? tile : tile - kKeyTiles) * 64; }

// 16 bytes of lanes 8 piece .. of one row of a place.
inline uint4 piece_at(u32 tiles, int row, int piece) {
  uint4 x;
  asm volatile("ld.shared.v4.u32 {%0,%1,%2,%3}, [%4];" : "=r"(x.x), "=r"(x.y), "=r"(x.z), "=r"(x.w)
               : "r"(tiles + piece / 8 * kTileBytes + row * 128 + ((piece % 8) ^ (row % 8)) * 16));
  return x;
}

extern "C" __global__ void kClusterShape __launch_bounds__(32 * kWarps, kBlocks)
attention_copied(Params p, const __grid_constant__ TensorMap k_map, const __grid_constant__ TensorMap v_map, f32* parts, int keys_each, int chunks) {
  extern __shared__ uint4 shared[];
  __shared__ u64 barriers[2 * kSlots];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, b = blockIdx.z, kv = blockIdx.y / chunks, first = blockIdx.y % chunks * 8;
  const u32 shift = (1024 - place_of(shared) % 1024) % 1024, ring = place_of(shared) + shift, full = place_of(barriers), empty = full + 8 * kSlots;
  const int begin_key = blockIdx.x * keys_each;
  if (threadIdx.x == 0) {
    for (int i = 0; i < kSlots; ++i) barrier_init(full + 8 * i, 1), barrier_init(empty + 8 * i, kWarps);
    asm volatile("fence.mbarrier_init.release.cluster;\nfence.proxy.async;" ::: "memory");
    for (int i = 0; i < kSlots; ++i) {
      const int key = begin_key + i * kKeys;
      for (int c = 0; c < kTiles && key < p.k_len; ++c) ask_ahead(c < kKeyTiles ? k_map : v_map, lane_of(c), key, kv, b);
    }
  }
  __syncthreads();
  begin();
  Finder found(p, b, kv, first, begin_key + keys_each);
  int start = begin_key;
  while (start + kKeys <= found.from) start += kKeys;  // keys that no query sees
  const auto ask = [&](int key, int slot) {
    if (key >= found.end) return;
    barrier_expect(full + 8 * slot, kPlace);
    #pragma unroll
    for (int c = 0; c < kTiles; ++c)
      copy_tile_once(ring + slot * kPlace + c * kTileBytes, c < kKeyTiles ? k_map : v_map, lane_of(c), key, kv, b, full + 8 * slot);
  };
  if (threadIdx.x == 0) {
    for (int i = 0; i < kSlots; ++i) ask(start + i * kKeys, i);
  }
  __syncwarp();
  int slot = 0, parity = 0, before = -1, before_parity = 0, turn = 0;
  #pragma unroll 1
  for (; start < found.end; start += kKeys) {
    // The place before is asked for again when all warps have left it, by one warp after the other.
    if (lane == 0 && warp == turn && before >= 0 && start + (kSlots - 1) * kKeys < found.end) {
      barrier_wait(empty + 8 * before, before_parity);
      ask(start + (kSlots - 1) * kKeys, before);
    }
    __syncwarp();
    if (++turn == kWarps) turn = 0;
    barrier_wait(full + 8 * slot, parity);
    const u32 keys = ring + slot * kPlace + warp * (Finder::kKeys * 128), values = keys + kKeyTiles * kTileBytes;
    uint4 k[2][Finder::kChunks], v[4][Finder::kWide];
    #pragma unroll
    for (int n = 0; n < 2; ++n) {
      #pragma unroll
      for (int c = 0; c < Finder::kChunks; ++c) k[n][c] = piece_at(keys, n * 8 + found.g, c * 4 + found.t);
    }
    #pragma unroll
    for (int n = 0; n < 4; ++n) {
      #pragma unroll
      for (int c = 0; c < Finder::kWide; ++c) v[n][c] = piece_at(values, n / 2 * 8 + 2 * found.t + n % 2, c * 8 + found.g);
    }
    __syncwarp();  // all lanes have their pieces
    if (lane == 0) barrier_arrive(empty + 8 * slot);
    const int own = start + warp * Finder::kKeys;
    if (own < found.end && own + Finder::kKeys > found.from) found.add(own, k, v);
    before = slot, before_parity = parity;
    if (++slot == kSlots) slot = 0, parity ^= 1;
  }
  Found* const all = reinterpret_cast<Found*>(reinterpret_cast<u8*>(shared) + shift);
  __syncthreads();  // the ring is free
  found.put_into(all[warp], 0);
  join_found(p, parts, all, b, kv, first);
}
)cuda";

}  // namespace rlx::cuda
