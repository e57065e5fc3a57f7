// The option --device, which every command that runs graphs has.
#pragma once

#include <string>

#include "apps/rlx/arguments.h"

namespace rlx::cli {

/// The default is the processor.
Argument add_device(Command, std::string& device);
/// Opens the device, so that one that is not known or not here is told before anything else; its own name for "auto".
std::string open_device(const std::string& device);

}  // namespace rlx::cli
