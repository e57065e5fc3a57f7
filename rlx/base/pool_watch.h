// What the threads of a pool do, for profiles: every job that one thread starts while it watches.
#pragma once

#include <chrono>
#include <cstdint>
#include <span>

namespace rlx {

class PoolWatch {
 public:
  using Clock = std::chrono::steady_clock;
  /// One part of a job, and the thread that ran it.
  struct Part {
    int64_t thread = 0;  // a number of its own in the process
    Clock::time_point begin, end;
  };
  virtual ~PoolWatch() = default;
  /// A job has ended; called by the thread that started it. Work that it does not share with other threads is no job.
  virtual void job(std::span<const Part>) = 0;
};

/// Jobs that this thread starts are told to the watch while this lives; null: they are not.
class WatchedPool {
 public:
  explicit WatchedPool(PoolWatch*);
  ~WatchedPool();
  WatchedPool(const WatchedPool&) = delete;
  WatchedPool& operator=(const WatchedPool&) = delete;

 private:
  PoolWatch* before_;
};

}  // namespace rlx
