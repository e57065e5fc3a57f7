// Places in a word that wait for a merge, by rank.
#pragma once

#include <cstdint>
#include <functional>
#include <queue>
#include <vector>

namespace rlx::text {

/// Each rank has a list of places, and a heap holds the ranks whose list is not empty. Every operation on a
/// place is constant time; only ranks are ordered, and there are far fewer of those than places. Places of
/// one rank mostly arrive in text order, so taking a list is mostly a check that it is sorted.
class MergeQueue {
 public:
  static constexpr uint32_t kNoRank = 0xFFFFFFFF;

  struct Waiting {
    uint32_t place, pair;  // the pair that was there when the place was pushed, as the caller numbers them
  };

  void start(size_t ranks);
  void push(uint32_t rank, Waiting waiting) {
    const auto node = uint32_t(nodes_.size());
    nodes_.push_back({waiting, kEnd});
    List& list = lists_[rank];
    if (list.head == kEnd) {
      list.head = node;
      ranks_.push(rank);
    } else {
      nodes_[list.tail].next = node;
    }
    list.tail = node;
  }
  uint32_t lowest() const { return ranks_.empty() ? kNoRank : ranks_.top(); }
  /// Takes all places of the lowest rank, in text order.
  void take(std::vector<Waiting>& places);

 private:
  static constexpr uint32_t kEnd = 0xFFFFFFFF;
  struct Node {
    Waiting waiting;
    uint32_t next;
  };
  struct List {
    uint32_t head = kEnd, tail = kEnd;
  };
  std::vector<List> lists_;
  std::vector<Node> nodes_;
  std::priority_queue<uint32_t, std::vector<uint32_t>, std::greater<>> ranks_;
};

}  // namespace rlx::text
