// What a run spends its time on.
//
//   Profile profile(measure_limits(2));
//   f.observe(&profile);
//   for (int i = 0; i < 5; ++i) f.run(inputs);
//   write_file("trace.json", profile.trace_json());  // for ui.perfetto.dev
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <unordered_map>

#include "rlx/backend/executable.h"
#include "rlx/base/pool_watch.h"

namespace rlx {

class JsonWriter;

/// What a device reaches with the kernels that graphs run on: products of two matrices, and sums of tensors that lie in no cache, and of
/// smaller ones that do.
struct MachineLimits {
  double operations_per_second = 0;  // of f32
  double bytes_per_second = 0;       // of memory
  /// Bandwidth of operands that stay in a cache.
  struct InCache {
    double bytes = 0, bytes_per_second = 0;
  };
  std::vector<InCache> in_cache;              // by sizes of all operands and results together
  std::map<DType, double> narrow_operations;  // of products of narrower types, where they are faster

  /// The most that operands of so many bytes are read and written with, wherever they lie.
  double bytes_per_second_of(double bytes) const;
  /// Of products of this type; that of f32 where it is no faster.
  double operations_per_second_of(DType) const;
};
/// Of the processor; takes about a tenth of a second.
MachineLimits measure_limits(int threads = 0);
/// Of a device that device_named() knows, by its own clock where it has one; "ref" runs on the processor.
MachineLimits measure_limits(std::string_view device, int threads = 0);

/// Time of a step at these limits over the time it took; `type`: the narrowest of its operands.
double roofline_share(const MachineLimits&, const ir::Cost&, double seconds, DType type = DType::f32);
double roofline_share(const MachineLimits&, const backend::Plan::Step&, double seconds);

/// Times of a step inside of a body: medians of those runs that were seen.
struct InsideTimes {
  size_t seen = 0;
  double seconds = 0;
};
/// Where a step is: its number in the plan and, in a body, the number of that body and its own number there, and so on.
using StepPath = std::vector<int>;

/// Steps with the time they took, by the clock of the device where it has one, those of loops and branches inside of the step that runs them, and what each thread did meanwhile. A loop
/// is looked into the first time that it runs, up to a number of steps; the trace says what was left out.
class Profile final : public backend::Observer, private PoolWatch {
 public:
  explicit Profile(std::optional<MachineLimits> limits = std::nullopt) : limits_(limits) {}

  void before(const backend::Plan::Step&, const backend::Launch&) override;
  void took(double seconds) override { by_device_ = seconds; }
  void after(const backend::Plan::Step&, const backend::Launch&) override;
  bool enter(const backend::BodyRun&) override;
  void leave() override;
  PoolWatch* pool_watch() override { return this; }

  /// What shares of the roofline are taken of; none: they are not told.
  const std::optional<MachineLimits>& limits() const { return limits_; }
  /// Number of step runs seen, those in bodies included.
  size_t size() const { return spans_.size(); }
  /// Median seconds of each step of the plan that ran, in its order. Fewer or more distinct steps than `steps` are a user
  /// error: then several plans ran.
  std::vector<double> medians(size_t steps) const;
  /// Of the steps in bodies that were looked into.
  std::map<StepPath, InsideTimes> inside() const;
  /// Events in the trace format that Perfetto and chrome://tracing read. On the track "steps" one slice per step run, with operator,
  /// kernel, origin, bytes, GFLOP/s and share of the roofline; on a track for each thread what it did of which step.
  std::string trace_json() const;

 private:
  using Clock = std::chrono::steady_clock;
  struct StepInfo {
    std::string name, op, kernel, note, origin, result;
    ir::Cost cost;
    DType narrowest;
    size_t bodies = 0;
    StepPath path;
    bool was_looked_into = false;
    std::map<int, int> steps_of_body;  // known so far
  };
  struct Span {
    size_t step;
    double begin, seconds;
    int64_t shown = 0, left_out = 0;  // runs of its bodies
  };
  /// One run of a body.
  struct BodySpan {
    size_t step;
    backend::BodyRun which;
    double begin, seconds;
  };
  struct Work {
    size_t step;
    int64_t thread;
    double begin, seconds;
  };
  /// A step on the way, and the run of its body.
  struct Level {
    size_t step = 0;
    Clock::time_point begin, body_begin;
    backend::BodyRun inside;
    int64_t shown = 0, left_out = 0;
    size_t most = 0;  // steps in bodies up to its end
  };

  void job(std::span<const PoolWatch::Part>) override;
  size_t info_of(const backend::Plan::Step&);
  double since_start(Clock::time_point) const;
  void write_step(JsonWriter&, const Span&) const;
  void write_body(JsonWriter&, const BodySpan&) const;
  void write_work(JsonWriter&) const;

  std::optional<MachineLimits> limits_;
  Clock::time_point start_ = Clock::now();
  std::unordered_map<const backend::Plan::Step*, size_t> known_;
  std::vector<StepInfo> steps_;
  int plan_steps_ = 0;  // of them outside of bodies
  std::vector<Span> spans_;
  std::vector<BodySpan> body_spans_;
  std::vector<Work> work_;
  size_t inside_ = 0;          // spans in bodies
  int64_t work_left_out_ = 0;  // parts of jobs
  size_t depth_ = 0;           // of bodies
  std::vector<Level> levels_{1};
  std::optional<double> by_device_;  // seconds of the step that has ended
};

}  // namespace rlx
