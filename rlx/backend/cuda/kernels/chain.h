// Several steps as one kernel whose blocks stay, one on each processor (chain.h, docs/design/019). A step is an item of a table: its kind, which is a namespace of this text, and the
// words of its parameters. All blocks work on one item at a time and meet behind it. Weights are the same in every run, so that nothing but places in shared memory holds them back: each
// warp has a ring of places and asks for the pieces that it will need, those of later items too, while blocks wait for each other.
// Before kChainParts stand kBlocks, kItems, kSlots (of a ring), kPlace (bytes of a slot) and struct Table { u32 items[]; u64 words[]; }, where an item is its kind + 256 times the place of its words.
#pragma once

namespace rlx::cuda {

inline constexpr char kChainParts[] = R"cuda(
constexpr int kChainThreads = 512, kChainWarps = kChainThreads / 32;
struct Span { const u8* from; int bytes; };
// Pieces of weights that this block takes of an item, and one of them. They are defined behind the kinds.
inline int pieces_of(u32 item);
inline Span piece_of(const Table& table, u32 item, int index);

// The pieces of a block, counted over all items, go to its warps in turn.
struct Ring {
  const Table& table;
  u8* at;                 // the places of this warp
  u32 to;                 // where the copies of this lane go
  int item, index, slot;  // what is asked for next: a piece of an item; where it goes
  int next;               // the next piece to take, of the item at hand
  Ring(const Table& t, u8* rings) : table(t) {
    const int warp = threadIdx.x / 32;
    at = rings + warp * (kSlots * kPlace);
    to = u32(__cvta_generic_to_shared(at)) + threadIdx.x % 32 * 16;
    item = 0, index = next = warp, slot = 0;
    for (int i = 0; i < kSlots; ++i) ask();
  }
  void ask() {
    while (item < kItems) {
      const int count = pieces_of(table.items[item]);
      if (index < count) break;
      index -= count;
      ++item;
    }
    if (item < kItems) {
      const Span s = piece_of(table, table.items[item], index);
      const int lane = threadIdx.x % 32 * 16;
      #pragma unroll
      for (int t = 0; t < kPlace; t += 512) {
        if (t + lane < s.bytes) asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16;" :: "r"(to + slot * kPlace + t), "l"(s.from + t + lane) : "memory");
      }
      index += kChainWarps;
    }
    asm volatile("cp.async.commit_group;" ::: "memory");
    slot = slot + 1 == kSlots ? 0 : slot + 1;
  }
  // All places are asked for: the oldest is the one that is asked for next.
  const u8* take() {
    asm volatile("cp.async.wait_group %0;" :: "n"(kSlots - 1) : "memory");
    __syncwarp();
    return at + slot * kPlace;
  }
  void give() {
    __syncwarp();  // nobody reads it any more
    ask();
  }
};

// meeting[0] counts arrivals, kBlocks at each meeting; meeting[1] says that a block did not come. Then all leave, and the run ends with a fault.
inline u64 seen(const u64* p) { u64 x; asm volatile("ld.acquire.gpu.global.u64 %0, [%1];" : "=l"(x) : "l"(p) : "memory"); return x; }
// `wanted`, of the first thread, is the count behind the meeting.
inline bool meet(u64* meeting, u64 wanted, u64* fault, u64 number) {
  __shared__ int gone;
  __syncthreads();
  if (threadIdx.x == 0) {
    // Behind the barrier this releases what all threads of the block wrote; a fence of its own would order reads too.
    asm volatile("red.release.gpu.global.add.u64 [%0], %1;" :: "l"(meeting), "l"(1ull) : "memory");
    const i64 since = clock64();
    gone = 0;
    for (u32 turn = 1; seen(meeting) < wanted; ++turn) {
      if (turn % 32 == 0) __nanosleep(20);  // who waits long lets others work; most meetings are over sooner
      if (turn % 1024 != 0 || (clock64() - since < kPatience && seen(meeting + 1) == 0)) continue;
      atomicExch(meeting + 1, 1ull);
      *fault = number << 40;
      gone = 1;
      break;
    }
  }
  __syncthreads();
  return gone == 0;
}
)cuda";

// Inside of kinds the number of a thread is read afresh, so that nothing that is made of it is kept, and spilled, from one item to the next: beside so much shared memory the first cache is small.
inline constexpr char kFreshThreads[] = R"cuda(
struct ThreadNumber { u32 x; };
inline ThreadNumber fresh_thread() { ThreadNumber t; asm volatile("mov.u32 %0, %%tid.x;" : "=r"(t.x)); return t; }
#define threadIdx fresh_thread()
)cuda";

