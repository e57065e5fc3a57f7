// Tests of kernels that no GPU has run yet.
#pragma once

#include <cstdlib>

namespace rlx::test {

/// While it lives, kernels that no GPU has run yet may be chosen.
class Untried {
 public:
  Untried() { setenv("RLX_CUDA_UNTRIED", "all", 1); }
  ~Untried() { unsetenv("RLX_CUDA_UNTRIED"); }
  Untried(const Untried&) = delete;
  Untried& operator=(const Untried&) = delete;
};

}  // namespace rlx::test
