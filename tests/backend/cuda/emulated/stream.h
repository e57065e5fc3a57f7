// Streams run what they are given at once, or record it.
#pragma once

#include <functional>
#include <memory>
#include <vector>

namespace emulated {

/// What was recorded: work in order. The word of a condition belongs to the graph that made it.
struct Graph {
  std::vector<std::function<int()>> work;
  std::vector<std::unique_ptr<unsigned>> conditions;
  std::vector<std::unique_ptr<Graph>> bodies;

  int run() const {
    for (const auto& word : conditions) *word = 0;
    for (const auto& step : work)
      if (const int r = step(); r != 0) return r;
    return 0;
  }
};

struct Stream {
  Graph* records = nullptr;

  int queue(std::function<int()> step) {
    if (!records) return step();
    records->work.push_back(std::move(step));
    return 0;
  }
};

}  // namespace emulated
