#include "apps/rlx/schedule_arguments.h"

#include <algorithm>

#include "apps/rlx/usage_error.h"
#include "rlx/base/text.h"

namespace rlx::cli {

void ScheduleArguments::add(Command command, const std::string& command_name, train::ScheduleText& s,
                            bool shape) {
  command_ = command_name;
  schedule_ = &s;
  command.add_option("--lr", s.rate, "learning rate").not_negative().with_default_shown();
  command.add_option("--schedule", s.name, "how the rate changes")
      .one_of(train::schedule_names())
      .with_default_shown();
  std::vector<std::string> no_rise = train::schedule_names();
  std::erase(no_rise, "one_cycle");  // it rises by itself
  readers_.push_back(
      {"--warmup", command.add_option("--warmup", s.warmup, "steps of linear rise in front"), no_rise});
  if (!shape) return;
  const auto add_real = [&](const char* option, double& value, const char* summary,
                            std::vector<std::string> schedules) {
    readers_.push_back({option, command.add_option(option, value, summary), std::move(schedules)});
  };
  add_real("--min-lr", s.last, "rate at the end of linear, cosine and polynomial",
           {"linear", "cosine", "polynomial"});
  add_real("--decay-factor", s.factor, "factor of step and exponential", {"step", "exponential"});
  readers_.push_back({"--decay-every",
                      command.add_option("--decay-every", s.every, "steps between two factors of step"),
                      {"step"}});
  add_real("--power", s.power, "power of polynomial", {"polynomial"});
}

void ScheduleArguments::check() const {
  const std::string& name = schedule_->name;
  const auto wrong = [&](const auto&... what) {
    return UsageError(cat(what..., "; see 'rlx help ", command_, "'"));
  };
  for (const Reader& r : readers_) {
    if (r.argument.given() && std::find(r.schedules.begin(), r.schedules.end(), name) == r.schedules.end())
      throw wrong(r.option, " does nothing with --schedule ", name, "; it is for ", join(r.schedules));
  }
  if (name == "inverse_sqrt" && schedule_->warmup == 0)
    throw wrong(
        "--schedule inverse_sqrt needs --warmup: its rate rises over these steps and falls from there");
  if (name == "step" && schedule_->every == 0 && readers_.size() > 1)
    throw wrong("--schedule step needs --decay-every");
}

}  // namespace rlx::cli
