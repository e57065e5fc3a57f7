// Barriers in shared memory, the copy engine, and the products of groups of four warps (compute capability 9.0).
#pragma once

namespace emulated::ptx {

// ---- barriers in shared memory: 8 bytes of our own making ----
struct Barrier {
  short expected, pending;  // arrivals of a phase; those that are missing
  int bytes : 30;           // that are on their way; may be negative for a while
  unsigned parity : 1, known : 1;
};
static_assert(sizeof(Barrier) == 8);
inline Barrier& barrier_at(unsigned address) {
  Barrier& b = *static_cast<Barrier*>(emulated_machine->shared(address, 8));
  if (!b.known || b.expected <= 0) emulated_machine->fail("mbarrier: used before mbarrier.init");
  return b;
}
inline void barrier_turn(Barrier& b) {
  emulated_machine->moved();
  if (b.pending != 0 || b.bytes != 0) return;
  b.pending = b.expected;
  b.parity ^= 1;
}
inline void mbarrier_init(unsigned address, unsigned count) {
  *static_cast<Barrier*>(emulated_machine->shared(address, 8)) = {short(count), short(count), 0, 0, 1};
}
inline void mbarrier_inval(unsigned address) { emulated_machine->shared(address, 8); }
inline void arrive(Barrier& b, unsigned count) {
  if (b.pending < short(count)) emulated_machine->fail("mbarrier: more arrivals than it was made for");
  b.pending = short(b.pending - short(count));
  barrier_turn(b);
}
inline void mbarrier_arrive(unsigned address) { arrive(barrier_at(address), 1); }
inline void mbarrier_arrive(unsigned address, unsigned count) { arrive(barrier_at(address), count); }
inline void mbarrier_expect(unsigned address, unsigned bytes) { barrier_at(address).bytes += int(bytes); }
inline void mbarrier_arrive_expect(unsigned address, unsigned bytes) {
  mbarrier_expect(address, bytes);
  mbarrier_arrive(address);
}
inline void complete_bytes(unsigned address, unsigned bytes) {
  Barrier& b = barrier_at(address);
  b.bytes -= int(bytes);
  barrier_turn(b);
}
inline void mbarrier_copies_arrive(unsigned address) {  // behind the copies of this thread
  copy_wait_all();
  mbarrier_arrive(address);
}
template <class P>
inline void mbarrier_wait_parity(P& done, unsigned address, unsigned parity) {
  if (barrier_at(address).parity == parity) emulated_machine->pause("mbarrier.try_wait");
  done = barrier_at(address).parity != parity;
}

// ---- the copy engine ----
inline unsigned swizzled(unsigned address, unsigned mode) {  // 1, 2, 3: patterns of 32, 64, 128 bytes
  return mode == 0 ? address : address ^ ((address >> 7 & ((1u << mode) - 1)) << 4);
}
template <class M>
inline void copy_tensor(int rank, unsigned to, M given, const int (&from)[5], unsigned barrier) {
  TensorMap map;
  __builtin_memcpy(&map, at(given), sizeof map);
  if (map.magic != kTensorMagic || int(map.rank) != rank)
    emulated_machine->fail("cp.async.bulk.tensor: no map of a tensor of this rank");
  if (to % 128 != 0)
    emulated_machine->fail("cp.async.bulk.tensor: a tile does not begin at a multiple of 128 bytes");
  unsigned total = map.element;
  for (int i = 0; i < rank; ++i) total *= map.box[i];
  const unsigned row = map.box[0] * map.element;
  for (unsigned place = 0; place < total; place += row) {
    unsigned rest = place / row;
    bool inside = true;
    const char* line = map.base;
    for (int i = 1; i < rank; ++i) {
      const long long index = from[i] + int(rest % map.box[i]);
      rest /= map.box[i];
      inside = inside && index >= 0 && index < (long long)(map.extents[i]);
      line += index * (long long)(map.strides[i - 1]);
    }
    for (unsigned e = 0; e < map.box[0]; ++e) {
      const long long index = from[0] + int(e);
      const unsigned place_in = place + e * map.element;
      char* const here =
          static_cast<char*>(emulated_machine->shared(swizzled(to + place_in, map.swizzle), map.element));
      if (inside && index >= 0 && index < (long long)(map.extents[0])) {
        __builtin_memcpy(here, line + index * map.element, map.element);
      } else {
        __builtin_memset(here, 0, map.element);
      }
    }
  }
  complete_bytes(barrier, total);
}
template <class M>
inline void copy_tensor_1(unsigned to, M map, int x, unsigned barrier) {
  copy_tensor(1, to, map, {x}, barrier);
}
template <class M>
inline void copy_tensor_2(unsigned to, M map, int x, int y, unsigned barrier) {
  copy_tensor(2, to, map, {x, y}, barrier);
}
template <class M>
inline void copy_tensor_3(unsigned to, M map, int x, int y, int z, unsigned barrier) {
  copy_tensor(3, to, map, {x, y, z}, barrier);
}
template <class M>
inline void copy_tensor_4(unsigned to, M map, int x, int y, int z, int w, unsigned barrier) {
  copy_tensor(4, to, map, {x, y, z, w}, barrier);
}
// The same for the blocks of a cluster whose bits are set: to the same place of each, whose own barrier counts the bytes.
template <class M>
inline void copy_tensor_4_to_blocks(unsigned to, M map, int x, int y, int z, int w, unsigned barrier,
                                    unsigned short blocks) {
  if (blocks >> emulated_machine->ranks != 0)
    emulated_machine->fail("cp.async.bulk.tensor: a block that is not in the cluster");
  for (unsigned rank = 0; rank < emulated_machine->ranks; ++rank) {
    if (blocks >> rank & 1)
      copy_tensor(4, emulated_machine->map_rank(to, rank), map, {x, y, z, w},
                  emulated_machine->map_rank(barrier, rank));
  }
}
template <class A>
inline void copy_bulk(unsigned to, A from, unsigned bytes, unsigned barrier) {
  if (to % 16 != 0 || bytes % 16 != 0 || reinterpret_cast<Word>(at(from)) % 16 != 0)
    emulated_machine->fail("cp.async.bulk: addresses and bytes must be multiples of 16");
  __builtin_memcpy(emulated_machine->shared(to, bytes), at(from), bytes);
  complete_bytes(barrier, bytes);
}

// ---- wgmma: each warp has 16 of the 64 rows, in the fragments of mma.sync ----
// Tiles as descriptors tell: start, strides, swizzle. `leading` is the step between pieces of 64 lanes where rows run along the sum.
struct Descriptor {
  unsigned start, leading, stride, mode;
  explicit Descriptor(Word d)
      : start(unsigned(d & 0x3fff) << 4),
        leading(unsigned(d >> 16 & 0x3fff) << 4),
        stride(unsigned(d >> 32 & 0x3fff) << 4),
        mode(unsigned(d >> 62)) {}
  const unsigned* piece(unsigned place) const {  // 16 bytes
    return static_cast<const unsigned*>(emulated_machine->shared(swizzled(place, mode == 0 ? 0 : 3), 16));
  }
  // 32 bytes of `count` lines (rows of the left or columns of the right operand, from `first` on) along the sum.
  template <class T>
  void read(float (*to)[8 * T::kEach], int first, int count, bool turned) const {
    constexpr int kEach = T::kEach, kPiece = 4 * kEach;
    if (turned && kEach != 2) emulated_machine->fail("wgmma: operands of 8 bits lie along the sum");
    if (mode != 1 && (mode != 0 || turned))
      emulated_machine->fail(
          "wgmma: only tiles with the swizzle of 128 bytes and plain ones along the sum are emulated");
    if (turned && first + count > 64 && leading <= 16)
      emulated_machine->fail("wgmma: no step between pieces of 64 columns");
    if (turned) {
      for (int line = 0; line < count; line += 8) {
        const unsigned column = unsigned(first + line),
                       place = start + column / 64 * leading + column % 64 * 2;
        for (unsigned depth = 0; depth < 16; ++depth) {
          const unsigned* const eight = piece(place + depth / 8 * stride + depth % 8 * 128);
          for (int i = 0; i < 8; ++i) to[line + i][depth] = T::of(eight[i / 2], i % 2);
        }
      }
      return;
    }
    for (int line = 0; line < count; ++line) {
      // Plain tiles are squares of eight rows of 16 bytes, `leading` bytes apart along the sum.
      const unsigned row = unsigned(first + line),
                     place = start + row / 8 * stride + row % 8 * (mode == 0 ? 16 : 128);
      for (unsigned half = 0; half < 2; ++half) {
        const unsigned* const words = piece(place + half * (mode == 0 ? leading : 16));
        for (int i = 0; i < kPiece; ++i)
          to[line][int(half) * kPiece + i] = T::of(words[i / kEach], i % kEach);
      }
    }
  }
};
struct Group {
  unsigned a[4];
  Word left, right;
  bool in_registers, more, turned, turned_left;
  float* d;
  int n, scale;
};
template <class T, class U>
struct MultiplyGroup {
  EMULATED_FAST static void run(Group* const* all, unsigned) {
    const Group& first = *all[0];
    const int warp = int(emulated_machine->thread.x / 32 % 4), n = first.n;
    constexpr int P = T::kEach, kDepth = 8 * P;
    float a[16][kDepth], b[256][kDepth];
    if (first.in_registers) {
      for (int lane = 0; lane < 32; ++lane)
        for (int i = 0; i < 4; ++i)
          for (int p = 0; p < P; ++p)
            a[lane / 4 + 8 * (i % 2)][lane % 4 * P + 4 * P * (i / 2) + p] = T::of(all[lane]->a[i], p);
    } else {
      Descriptor(first.left).read<T>(a, 16 * warp, 16, first.turned_left);
    }
    Descriptor(first.right).read<U>(b, 0, n, first.turned);
    for (int lane = 0; lane < 32; ++lane) {
      for (int e = 0; e < n / 2; ++e) {
        const int row = lane / 4 + 8 * (e / 2 % 2), column = e / 4 * 8 + lane % 4 * 2 + e % 2;
        float& d = all[lane]->d[e];
        const float scale = float(first.scale), before = first.more ? d * scale : 0.0f;
        d = scale * product_sum<T>(before, a[row], b[column], kDepth);
      }
    }
  }
};
template <class T, class U>
inline void multiply_group(Group& own) {
  together(~0u, own, "wgmma", MultiplyGroup<T, U>{});
}
// d is an array of pointers to the registers of the sums.
template <class T, class U, int N, class P>
inline void wgmma_registers(float* const (&d)[N / 2], unsigned a0, unsigned a1, unsigned a2, unsigned a3,
                            Word b, P more, int scale_a, int scale_b, int turned) {
  float sums[N / 2];
  for (int i = 0; i < N / 2; ++i) sums[i] = *d[i];
  Group own{{a0, a1, a2, a3}, 0, b, true, bool(more), turned != 0, false, sums, N, scale_a * scale_b};
  multiply_group<T, U>(own);
  for (int i = 0; i < N / 2; ++i) *d[i] = sums[i];
}
template <class T, class U, int N, class P>
inline void wgmma_shared(float* const (&d)[N / 2], Word a, Word b, P more, int scale_a, int scale_b,
                         int turned_left, int turned) {
  float sums[N / 2];
  for (int i = 0; i < N / 2; ++i) sums[i] = *d[i];
  Group own{{}, a, b, false, bool(more), turned != 0, turned_left != 0, sums, N, scale_a * scale_b};
  multiply_group<T, U>(own);
  for (int i = 0; i < N / 2; ++i) *d[i] = sums[i];
}

}  // namespace emulated::ptx
