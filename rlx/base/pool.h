// The thread pool: one set of workers, fork-join, no queue.
//
// A job is split into parts. Every worker owns one slot (one cache line) that holds its part of the job; it
// spins on the slot for a short while after its last part and then sleeps. The caller fills the slots, does
// its own part, takes back every part that no worker has begun, and waits for the others. So a worker that
// sleeps or was descheduled never delays a job, and a hot fork-join costs one cache line there and back.
//
// How a job is split depends only on its size and on Team::threads(), never on who runs what: a nested call,
// or a call while another user thread has the workers, runs the same parts one after the other on the
// calling thread. Parts must therefore not wait for each other.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <type_traits>

namespace rlx {

struct PoolState;

class Pool {
 public:
  /// `threads` counts the calling thread; 0 takes RLX_THREADS, or the cores this process may use. Workers
  /// start with the first parallel call, and anew in a forked child.
  explicit Pool(int threads = 0);
  ~Pool();
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  int threads() const { return threads_; }

 private:
  friend class Team;
  using Part = void (*)(void* context, int part);
  void run(int parts, Part, void* context);
  PoolState* acquire();

  int threads_;
  std::atomic<PoolState*> state_{nullptr};
};

/// The pool of the process, made at first use.
Pool& default_pool();

/// Part `part` of [0, count) cut into `parts` ranges whose borders are multiples of `grain`, as even as
/// the grain allows.
struct Range {
  int64_t begin, end;
};
constexpr Range split_range(int64_t count, int64_t grain, int parts, int part) {
  const int64_t units = (count + grain - 1) / grain;
  return {std::min(count, units * part / parts * grain), std::min(count, units * (part + 1) / parts * grain)};
}

/// How many threads of which pool a call may use. Kernels take a Team by value. An exception thrown by a
/// part reaches the caller after all parts have ended; of several, the one of the lowest part.
class Team {
 public:
  Team(Pool& pool, int threads = 0)  // NOLINT: kernels are called with a pool
      : pool_(&pool), threads_(threads > 0 ? std::min(threads, pool.threads()) : pool.threads()) {}

  int threads() const { return threads_; }
  Team limited(int threads) const { return Team(*pool_, std::min(threads, threads_)); }

  /// body(part) for every part in [0, parts), part i on thread i modulo threads() when all are free.
  template <class Body>
  void run(int parts, Body&& body) const {
    if (parts <= 1 || threads_ <= 1) {
      for (int i = 0; i < parts; ++i) body(i);
      return;
    }
    struct Job {
      std::remove_reference_t<Body>& body;
      int parts, step;
    } job{body, parts, std::min(parts, threads_)};
    pool_->run(
        job.step,
        [](void* context, int first) {
          Job& j = *static_cast<Job*>(context);
          for (int i = first; i < j.parts; i += j.step) j.body(i);
        },
        &job);
  }

  /// Static split: body(begin, end) on at most threads() ranges, none shorter than `grain`.
  template <class Body>
  void parallel_for(int64_t count, int64_t grain, Body&& body) const {
    if (count <= 0) return;
    const int parts = int(std::min<int64_t>(threads_, (count + grain - 1) / grain));
    run(parts, [&](int part) {
      const Range r = split_range(count, grain, parts, part);
      if (r.begin < r.end) body(r.begin, r.end);
    });
  }

  /// Dynamic: threads take chunks of `chunk` items in order; for uneven work.
  template <class Body>
  void parallel_chunks(int64_t count, int64_t chunk, Body&& body) const {
    if (count <= 0) return;
    const int64_t chunks = (count + chunk - 1) / chunk;
    std::atomic<int64_t> next{0};
    run(int(std::min<int64_t>(threads_, chunks)), [&](int) {
      for (int64_t i; (i = next.fetch_add(1, std::memory_order_relaxed)) < chunks;) {
        body(i * chunk, std::min(count, (i + 1) * chunk));
      }
    });
  }

  /// 2-D tiles of [0, rows) x [0, columns), dynamic, row-major order: body(r0, r1, c0, c1).
  template <class Body>
  void parallel_tiles(int64_t rows, int64_t columns, int64_t tile_rows, int64_t tile_columns,
                      Body&& body) const {
    if (rows <= 0 || columns <= 0) return;
    const int64_t across = (columns + tile_columns - 1) / tile_columns;
    const int64_t down = (rows + tile_rows - 1) / tile_rows;
    parallel_chunks(across * down, 1, [&](int64_t tile, int64_t) {
      const int64_t r = tile / across * tile_rows, c = tile % across * tile_columns;
      body(r, std::min(rows, r + tile_rows), c, std::min(columns, c + tile_columns));
    });
  }

 private:
  Pool* pool_;
  int threads_;
};

}  // namespace rlx
