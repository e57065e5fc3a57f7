// The matrix units of Hopper: a group of four warps multiplies 64 rows with a tile in shared memory, and tiles come by the copy engine, which counts
// bytes on a barrier. Before it stands nothing; T is f16 or bf16 where it is named.
//
// A tile is [rows][64 lanes], 128 bytes a row, tiles of further lanes behind it; piece c of 16 bytes of row r lies at piece c ^ (r % 8), the swizzle of 128
// bytes, and a tile begins at a multiple of 1024. Where lanes run along the sum (a b^T), eight rows are 1024 bytes from the next eight and sixteen lanes are
// 32 bytes. Where rows run along the sum (a b, "turned"), sixteen rows are 2048 bytes.
#pragma once

namespace rlx::cuda {

inline constexpr char kMatrixGroups[] = R"cuda(
inline u64 tile_at(u32 place) { return u64(place >> 4 & 0x3fff) | u64(1) << 16 | u64(64) << 32 | u64(1) << 62; }
// The same `bytes` further on: one addition, where another tile_at would be four instructions that the next product waits for.
inline u64 further(u64 tile, int bytes) { return (tile & ~u64(0xffffffffu)) | u32(u32(tile) + (bytes >> 4)); }

#define kSums "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31}"
#define kSums128 \
  "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31," \
  "%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47,%48,%49,%50,%51,%52,%53,%54,%55,%56,%57,%58,%59,%60,%61,%62,%63}"
#define kFour(d) "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
#define kEight(d, n) kFour(d[n]), kFour(d[n + 1]), kFour(d[n + 2]), kFour(d[n + 3]), kFour(d[n + 4]), kFour(d[n + 5]), kFour(d[n + 6]), kFour(d[n + 7])
#define kProductOf(name, turned) \
  asm volatile("{\n.reg .pred more;\nsetp.ne.b32 more, %37, 0;\n" \
      "wgmma.mma_async.sync.aligned.m64n64k16.f32." name "." name " " kSums ", {%32,%33,%34,%35}, %36, more, 1, 1, " turned ";\n}" \
      : kEight(d, 0) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(more))
// d += a b for 64 x 16 of a, 16 x 64 of b; `more` 0: d = a b.
template <bool kTurned> void multiply64(f32 (&d)[8][4], const u32 (&a)[4], u64 b, int more, f16) {
  if (kTurned) { kProductOf("f16", "1"); } else { kProductOf("f16", "0"); }
}
template <bool kTurned> void multiply64(f32 (&d)[8][4], const u32 (&a)[4], u64 b, int more, bf16) {
  if (kTurned) { kProductOf("bf16", "1"); } else { kProductOf("bf16", "0"); }
}
// d += a b^T for 64 x 16 of a and 128 x 16 of b, both in shared memory.
#define kWideProductOf(name) \
  asm volatile("{\n.reg .pred more;\nsetp.ne.b32 more, %66, 0;\n" \
      "wgmma.mma_async.sync.aligned.m64n128k16.f32." name "." name " " kSums128 ", %64, %65, more, 1, 1, 0, 0;\n}" \
      : kEight(d, 0), kEight(d, 8) : "l"(a), "l"(b), "r"(more))
inline void multiply128(f32 (&d)[16][4], u64 a, u64 b, int more, f16) { kWideProductOf("f16"); }
inline void multiply128(f32 (&d)[16][4], u64 a, u64 b, int more, bf16) { kWideProductOf("bf16"); }
// The same with a in registers.
#define kWideRowsOf(name) \
  asm volatile("{\n.reg .pred more;\nsetp.ne.b32 more, %69, 0;\n" \
      "wgmma.mma_async.sync.aligned.m64n128k16.f32." name "." name " " kSums128 ", {%64,%65,%66,%67}, %68, more, 1, 1, 0;\n}" \
      : kEight(d, 0), kEight(d, 8) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(more))
inline void multiply128(f32 (&d)[16][4], const u32 (&a)[4], u64 b, int more, f16) { kWideRowsOf("f16"); }

// All lanes of a warp come together first: masks may have parted them.
inline void products_begin() {
  __syncwarp();
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}
inline void products_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
// Until at most `Left` of the products committed last are on their way.
template <int Left> void products_wait() { asm volatile("wgmma.wait_group.sync.aligned %0;" :: "n"(Left) : "memory"); }
inline void products_end() {
  products_commit();
  products_wait<0>();
}
// Sums are not touched before this place, or not behind it: products write them without the compiler's knowledge.
template <int N> void hold(f32 (&x)[N][4]) {
  #pragma unroll
  for (int n = 0; n < N; ++n) asm volatile("" : kFour(x[n]) :: "memory");
}
template <int N> void hold(u32 (&x)[N][4]) {
  #pragma unroll
  for (int n = 0; n < N; ++n) asm volatile("" : "+r"(x[n][0]), "+r"(x[n][1]), "+r"(x[n][2]), "+r"(x[n][3]) :: "memory");
}
// Registers of a thread of this group of warps: those that copy leave theirs to those that multiply. All warps of the group say so.
template <int Count> void keep_registers() { asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" :: "n"(Count)); }
template <int Count> void take_registers() { asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" :: "n"(Count)); }
// Weights as the left operand: 64 x 16 for each two tiles of eight columns.
template <int N, class T> void pack_rows(u32 (&w)[N][4], const f32 (&s)[2 * N][4], T) {
  #pragma unroll
  for (int n = 0; n < N; ++n) {
    w[n][0] = pair(s[2 * n][0], s[2 * n][1], T{}), w[n][1] = pair(s[2 * n][2], s[2 * n][3], T{});
    w[n][2] = pair(s[2 * n + 1][0], s[2 * n + 1][1], T{}), w[n][3] = pair(s[2 * n + 1][2], s[2 * n + 1][3], T{});
  }
}

// A value that the compiler knows nothing of: what is made of it is not kept in registers over a loop.
inline int forget(int x) {
  asm volatile("" : "+r"(x));
  return x;
}

// Blocks that stay take items in turn, the long ones first; rounds go forwards and backwards, so that no block has the longest of all rounds.
inline int item_of(int round) { return int(round * gridDim.x + (round % 2 ? gridDim.x - 1 - blockIdx.x : blockIdx.x)); }
// x / n for n = 1 / inverse and 0 <= x < 2^20; divisions of integers, some for each item and tile, took a quarter of the time.
inline int quotient(int x, f32 inverse) { return int((f32(x) + 0.5f) * inverse); }

// ---- barriers in shared memory, and the copy engine ----

inline u32 place_of(const void* shared) { return u32(__cvta_generic_to_shared(shared)); }
inline void barrier_init(u32 barrier, int arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" :: "r"(barrier), "r"(arrivals) : "memory");
}
inline void barrier_arrive(u32 barrier) { asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" :: "r"(barrier) : "memory"); }
inline void barrier_expect(u32 barrier, int bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" :: "r"(barrier), "r"(bytes) : "memory");
}
// Until the phase of this parity has ended; the one before it must have ended already.
inline void barrier_wait(u32 barrier, u32 parity) {
  asm volatile("{\n.reg .pred done;\nagain:\nmbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n@done bra over;\nbra again;\nover:\n}"
               :: "r"(barrier), "r"(parity) : "memory");
}

// The barrier at this place of another block of the cluster. It tells of no writes: with `release` of the cluster all of memory would be waited for.
inline void barrier_arrive_in(u32 barrier, u32 rank) {
  asm volatile("{\n.reg .b32 there;\nmapa.shared::cluster.u32 there, %0, %1;\nmbarrier.arrive.shared::cluster.b64 _, [there];\n}"
               :: "r"(barrier), "r"(rank) : "memory");
}
// The units and the copy engine see what threads wrote into shared memory. Said of all memory it is a fence of the whole GPU, some thousand cycles.
inline void async_sees_shared() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

// What the copy engine knows of a tensor [batch][head][row][lane]: as the driver encodes it.
struct alignas(64) TensorMap { u64 words[16]; };
inline void copy_tile(u32 to, const TensorMap& map, int lane, int row, int head, int batch, u32 barrier) {
  asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %4, %5}], [%6];"
               :: "r"(to), "l"(&map), "r"(lane), "r"(row), "r"(head), "r"(batch), "r"(barrier) : "memory");
}
// The same of what is read once: it is the first to leave the second cache.
inline void copy_tile_once(u32 to, const TensorMap& map, int lane, int row, int head, int batch, u32 barrier) {
  constexpr u64 kEvictFirst = 0x12f0000000000000ull;  // a policy as createpolicy makes it
  asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.L2::cache_hint [%0], [%1, {%2, %3, %4, %5}], [%6], %7;"
               :: "r"(to), "l"(&map), "r"(lane), "r"(row), "r"(head), "r"(batch), "r"(barrier), "l"(kEvictFirst) : "memory");
}
// Into the second cache alone, where what other kernels write is never old.
inline void ask_ahead(const TensorMap& map, int lane, int row, int head, int batch) {
  asm volatile("cp.async.bulk.prefetch.tensor.4d.L2.global.tile [%0, {%1, %2, %3, %4}];" :: "l"(&map), "r"(lane), "r"(row), "r"(head), "r"(batch) : "memory");
}
// The same to this place of every block of the cluster whose bit is set; the barrier at this place of each counts the bytes.
inline void copy_tile_to(u16 blocks, u32 to, const TensorMap& map, int lane, int row, int head, int batch, u32 barrier) {
  asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1, {%2, %3, %4, %5}], [%6], %7;"
               :: "r"(to), "l"(&map), "r"(lane), "r"(row), "r"(head), "r"(batch), "r"(barrier), "h"(blocks) : "memory");
}
)cuda";

}  // namespace rlx::cuda
