// Pages of a store, counted by who uses them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace rlx::llm {

/// Pages 1 .. pages - 1; page 0 is nobody's and never given out.
class PagePool {
 public:
  explicit PagePool(int64_t pages);

  /// Pages that can be given out, and those that are not.
  int64_t size() const { return int64_t(users_.size()) - 1; }
  int64_t free() const { return int64_t(free_.size()); }
  /// A free page, with one user.
  int32_t take();
  /// One user more, one user less; without users a page is free again.
  void share(int32_t page);
  void release(int32_t page);
  int32_t users(int32_t page) const { return users_[size_t(page)]; }

 private:
  std::vector<int32_t> users_;
  std::vector<int32_t> free_;  // the last is given out next
};

}  // namespace rlx::llm
