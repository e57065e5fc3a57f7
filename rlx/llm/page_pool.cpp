#include "rlx/llm/page_pool.h"

#include "rlx/base/error.h"

namespace rlx::llm {

PagePool::PagePool(int64_t pages) : users_(size_t(pages), 0) {
  RLX_CHECK(pages >= 1, "a store of ", pages, " pages");
  for (int64_t page = pages - 1; page > 0; --page) free_.push_back(int32_t(page));
}

int32_t PagePool::take() {
  RLX_CHECK(!free_.empty(), "no page is free");
  const int32_t page = free_.back();
  free_.pop_back();
  users_[size_t(page)] = 1;
  return page;
}

void PagePool::share(int32_t page) {
  RLX_CHECK(page > 0 && users_[size_t(page)] > 0, "page ", page, " is free");
  ++users_[size_t(page)];
}

void PagePool::release(int32_t page) {
  RLX_CHECK(page > 0 && users_[size_t(page)] > 0, "page ", page, " is free");
  if (--users_[size_t(page)] == 0) free_.push_back(page);
}

}  // namespace rlx::llm
