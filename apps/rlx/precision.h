// --precision: how numbers are stored between operators, and how a GPU multiplies f32.
#pragma once

#include <optional>
#include <string>

#include "apps/rlx/arguments.h"
#include "rlx/runtime/options.h"

namespace rlx::cli {

void add_precision(Command command, std::string& precision);
/// What to compile with. tf32 is a way of a GPU alone: for another device it is a user error.
std::optional<PrecisionPolicy> read_precision(const std::string& precision, const std::string& device);

}  // namespace rlx::cli
