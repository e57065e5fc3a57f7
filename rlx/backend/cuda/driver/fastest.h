// The fastest of several ways to do the same work.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "rlx/backend/cuda/driver/gpu.h"

namespace rlx::cuda {

/// How ways are measured: with operands in the caches, with caches that hold nothing of them, or as one recording of all that is queued, after another such.
enum class Trials : uint8_t { warm, cold, recorded };

/// Which of `count` ways to queue a work is the fastest. Measured once for each key, then known to the process and kept
/// beside the compiled kernels, so that a program does not change from run to run; without a place to keep it the first way is
/// taken. A way that fails is not taken.
///
/// `ask` asks for the kernels of all ways, where there are any to compile.
int fastest(const Gpu&, const std::string& key, int count, Trials, const std::function<void()>& ask,
            const std::function<void(Stream_*, int way)>& queue);

/// While one lives, this thread measures no ways that need kernels: `fastest` asks for these and says 0, so that kernels of many works are
/// compiled together. One inside of another does nothing.
class Postponed {
 public:
  Postponed();
  ~Postponed();
  Postponed(const Postponed&) = delete;
  Postponed& operator=(const Postponed&) = delete;

  bool is_inside() const { return inside_; }
  /// Works that were not measured.
  int count() const { return count_; }
  /// From now on they are.
  void end() { ended_ = true; }

 private:
  friend int fastest(const Gpu&, const std::string& key, int count, Trials, const std::function<void()>& ask,
                     const std::function<void(Stream_*, int way)>& queue);
  static bool take(const std::function<void()>& ask);

  bool inside_, ended_ = false;
  int count_ = 0;
};

}  // namespace rlx::cuda
