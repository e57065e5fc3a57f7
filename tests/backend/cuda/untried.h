// Tests of kernels that no GPU has run yet.
#pragma once

#include <cstdlib>
#include <optional>
#include <string>

namespace rlx::test {

/// While it lives, kernels that no GPU has run yet may be chosen: those named, or all.
class Untried {
 public:
  explicit Untried(const char* names = "all") {
    if (const char* const before = std::getenv(kName)) before_ = before;
    setenv(kName, names, 1);
  }
  ~Untried() {
    if (before_) {
      setenv(kName, before_->c_str(), 1);
    } else {
      unsetenv(kName);
    }
  }
  Untried(const Untried&) = delete;
  Untried& operator=(const Untried&) = delete;

 private:
  static constexpr const char* kName = "RLX_CUDA_UNTRIED";
  std::optional<std::string> before_;
};

}  // namespace rlx::test
