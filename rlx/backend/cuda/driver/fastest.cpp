#include "rlx/backend/cuda/driver/fastest.h"

#include <algorithm>
#include <charconv>
#include <exception>
#include <limits>
#include <map>
#include <mutex>
#include <vector>

#include "rlx/backend/cuda/compile/cubin_cache.h"
#include "rlx/backend/cuda/compile/function.h"
#include "rlx/backend/cuda/compile/timings.h"
#include "rlx/base/error.h"

namespace rlx::cuda {
namespace {

constexpr size_t kFlushBytes = 96 << 20;  // more than the second cache holds
constexpr float kWorthIt = 0.97f;         // of the first way's time: less gain is noise

class Stopwatch {
 public:
  Stopwatch(const Gpu& gpu, Trials how) : d_(gpu.use()), how_(how) {
    check(d_.StreamCreate(&stream_, 1), "opening a stream");
    for (Event_*& e : events_) check(d_.EventCreate(&e, 0), "making an event");
    if (how == Trials::cold) flush_ = backend::Block(gpu.memory(), kFlushBytes);
  }
  ~Stopwatch() {
    for (Event_* e : events_) d_.EventDestroy(e);
    d_.StreamDestroy(stream_);
  }

  /// Milliseconds of one run, the median of several.
  float time(const std::function<void(Stream_*)>& queue) {
    queue(stream_);
    if (how_ != Trials::recorded) return median_of(queue);
    check(d_.StreamSynchronize(stream_), "queued work");
    Graph_* graph = nullptr;
    GraphExec_* recorded = nullptr;
    check(d_.StreamBeginCapture(stream_, kCaptureRelaxed), "recording");
    std::exception_ptr failed;
    try {
      queue(stream_);
    } catch (...) {
      failed = std::current_exception();
    }
    const Result ended = d_.StreamEndCapture(stream_, &graph);
    float ms = 0;
    try {
      if (failed) std::rethrow_exception(failed);
      check(ended, "recording");
      check(d_.GraphInstantiate(&recorded, graph, 0), "recording");
      const auto replay = [&](Stream_* s) { check(d_.GraphLaunch(recorded, s), "a run"); };
      replay(stream_);
      ms = median_of(replay);
    } catch (...) {
      failed = std::current_exception();
    }
    if (recorded) d_.GraphExecDestroy(recorded);
    if (graph) d_.GraphDestroy(graph);
    if (failed) std::rethrow_exception(failed);
    return ms;
  }

 private:
  static constexpr int kCaptureRelaxed = 2;  // CU_STREAM_CAPTURE_MODE_RELAXED

  float median_of(const std::function<void(Stream_*)>& queue) {
    const int runs = how_ == Trials::warm ? 4 : 1;
    std::vector<float> rounds;
    for (int r = 0; r < 5; ++r) {
      if (flush_) check(d_.MemsetD8Async(device_pointer(flush_.get()), 0, kFlushBytes, stream_), "a fill");
      check(d_.EventRecord(events_[0], stream_), "taking the time");
      for (int i = 0; i < runs; ++i) queue(stream_);
      check(d_.EventRecord(events_[1], stream_), "taking the time");
      check(d_.StreamSynchronize(stream_), "queued work");
      float ms = 0;
      check(d_.EventElapsedTime(&ms, events_[0], events_[1]), "taking the time");
      rounds.push_back(ms / float(runs));
    }
    std::nth_element(rounds.begin(), rounds.begin() + 2, rounds.end());
    return rounds[2];
  }

  const Driver& d_;
  Trials how_;
  Stream_* stream_ = nullptr;
  Event_* events_[2] = {};
  backend::Block flush_;
};

int measure(const Gpu& gpu, int count, Trials how, const std::function<void(Stream_*, int)>& queue,
            Timed& told) {
  Stopwatch watch(gpu, how);
  int best = 0;
  float least = std::numeric_limits<float>::infinity();
  for (int way = 0; way < count; ++way) {
    try {
      const float ms = watch.time([&](Stream_* s) { queue(s, way); });
      told.add(cat(way == 0 ? ": " : ", ", ms, " ms"));
      if (ms < least * (best == 0 && way > 0 ? kWorthIt : 1.0f)) least = ms, best = way;
    } catch (const Error&) {
      // Another way will do.
    }
  }
  return best;
}

thread_local Postponed* outermost = nullptr;

}  // namespace

Postponed::Postponed() : inside_(outermost != nullptr) {
  if (!inside_) outermost = this;
}
Postponed::~Postponed() {
  if (!inside_) outermost = nullptr;
}

bool Postponed::take(const std::function<void()>& ask) {
  if (!ask || !outermost || outermost->ended_) return false;
  ask();
  ++outermost->count_;
  return true;
}

int fastest(const Gpu& gpu, const std::string& key, int count, Trials how, const std::function<void()>& ask,
            const std::function<void(Stream_*, int way)>& queue) {
  const AskedTexts of_ways;  // are no part of the step
  static std::mutex mutex;
  static std::map<std::string, int> known;
  const std::lock_guard lock(mutex);
  if (const auto it = known.find(key); it != known.end()) return std::min(it->second, count - 1);
  const std::string path = cubin_path(cat("fastest\n", gpu.name(), "\n", gpu.driver_version(), "\n", key));
  if (path.empty() || count <= 1) return 0;
  int best = 0;
  const auto kept = read_cubin(path);
  if (!kept || std::from_chars(kept->data(), kept->data() + kept->size(), best).ec != std::errc() ||
      best < 0) {
    if (Postponed::take(ask)) return 0;
    Timed timed(
        cat("measuring ", count, " ways of ", key.substr(0, key.find('\n')), ", ", key.size(), " bytes"));
    best = measure(gpu, count, how, queue, timed);
    write_cubin(path, cat(best));
  }
  known[key] = best;
  return std::min(best, count - 1);
}

}  // namespace rlx::cuda
