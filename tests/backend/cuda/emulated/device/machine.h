// What a kernel that was compiled for the host and the emulated driver know of each other. Kernels include it through prelude.h; no
// header of the standard library, so that a kernel compiles in a fraction of a second.
#pragma once

namespace emulated {

struct Index {
  unsigned x, y, z;
};

/// The thread that runs now, and what it may ask of the driver.
struct Machine {
  Index thread, block, block_size, grid;
  unsigned lane, rank, ranks;  // in its warp; of its block in the cluster, and how many those are
  char* dynamic;               // shared memory that a launch asks for

  /// The lanes of `mask` come together: the last of them runs `complete` over what each brought, then all go on.
  void (*meet)(unsigned mask, void* own, void (*complete)(void* const* all, unsigned mask), const char* what);
  /// Barrier `id` of the block for `count` threads (0: all). Counts the threads that brought a value that is not 0.
  unsigned (*barrier)(unsigned id, unsigned count, bool value, bool waits);
  void (*cluster_arrive)();
  void (*cluster_wait)();
  /// Others run; `what` this thread waits for. `moved` says that somebody who waits may go on.
  void (*pause)(const char* what);
  void (*moved)();
  /// Addresses of 32 bits in the window of shared memory, of this block or (mapped by `map_rank`) of another of the cluster.
  unsigned (*shared_address)(const void*);
  void* (*shared)(unsigned address, unsigned bytes);
  unsigned (*map_rank)(unsigned address, unsigned rank);
  /// Copies that are on their way: each is made at once or when it is waited for, as chance has it.
  void (*copy)(void* to, const void* from, unsigned bytes, unsigned there);
  void (*commit)();
  void (*wait)(unsigned left);
  void (*fail)(const char* text);  // does not return
};

/// An entry of a module.
struct Kernel {
  void (*run)(void** parameters);
  unsigned count;
  const unsigned* sizes;  // of its parameters
  unsigned most_threads;  // 0: unknown
  Index cluster;
  Machine** machine;  // where the module looks for it
  char *shared_begin, *shared_end;
  unsigned dynamic_alignment;
};

/// A tensor as the copy engine knows it; what cuTensorMapEncodeTiled writes.
struct TensorMap {
  char* base;
  unsigned long long strides[4];  // bytes, of the axes behind the first
  unsigned extents[5];
  unsigned short box[5], element, rank, swizzle;
  unsigned magic;
};
static_assert(sizeof(TensorMap) <= 128);
constexpr unsigned kTensorMagic = 0x454d5554;

}  // namespace emulated
