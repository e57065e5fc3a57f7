// The option --device, which every command has that compiles graphs.
#pragma once

#include <string>

#include "apps/rlx/arguments.h"

namespace rlx::cli {

/// Of commands that run graphs.
Argument add_device(Command, std::string& device);
/// Of commands that look at what would run: a GPU need not be there.
Argument add_target(Command, std::string& device);
/// Opens the device, so that one that is not known or not here is told before anything else; its own name for "auto".
std::string open_device(const std::string& device);

}  // namespace rlx::cli
