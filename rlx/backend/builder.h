// From a static graph to a program: chooses kernels, lays out views, places buffers.
#pragma once

#include "rlx/backend/executable.h"

namespace rlx::backend {

/// Leaf `leaf` and output `output` are the same memory: a state that is read and left changed.
struct Donation {
  int leaf = 0, output = 0;
};

/// What the builder may assume about the leaves, in the graph's order.
struct Interface {
  std::vector<bool> fixed;  // the same in every run: weights, whose packed forms are made once; default none
  std::vector<Donation> donated;
};

class Builder {
 public:
  /// `batch_independent`: along the first axis of what a step reads every row has the bits that it has alone.
  Builder(const Backend& backend, int threads, bool batch_independent = false)
      : backend_(&backend), threads_(threads), batch_independent_(batch_independent) {}

  const Backend& backend() const { return *backend_; }
  int threads() const { return threads_; }
  bool batch_independent() const { return batch_independent_; }
  /// The same but for the number of threads.
  Builder with_threads(int threads) const { return {*backend_, threads, batch_independent_}; }

  /// The graph must be static and hold no blocks. A node that no kernel accepts is a user error that names every
  /// kernel and its reason.
  std::shared_ptr<const Executable> build(const ir::Graph&, const Interface& = {}) const;

 private:
  const Backend* backend_;
  int threads_;
  bool batch_independent_;
};

/// Whether a step may not let the number of rows decide in which order it adds.
inline bool batch_independent(const Request& r) { return r.builder && r.builder->batch_independent(); }

}  // namespace rlx::backend
