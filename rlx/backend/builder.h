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
  Builder(const Backend& backend, int threads) : backend_(&backend), threads_(threads) {}

  const Backend& backend() const { return *backend_; }
  int threads() const { return threads_; }

  /// The graph must be static and hold no blocks. A node that no kernel accepts is a user error that names every
  /// kernel and its reason.
  std::shared_ptr<const Executable> build(const ir::Graph&, const Interface& = {}) const;

 private:
  const Backend* backend_;
  int threads_;
};

}  // namespace rlx::backend
