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

namespace rlx {

/// What the processor reaches with our own kernels: products of two matrices that lie in the cache, and sums of tensors that
/// do not, and of smaller ones that do.
struct MachineLimits {
  double operations_per_second = 0;  // of f32
  double bytes_per_second = 0;       // of memory
  struct InCache {
    double bytes = 0, bytes_per_second = 0;
  };
  std::vector<InCache> in_cache;              // by sizes of all operands and results together
  std::map<DType, double> narrow_operations;  // of products of narrower types, where they are faster

  /// The most that operands of so many bytes are read and written with, wherever they lie.
  double bytes_per_second_of(double bytes) const;
  double operations_per_second_of(DType) const;
};
/// Takes about a tenth of a second.
MachineLimits measure_limits(int threads = 0);

/// Time of a step at these limits over the time it took; `type`: the narrowest of its operands.
double roofline_share(const MachineLimits&, const ir::Cost&, double seconds, DType type = DType::f32);
double roofline_share(const MachineLimits&, const backend::Plan::Step&, double seconds);

class Profile final : public backend::Observer {
 public:
  explicit Profile(std::optional<MachineLimits> limits = std::nullopt) : limits_(limits) {}

  void before(const backend::Plan::Step&, const backend::Launch&) override;
  void after(const backend::Plan::Step&, const backend::Launch&) override;

  const std::optional<MachineLimits>& limits() const { return limits_; }
  /// Number of step runs seen.
  size_t size() const { return spans_.size(); }
  /// Median seconds of each step of the plan that ran, in its order. Fewer or more distinct steps than `steps` are a user
  /// error: then several plans ran.
  std::vector<double> medians(size_t steps) const;
  /// Events in the trace format that Perfetto and chrome://tracing read: one span per step run, with operator, kernel, origin,
  /// bytes, GFLOP/s and share of the roofline.
  std::string trace_json() const;

 private:
  using Clock = std::chrono::steady_clock;
  struct StepInfo {
    std::string name, op, kernel, note, origin, result;
    ir::Cost cost;
    DType narrowest;
  };
  struct Span {
    size_t step;
    double begin, seconds;
  };

  std::optional<MachineLimits> limits_;
  Clock::time_point start_ = Clock::now(), begin_;
  std::unordered_map<const backend::Plan::Step*, size_t> known_;
  std::vector<StepInfo> steps_;
  std::vector<Span> spans_;
};

}  // namespace rlx
