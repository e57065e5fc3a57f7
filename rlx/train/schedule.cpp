#include "rlx/train/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "rlx/base/error.h"

namespace rlx::train {
namespace {

void require_steps(std::string_view name, int64_t steps) {
  if (steps <= 0) throw invalid("schedule: ", name, " over ", steps, " steps; at least 1 is needed");
}

// From a (share 0) to b (share 1).
double along_cosine(double a, double b, double share) {
  return b + (a - b) * (1 + std::cos(std::numbers::pi * share)) / 2;
}
double along_line(double a, double b, double share) { return a + (b - a) * share; }

double share_of(int64_t step, int64_t steps) { return double(std::min(step, steps)) / double(steps); }

}  // namespace

Schedule constant(double rate) {
  return [=](int64_t) { return rate; };
}

Schedule linear(double first, double last, int64_t steps) {
  require_steps("linear", steps);
  return [=](int64_t i) { return along_line(first, last, share_of(i, steps)); };
}

Schedule cosine(double first, int64_t steps, double last) {
  require_steps("cosine", steps);
  return [=](int64_t i) { return along_cosine(first, last, share_of(i, steps)); };
}

Schedule polynomial(double first, int64_t steps, double power, double last) {
  require_steps("polynomial", steps);
  return [=](int64_t i) { return last + (first - last) * std::pow(1 - share_of(i, steps), power); };
}

Schedule step_decay(double rate, int64_t every, double factor) {
  require_steps("step", every);
  return [=](int64_t i) { return rate * std::pow(factor, double(i / every)); };
}

Schedule multi_step(double rate, std::vector<int64_t> milestones, double factor) {
  return [=](int64_t i) {
    const auto passed =
        std::count_if(milestones.begin(), milestones.end(), [&](int64_t m) { return m <= i; });
    return rate * std::pow(factor, double(passed));
  };
}

Schedule exponential(double rate, double factor) {
  return [=](int64_t i) { return rate * std::pow(factor, double(i)); };
}

Schedule inverse_sqrt(double rate, int64_t warm) {
  require_steps("inverse_sqrt", warm);
  return [=](int64_t i) {
    return i < warm ? rate * double(i + 1) / double(warm) : rate * std::sqrt(double(warm) / double(i + 1));
  };
}

Schedule one_cycle(double peak, int64_t steps, const OneCycle& shape) {
  require_steps("one_cycle", steps);
  const double first = peak / shape.rise, last = first / shape.fall;
  const double top = shape.share * double(steps) - 1, end = double(steps) - 1;
  const auto between = shape.along_lines ? along_line : along_cosine;
  return [=](int64_t step) {
    const double i = std::min(double(step), end);
    return i <= top ? between(first, peak, top > 0 ? i / top : 1)
                    : between(peak, last, (i - top) / (end - top));
  };
}

Schedule warm_up(int64_t steps, Schedule then) {
  if (steps <= 0) return then;
  return [steps, then = std::move(then)](int64_t i) {
    return i < steps ? then(0) * double(i + 1) / double(steps) : then(i - steps);
  };
}

Schedule sequence(std::vector<std::pair<int64_t, Schedule>> parts) {
  if (parts.empty()) throw invalid("schedule: a sequence of no parts");
  return [parts = std::move(parts)](int64_t i) {
    for (size_t k = 0; k + 1 < parts.size(); ++k) {
      if (i < parts[k].first) return parts[k].second(i);
      i -= parts[k].first;
    }
    return parts.back().second(i);
  };
}

std::vector<std::string> schedule_names() {
  return {"constant", "linear", "cosine", "polynomial", "step", "exponential", "inverse_sqrt", "one_cycle"};
}

Schedule schedule_of(const ScheduleText& s) {
  if (s.warmup < 0) throw invalid("schedule: a warm-up of ", s.warmup, " steps; at least 0 is needed");
  const auto require_number = [](const char* what, double value) {
    if (!(value >= 0 && std::isfinite(value)))
      throw invalid("schedule: ", what, " of ", value, "; at least 0 and finite is needed");
  };
  require_number("a rate", s.rate);
  require_number("a last rate", s.last);
  require_number("a factor", s.factor);
  require_number("a power", s.power);
  const int64_t rest = s.steps - s.warmup;
  const bool ends = s.name == "linear" || s.name == "cosine" || s.name == "polynomial";
  if (ends && s.warmup > 0 && rest <= 0)
    throw invalid("schedule: a warm-up of ", s.warmup, " steps leaves none of ", s.steps, " for ", s.name);
  const auto decaying = [&]() -> Schedule {
    if (s.name == "constant") return constant(s.rate);
    if (s.name == "linear") return linear(s.rate, s.last, rest);
    if (s.name == "cosine") return cosine(s.rate, rest, s.last);
    if (s.name == "polynomial") return polynomial(s.rate, rest, s.power, s.last);
    if (s.name == "step") {
      if (s.every <= 0) throw invalid("schedule: step needs the steps between two factors");
      return step_decay(s.rate, s.every, s.factor > 0 ? s.factor : 0.1);
    }
    if (s.name == "exponential") return exponential(s.rate, s.factor > 0 ? s.factor : 0.99);
    const auto names = schedule_names();
    const std::string near = nearest_name(s.name, names);
    throw invalid("schedule: unknown schedule '", s.name, "'",
                  near.empty() ? "" : cat("; did you mean '", near, "'"), "; known: ", join(names));
  };
  // These two rise by themselves.
  if (s.name == "one_cycle") {
    if (s.warmup > 0) throw invalid("schedule: one_cycle rises by itself; leave out the warm-up");
    return one_cycle(s.rate, s.steps);
  }
  if (s.name == "inverse_sqrt" && s.warmup == 0)
    throw invalid(
        "schedule: inverse_sqrt needs a warm-up: its rate rises over these steps and falls from there");
  if (s.name == "inverse_sqrt") return inverse_sqrt(s.rate, s.warmup);
  return warm_up(s.warmup, decaying());
}

}  // namespace rlx::train