// Products of few rows as an item. Before it stand kRows, kSides, kColumns, kKept, the functions of Params and Weights as for kStreamedRows, and kWeightsRoom and kKeptRoom, the bytes of
// shared memory that Weights and the rows of the left operand take. A warp sums one piece of a column; the sums of a column are added in their order.
inline constexpr char kChainProduct[] = R"cuda(
typedef Params Words;
constexpr int kChunks = int((kRowBytes + kChunkBytes - 1) / kChunkBytes), kOfColumn = kSides * kChunks;
inline int first_column(int block) { return int(i64(block) * kColumns / kBlocks); }
inline int pieces() { return (first_column(blockIdx.x + 1) - first_column(blockIdx.x)) * kOfColumn; }
inline Span piece(const Words& p, int index) {
  const int chunk = index % kChunks, side = index / kChunks % kSides, column = first_column(blockIdx.x) + index / kOfColumn;
  const int left = int(kRowBytes) - chunk * kChunkBytes;
  return {reinterpret_cast<const u8*>(weights_of(p, side, column)) + chunk * kChunkBytes, left < kChunkBytes ? left : kChunkBytes};
}
inline void run(const Words& p, Ring& ring, u8* room) {
  Weights weights(room);
  T* const kept = reinterpret_cast<T*>(room + kWeightsRoom);
  f32* const sums = reinterpret_cast<f32*>(room + kWeightsRoom + kKeptRoom);  // [column][side][chunk][row]
  const int first = first_column(blockIdx.x), columns = first_column(blockIdx.x + 1) - first;
  Ahead ahead;
  if (threadIdx.x < columns * kRows) ask_first(p, threadIdx.x % kRows, first + threadIdx.x / kRows, ahead);
  if (kKept) {
    make_rows(p, kept);
    __syncthreads();
  }
  weights.make(p, kept);
  if (threadIdx.x < columns * kRows) ask_next(p, threadIdx.x % kRows, first + threadIdx.x / kRows, ahead);
  const int count = pieces(), lane = threadIdx.x % 32;
  #pragma unroll 1
  for (; ring.next < count; ring.next += kChainWarps) {
    f32 acc[1][kRows] = {};
    weights.add(acc, ring.take(), ring.next % kChunks, lane);
    ring.give();
    #pragma unroll
    for (int i = 0; i < kRows; ++i) {
      const f32 sum = over_warp<Sum>(acc[0][i]);
      if (lane == 0) sums[ring.next * kRows + i] = sum;
    }
  }
  ring.next -= count;
  __syncthreads();
  #pragma unroll 1
  for (int e = threadIdx.x; e < columns * kRows; e += kChainThreads) {
    const int row = e % kRows, column = e / kRows;
    f32 all[kSides];
    #pragma unroll
    for (int s = 0; s < kSides; ++s) {
      f32 sum = 0;
      #pragma unroll 4
      for (int n = 0; n < kChunks; ++n) sum += sums[((column * kSides + s) * kChunks + n) * kRows + row];
      all[s] = sum;
    }
    if (e >= kChainThreads) {
      ask_first(p, row, first + column, ahead);
      ask_next(p, row, first + column, ahead);
    }
    finish(p, row, first + column, all, ahead);
  }
}
)cuda";

// Weights as they are, of type T. After kFewRowsShared, with kChunkBytes, kRows, kDepth.
inline constexpr char kPlainStream[] = R"cuda(
constexpr i64 kRowBytes = i64(kDepth) * sizeof(T);
struct Weights {
  T* x;
  Weights(void* memory) : x(static_cast<T*>(memory)) {}
  void make(const Params& p, T* kept) {
    if (kKept) {
      x = kept;
      return;
    }
    #pragma unroll
    for (int i = 0; i < kRows; ++i) {
      for (int k = threadIdx.x * kPiece; k < kDepth; k += kBlockThreads * kPiece) *reinterpret_cast<Piece*>(x + i * kDepth + k) = piece_at(row_of(p, i) + k);
    }
    __syncthreads();
  }
  void add(f32 (&acc)[1][kRows], const u8* chunk, int n, int lane) const {
    constexpr bool kWholeChunks = kRowBytes % kChunkBytes == 0;
    #pragma unroll
    for (int t = 0; t < kChunkBytes; t += 512) {
      const int at = t + lane * 16, k = (n * kChunkBytes + at) / int(sizeof(T));
      if ((t + 512 <= kChunkBytes || at < kChunkBytes) && (kWholeChunks || k < kDepth)) {
        const Piece w = piece_at(reinterpret_cast<const T*>(chunk + at));
        #pragma unroll
        for (int i = 0; i < kRows; ++i) {
          const Piece v = piece_at(x + i * kDepth + k);
          #pragma unroll
          for (int u = 0; u < kPiece; ++u) acc[0][i] = fmaf(as_f32(v.v[u]), as_f32(w.v[u]), acc[0][i]);
        }
      }
    }
  }
};
)cuda";

// Behind the kinds and their dispatch: run_item(table, item, ring, room).
inline constexpr char kChainKernel[] = R"cuda(
extern "C" __global__ void __launch_bounds__(kChainThreads, 1) chain(const __grid_constant__ Table table, u64* meeting, u64* fault, u64 number) {
  extern __shared__ uint4 memory[];
  u8* const rings = reinterpret_cast<u8*>(memory);
  begin_alone();
  __shared__ bool broken;
  u64 met = 0;
  if (threadIdx.x == 0) {
    broken = seen(meeting + 1) != 0;
    met = seen(meeting) / kBlocks * kBlocks;  // others may have come already, but none goes on without this block
  }
  __syncthreads();
  if (broken) return;
  Ring ring(table, rings);
  #pragma unroll 1
  for (int i = 0; i < kItems; ++i) {
    run_item(table, table.items[i], ring, rings + kChainWarps * kSlots * kPlace);
    if (i + 1 < kItems && !meet(meeting, met += kBlocks, fault, number)) return;
  }
}
)cuda";

}  // namespace rlx::cuda
