#include "rlx/runtime/profile.h"

#include <unistd.h>

#include <algorithm>

#include "rlx/base/json_write.h"

namespace rlx {

namespace {

DType narrowest_of(const backend::Plan::Step& s) {
  DType out = DType::f32;
  for (const auto& p : s.in) {
    const DType t = p.shape.dtype();
    if (t != DType::bool_ && dtype_size(t) < dtype_size(out)) out = t;
  }
  return out;
}

}  // namespace

// Caches do not end at a power of two, so the next smaller size counts too.
double MachineLimits::bytes_per_second_of(double bytes) const {
  double out = bytes_per_second;
  for (const InCache& c : in_cache) {
    if (2 * c.bytes >= bytes) out = std::max(out, c.bytes_per_second);
  }
  return out;
}

double MachineLimits::operations_per_second_of(DType type) const {
  const auto narrow = narrow_operations.find(type == DType::u8 ? DType::i8 : type);
  return narrow == narrow_operations.end() ? operations_per_second
                                           : std::max(operations_per_second, narrow->second);
}

double roofline_share(const MachineLimits& limits, const ir::Cost& cost, double seconds, DType type) {
  if (seconds <= 0) return 0;
  const double least = std::max(cost.operations / limits.operations_per_second_of(type),
                                cost.bytes / limits.bytes_per_second_of(cost.bytes));
  return least / seconds;
}

double roofline_share(const MachineLimits& limits, const backend::Plan::Step& step, double seconds) {
  return roofline_share(limits, step.cost, seconds, narrowest_of(step));
}

void Profile::before(const backend::Plan::Step&, const backend::Launch&) { begin_ = Clock::now(); }

void Profile::after(const backend::Plan::Step& step, const backend::Launch&) {
  const Clock::time_point end = Clock::now();
  const auto seconds = [](Clock::duration d) { return std::chrono::duration<double>(d).count(); };
  const auto [it, is_new] = known_.try_emplace(&step, steps_.size());
  if (is_new) {
    const std::string result = step.out.empty() ? std::string() : cat(step.out[0].shape);
    steps_.push_back(
        {step.name, step.op, step.kernel, step.note, step.origin, result, step.cost, narrowest_of(step)});
  }
  spans_.push_back({it->second, seconds(begin_ - start_), seconds(end - begin_)});
}

std::vector<double> Profile::medians(size_t steps) const {
  if (steps_.size() != steps)
    throw invalid("profile: ", steps_.size(), " different steps ran, the plan has ", steps,
                  "; take one profile for each plan");
  std::vector<std::vector<double>> all(steps);
  for (const Span& s : spans_) all[s.step].push_back(s.seconds);
  std::vector<double> out;
  for (auto& times : all) {
    const auto middle = times.begin() + int64_t(times.size() / 2);
    std::nth_element(times.begin(), middle, times.end());
    out.push_back(*middle);
  }
  return out;
}

std::string Profile::trace_json() const {
  JsonWriter out({.indent = -1, .replace_invalid = true});
  const auto process = int64_t(::getpid());
  out.begin_object();
  out.member("displayTimeUnit", "ns");
  out.key("traceEvents");
  out.begin_array();
  out.begin_object();
  out.member("name", "thread_name"), out.member("ph", "M"), out.member("pid", process), out.member("tid", 1);
  out.key("args"), out.begin_object(), out.member("name", "steps"), out.end_object();
  out.end_object();
  for (const Span& span : spans_) {
    const StepInfo& s = steps_[span.step];
    out.begin_object();
    out.member("name", s.name.empty() ? s.op : cat(s.name, " ", s.op));
    out.member("cat", s.kernel);
    out.member("ph", "X");
    out.member("ts", span.begin * 1e6);
    out.member("dur", span.seconds * 1e6);
    out.member("pid", process);
    out.member("tid", 1);
    out.key("args");
    out.begin_object();
    out.member("kernel", s.kernel);
    out.member("result", s.result);
    if (!s.note.empty()) out.member("note", s.note);
    if (!s.origin.empty()) out.member("origin", s.origin);
    out.member("operations", s.cost.operations);
    out.member("bytes", s.cost.bytes);
    if (span.seconds > 0) out.member("GFLOP/s", s.cost.operations / span.seconds * 1e-9);
    if (span.seconds > 0) out.member("GB/s", s.cost.bytes / span.seconds * 1e-9);
    if (limits_) out.member("roofline share", roofline_share(*limits_, s.cost, span.seconds, s.narrowest));
    out.end_object();
    out.end_object();
  }
  out.end_array();
  out.end_object();
  return out.take();
}

}  // namespace rlx
