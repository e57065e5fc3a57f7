// The machines that graphs run on.
#pragma once

#include "rlx/backend/backend.h"

namespace rlx {

/// "cpu": this machine's processor; "ref": the interpreter's rules, exact and slow. An unknown name is a user error that lists
/// the known ones.
const backend::Backend& device_named(std::string_view name);
std::vector<std::string> device_names();

}  // namespace rlx
