// Options that say how the learning rate changes, for the commands that train.
#pragma once

#include <string>
#include <vector>

#include "apps/rlx/command.h"
#include "rlx/train/schedule.h"

namespace rlx::cli {

class ScheduleArguments {
 public:
  /// --lr, --schedule and --warmup; with `shape` those too that only some schedules read.
  void add(Command, const std::string& command_name, train::ScheduleText&, bool shape);
  /// What the schedule would not read, and what it cannot do without, is wrong usage.
  void check() const;

 private:
  struct Reader {
    std::string option;
    Argument argument;
    std::vector<std::string> schedules;  // that read it
  };
  std::string command_;
  const train::ScheduleText* schedule_ = nullptr;
  std::vector<Reader> readers_;
};

}  // namespace rlx::cli
