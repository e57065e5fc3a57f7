// The processor of this machine as a backend.
#pragma once

#include "rlx/backend/backend.h"

namespace rlx::cpu {

const backend::Backend& device();

/// A family of kernels, in the order in which kernels of an operator are asked; `name` is that of the function here.
struct Family {
  std::string_view name;
  void (*add)(backend::KernelTable&);
};
std::span<const Family> families();

}  // namespace rlx::cpu
