// Memory that several objects read until one of them wants to write.
#pragma once

#include <atomic>
#include <utility>

#include "rlx/backend/memory.h"

namespace rlx::runtime {

/// Copies share the block. Holders may live in different threads: who finds itself alone sees everything that the others did
/// with the block before they left it.
class SharedBlock {
 public:
  explicit SharedBlock(backend::Block block) : held_(new Held{std::move(block)}) {}
  SharedBlock(const SharedBlock& o) : held_(o.held_) {
    held_->holders.fetch_add(1, std::memory_order_relaxed);
  }
  SharedBlock(SharedBlock&& o) noexcept : held_(std::exchange(o.held_, nullptr)) {}
  SharedBlock& operator=(SharedBlock o) noexcept {
    std::swap(held_, o.held_);
    return *this;
  }
  ~SharedBlock() {
    if (held_ != nullptr && held_->holders.fetch_sub(1, std::memory_order_acq_rel) == 1) delete held_;
  }

  std::byte* get() const { return held_->block.get(); }
  size_t size() const { return held_->block.size(); }
  /// Whether nobody else holds it, so that it may be written.
  bool alone() const { return held_->holders.load(std::memory_order_acquire) == 1; }

 private:
  struct Held {
    backend::Block block;
    std::atomic<int> holders{1};
  };
  Held* held_;
};

}  // namespace rlx::runtime
