#include "rlx/base/pool.h"

#include <pthread.h>

#include <chrono>
#include <exception>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "rlx/base/error.h"
#include "rlx/base/options.h"
#include "rlx/base/pool_watch.h"
#include "rlx/base/read_ahead.h"

namespace rlx {
namespace {

constexpr int kMaxThreads = 1024;
// A worker spins this long after its last part: longer than the serial gaps between the steps of a model,
// short enough that an idle program costs nothing.
constexpr std::chrono::microseconds kSpin{80};

inline void relax() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// A slot's word is 4 * job + phase. The job number keeps a late worker from claiming a newer job by mistake.
enum Phase : uint32_t { kDone = 0, kOpen = 1, kClaimed = 2, kStop = 3 };

std::atomic<uint64_t> fork_count{0};
thread_local bool inside_part = false;
// Of the jobs that this thread starts.
thread_local PoolWatch* job_watch = nullptr;

int64_t thread_number() {
  static std::atomic<int64_t> next{0};
  thread_local const int64_t mine = next.fetch_add(1, std::memory_order_relaxed);
  return mine;
}

// The pool itself knows nothing of it: a watched job is another function around the same parts.
struct WatchedJob {
  void (*part)(void*, int);
  void* context;
  std::vector<PoolWatch::Part> parts;  // each written by the thread that runs it

  static void run(void* self, int part) {
    auto& job = *static_cast<WatchedJob*>(self);
    PoolWatch::Part& seen = job.parts[size_t(part)];
    seen.thread = thread_number();
    seen.begin = PoolWatch::Clock::now();
    const struct End {
      PoolWatch::Part& seen;
      ~End() { seen.end = PoolWatch::Clock::now(); }
    } end{seen};
    job.part(job.context, part);
  }
};

int default_threads() {
  if (const auto wanted = option_int("RLX_THREADS")) {
    if (*wanted < 1 || *wanted > kMaxThreads) {
      throw invalid("options: RLX_THREADS is ", *wanted, "; it must be from 1 to ", kMaxThreads);
    }
    return int(*wanted);
  }
  return std::clamp(int(std::thread::hardware_concurrency()), 1, kMaxThreads);
}

}  // namespace

struct alignas(64) PoolSlot {
  std::atomic<uint32_t> word{kDone};
  std::atomic<uint32_t> asleep{0};
  void (*part)(void*, int) = nullptr;
  void* context = nullptr;
  std::exception_ptr error;

  void execute(int index) {
    inside_part = true;
    try {
      part(context, index);
    } catch (...) {
      error = std::current_exception();
    }
    inside_part = false;
  }
};

struct PoolState {
  uint64_t forks;                 // value of fork_count when the workers were started
  std::atomic<bool> busy{false};  // a job is under way
  uint32_t job = 0;               // guarded by busy
  std::vector<PoolSlot> slots;    // slot 0 is the caller's
  std::vector<std::thread> workers;

  PoolState(int threads, uint64_t forks_now) : forks(forks_now), slots(size_t(threads)) {
    workers.reserve(size_t(threads - 1));
    for (int i = 1; i < threads; ++i) {
      workers.emplace_back([slot = &slots[size_t(i)], i] { work(*slot, i); });
    }
  }

  ~PoolState() {
    for (size_t i = 1; i < slots.size(); ++i) {
      slots[i].word.store(kStop);
      slots[i].word.notify_one();
    }
    for (std::thread& w : workers) w.join();
  }

  static void work(PoolSlot& slot, int index) {
    for (;;) {
      uint32_t seen = await(slot);
      if ((seen & 3) == kStop) return;
      if (!slot.word.compare_exchange_strong(seen, (seen & ~3u) | kClaimed, std::memory_order_acquire))
        continue;
      slot.execute(index);
      slot.word.store((seen & ~3u) | kDone, std::memory_order_release);
    }
  }

