// Runs of one object that other threads work on.
#pragma once

#include <atomic>
#include <memory>

namespace rlx::runtime {

/// Counts them. As a member it makes its owner wait for them where it is moved, from or to, and where it is destroyed.
class Background {
 public:
  Background() = default;
  Background(Background&& o) noexcept { o.wait(); }
  Background& operator=(Background&& o) noexcept {
    wait();
    o.wait();
    return *this;
  }
  ~Background() { wait(); }

  bool is_busy() const { return running_ && running_->load(std::memory_order_acquire) > 0; }
  /// Returns when there is none.
  void wait() const noexcept;
  /// A run that lasts until what is returned is let go.
  std::shared_ptr<void> begin();

 private:
  std::shared_ptr<std::atomic<int>>
      running_;  // null before the first; a run that ends may outlive this object by a moment
};

}  // namespace rlx::runtime
