// The machines that graphs run on.
#pragma once

#include "rlx/backend/backend.h"

namespace rlx {

/// "cpu": this machine's processor; "cuda": its first NVIDIA GPU, opened at the first call, an environment error that says why where
/// there is none; "ref": the interpreter's rules, exact and slow; "auto": the GPU where there is one, else the processor; "cuda:sm_90a",
/// "cuda:sm_80", ..: a GPU of that architecture which need not be there, to look at plans and kernels. An unknown name is a user error that
/// lists the known ones.
const backend::Backend& device_named(std::string_view name);
/// The names that device_named knows in this build, but auto, which is no device of its own.
std::vector<std::string> device_names();

}  // namespace rlx
