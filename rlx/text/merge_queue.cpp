#include "rlx/text/merge_queue.h"

#include <algorithm>

namespace rlx::text {

void MergeQueue::start(size_t ranks) {
  // A run leaves every list empty; one that was cut short by an exception does not.
  while (!ranks_.empty()) lists_[ranks_.top()] = {}, ranks_.pop();
  nodes_.clear();
  if (lists_.size() < ranks) lists_.resize(ranks);
}

void MergeQueue::take(std::vector<uint32_t>& places) {
  places.clear();
  List& list = lists_[ranks_.top()];
  ranks_.pop();
  for (uint32_t node = list.head; node != kEnd; node = nodes_[node].next)
    places.push_back(nodes_[node].place);
  list = {};
  if (!std::is_sorted(places.begin(), places.end())) std::sort(places.begin(), places.end());
}

}  // namespace rlx::text
