// Learning rates over time. A schedule maps the number of a step, from 0, to a rate; schedules compose:
//
//   warm_up(100, cosine(3e-4, 900, 3e-5))
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace rlx::train {

/// The rate of a step, by its number from 0.
using Schedule = std::function<double(int64_t step)>;

Schedule constant(double rate);
/// From `first` to `last` in `steps` steps, along a line; `last` from then on.
Schedule linear(double first, double last, int64_t steps);
/// last + (first - last) (1 + cos(pi i / steps)) / 2; `last` from step `steps` on.
Schedule cosine(double first, int64_t steps, double last = 0);
/// (first - last) (1 - i / steps)^power + last.
Schedule polynomial(double first, int64_t steps, double power = 1, double last = 0);
/// rate factor^floor(i / every).
Schedule step_decay(double rate, int64_t every, double factor = 0.1);
/// rate factor^(milestones passed).
Schedule multi_step(double rate, std::vector<int64_t> milestones, double factor = 0.1);
/// rate factor^i.
Schedule exponential(double rate, double factor);
/// rate sqrt(warm / max(i + 1, warm)) with a linear rise over the first `warm` steps.
Schedule inverse_sqrt(double rate, int64_t warm);

/// Up from peak / rise to `peak` within the first `share` of the steps, then down to peak / rise / fall, each along half a
/// cosine or a line. The borders lie at share * steps - 1 and steps - 1.
struct OneCycle {
  double share = 0.3, rise = 25, fall = 1e4;
  bool along_lines = false;
};
/// The rates of one cycle.
Schedule one_cycle(double peak, int64_t steps, const OneCycle& = {});

/// The first `steps` rates are then(0) (i + 1) / steps; then `then` begins at its step 0.
Schedule warm_up(int64_t steps, Schedule then);
/// Each part for its number of steps, from its step 0; the last goes on.
Schedule sequence(std::vector<std::pair<int64_t, Schedule>> parts);

/// What a command line says of a schedule.
struct ScheduleText {
  std::string name = "constant";  // see schedule_names()
  double rate = 1e-3;
  int64_t steps = 0;   // of the whole training
  int64_t warmup = 0;  // steps of linear rise in front
  double last = 0;     // rate at the end: linear, cosine, polynomial
  double factor = 0;   // 0: 0.1 (step) or 0.99 (exponential)
  int64_t every = 0;   // steps between two factors of `step`
  double power = 1;    // of polynomial
};
/// The names that schedule_of knows.
std::vector<std::string> schedule_names();
/// An unknown name or a number out of range is a user error.
Schedule schedule_of(const ScheduleText&);

}  // namespace rlx::train