  // Until the slot is open or told to stop: spin, then sleep. The worker announces its sleep before it looks
  // at the word again, the caller opens the slot before it looks at the announcement; both are seq_cst, so
  // one of them sees the other.
  static uint32_t await(PoolSlot& slot) {
    const auto wanted = [](uint32_t word) { return (word & 3) == kOpen || (word & 3) == kStop; };
    for (;;) {
      const auto start = std::chrono::steady_clock::now();
      do {
        for (int i = 0; i < 64; ++i) {
          const uint32_t word = slot.word.load(std::memory_order_acquire);
          if (wanted(word)) return word;
          if (!read_announced()) relax();
        }
      } while (std::chrono::steady_clock::now() - start < kSpin);
      slot.asleep.store(1);
      const uint32_t word = slot.word.load();
      if (!wanted(word)) slot.word.wait(word);
      slot.asleep.store(0, std::memory_order_relaxed);
    }
  }
};

Pool::Pool(int threads) : threads_(threads > 0 ? threads : default_threads()) {
  if (threads < 0 || threads > kMaxThreads) {
    throw invalid("pool: ", threads, " threads; it must be from 1 to ", kMaxThreads,
                  ", or 0 for the default");
  }
  static const int registered = pthread_atfork(nullptr, nullptr, [] { fork_count.fetch_add(1); });
  (void)registered;
}

Pool::~Pool() {
  PoolState* state = state_.load();
  // After a fork the workers of the parent do not exist here: there is nothing to join.
  if (state != nullptr && state->forks == fork_count.load()) delete state;
}

// The workers, started if they are not running in this process. What a fork left behind is dropped unfreed,
// because its threads cannot be joined.
PoolState* Pool::acquire() {
  PoolState* state = state_.load(std::memory_order_acquire);
  const uint64_t forks = fork_count.load(std::memory_order_relaxed);
  if (state != nullptr && state->forks == forks) return state;
  auto fresh = std::make_unique<PoolState>(threads_, forks);
  if (state_.compare_exchange_strong(state, fresh.get(), std::memory_order_acq_rel)) return fresh.release();
  return state;
}

WatchedPool::WatchedPool(PoolWatch* watch) : before_(std::exchange(job_watch, watch)) {}
WatchedPool::~WatchedPool() { job_watch = before_; }

void Pool::run(int parts, Part part, void* context) {
  if (job_watch != nullptr) [[unlikely]] {
    WatchedJob job{part, context, std::vector<PoolWatch::Part>(size_t(parts))};
    PoolWatch& watch = *job_watch;
    {
      const WatchedPool once(nullptr);
      run(parts, &WatchedJob::run, &job);
    }
    return watch.job(job.parts);
  }
  PoolState* state = inside_part ? nullptr : acquire();
  if (state == nullptr || state->busy.exchange(true, std::memory_order_acquire)) {
    for (int i = 0; i < parts; ++i) part(context, i);
    return;
  }
  std::vector<PoolSlot>& slots = state->slots;
  const uint32_t job = ++state->job << 2;
  for (int i = 1; i < parts; ++i) {
    PoolSlot& slot = slots[size_t(i)];
    slot.part = part;
    slot.context = context;
    slot.word.store(job | kOpen);
    if (slot.asleep.load()) slot.word.notify_one();
  }
  slots[0].part = part;
  slots[0].context = context;
  slots[0].execute(0);
  for (int i = 1; i < parts; ++i) {
    PoolSlot& slot = slots[size_t(i)];
    uint32_t expected = job | kOpen;
    if (slot.word.compare_exchange_strong(expected, job | kClaimed, std::memory_order_acquire)) {
      slot.execute(i);
      slot.word.store(job | kDone, std::memory_order_release);
      continue;
    }
    for (int spins = 0; slot.word.load(std::memory_order_acquire) != (job | kDone); ++spins) {
      if (spins < 20000) {
        if (!read_announced()) relax();
      } else {
        std::this_thread::yield();
      }
    }
  }
  std::exception_ptr error;
  for (int i = parts - 1; i >= 0; --i) {
    if (slots[size_t(i)].error) error = std::exchange(slots[size_t(i)].error, nullptr);
  }
  state->busy.store(false, std::memory_order_release);
  if (error) std::rethrow_exception(error);
}

Pool& default_pool() {
  // Never destroyed: user threads may still compute while the process exits.
  static Pool* pool = new Pool;
  return *pool;
}

}  // namespace rlx
