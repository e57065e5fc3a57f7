#include "rlx/runtime/profile.h"

#include <algorithm>
#include <utility>

namespace rlx {

namespace {

// What a trace holds at most, so that a loop of many steps does not write gigabytes: steps in bodies during one step of the plan, all of
// those, and parts of jobs.
constexpr size_t kMostInStep = 2048, kMostInside = 65536, kMostWork = 131072;

double median(std::vector<double>& times) {
  const auto middle = times.begin() + int64_t(times.size() / 2);
  std::nth_element(times.begin(), middle, times.end());
  return *middle;
}

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

double Profile::since_start(Clock::time_point t) const {
  return std::chrono::duration<double>(t - start_).count();
}

// Steps of a plan run in its order, so the order in which they are first seen numbers them.
size_t Profile::info_of(const backend::Plan::Step& step) {
  const auto [it, is_new] = known_.try_emplace(&step, steps_.size());
  if (!is_new) return it->second;
  StepPath path;
  if (depth_ == 0) {
    path = {plan_steps_++};
  } else {
    StepInfo& outer = steps_[levels_[depth_ - 1].step];
    const int body = levels_[depth_ - 1].inside.body;
    path = outer.path;
    path.push_back(body);
    path.push_back(outer.steps_of_body[body]++);
  }
  const std::string result = step.out.empty() ? std::string() : cat(step.out[0].shape);
  steps_.push_back({.name = step.name,
                    .op = step.op,
                    .kernel = step.kernel,
                    .note = step.note,
                    .origin = step.origin,
                    .result = result,
                    .cost = step.cost,
                    .narrowest = narrowest_of(step),
                    .bodies = step.bodies.size(),
                    .path = std::move(path)});
  return it->second;
}

// A loop in a body gets half of what is left for the steps in the step around it, so that what follows is seen too.
void Profile::before(const backend::Plan::Step& step, const backend::Launch&) {
  Level& l = levels_[depth_];
  l = {.step = info_of(step)};
  const size_t of_outer = depth_ > 0 ? levels_[depth_ - 1].most : 0;
  l.most = depth_ == 0 ? inside_ + kMostInStep : inside_ + (std::max(of_outer, inside_) - inside_) / 2;
  l.begin = Clock::now();
}

void Profile::after(const backend::Plan::Step&, const backend::Launch&) {
  const Clock::time_point end = Clock::now();
  const Level& l = levels_[depth_];
  const double begin = since_start(l.begin);
  const double seconds = std::exchange(by_device_, std::nullopt).value_or(since_start(end) - begin);
  spans_.push_back({l.step, begin, seconds, l.shown, l.left_out});
  if (l.shown > 0) steps_[l.step].was_looked_into = true;
  if (depth_ > 0) ++inside_;
}

// Later runs of a loop take the time that they take when nobody looks, for the medians.
bool Profile::enter(const backend::BodyRun& which) {
  Level& l = levels_[depth_];
  const bool again = depth_ == 0 && which.round >= 0 && steps_[l.step].was_looked_into;
  if (again || inside_ >= std::min(l.most, kMostInside)) {
    ++l.left_out;
    return false;
  }
  ++l.shown;
  l.inside = which;
  l.body_begin = Clock::now();
  if (++depth_ == levels_.size()) levels_.emplace_back();
  return true;
}

void Profile::leave() {
  const Clock::time_point end = Clock::now();
  const Level& l = levels_[--depth_];
  const double begin = since_start(l.body_begin);
  body_spans_.push_back({l.step, l.inside, begin, since_start(end) - begin});
}

void Profile::job(std::span<const PoolWatch::Part> parts) {
  if (work_.size() + parts.size() > kMostWork) {
    work_left_out_ += int64_t(parts.size());
    return;
  }
  for (const PoolWatch::Part& p : parts) {
    const double begin = since_start(p.begin);
    work_.push_back({levels_[depth_].step, p.thread, begin, since_start(p.end) - begin});
  }
}

std::vector<double> Profile::medians(size_t steps) const {
  if (size_t(plan_steps_) != steps)
    throw invalid("profile: ", plan_steps_, " different steps ran, the plan has ", steps,
                  "; take one profile for each plan");
  std::vector<std::vector<double>> all(steps);
  for (const Span& s : spans_) {
    const StepPath& path = steps_[s.step].path;
    if (path.size() == 1) all[size_t(path[0])].push_back(s.seconds);
  }
  std::vector<double> out;
  for (auto& times : all) out.push_back(median(times));
  return out;
}

std::map<StepPath, InsideTimes> Profile::inside() const {
  std::map<StepPath, std::vector<double>> all;
  for (const Span& s : spans_) {
    const StepPath& path = steps_[s.step].path;
    if (path.size() > 1) all[path].push_back(s.seconds);
  }
  std::map<StepPath, InsideTimes> out;
  for (auto& [path, times] : all) out[path] = {times.size(), median(times)};
  return out;
}

}  // namespace rlx
