#include "rlx/text/merge_queue.h"

#include <algorithm>

namespace rlx::text {

void MergeQueue::start(size_t ranks) {
  // A run leaves every list empty; one that was cut short by an exception does not.
  while (!ranks_.empty()) lists_[ranks_.top()] = {}, ranks_.pop();
  nodes_.clear();
  if (lists_.size() < ranks) lists_.resize(ranks);
}

void MergeQueue::take(std::vector<Waiting>& places) {
  places.clear();
  List& list = lists_[ranks_.top()];
  ranks_.pop();
  for (uint32_t node = list.head; node != kEnd; node = nodes_[node].next)
    places.push_back(nodes_[node].waiting);
  list = {};
  const auto before = [](const Waiting& a, const Waiting& b) { return a.place < b.place; };
  if (!std::is_sorted(places.begin(), places.end(), before)) std::sort(places.begin(), places.end(), before);
}

}  // namespace rlx::text
