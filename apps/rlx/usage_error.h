// A command was called wrongly: exit code 2.
#pragma once

#include <stdexcept>
#include <string>

namespace rlx::cli {

struct UsageError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

}  // namespace rlx::cli
