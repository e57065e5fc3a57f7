// Control flow that runs as one kernel, one step after the other for those who want to see each of them.
#pragma once

#include "rlx/backend/builder.h"

namespace rlx::backend {

/// Keeps what it takes to run a node step by step. Nothing is built before somebody looks, and then for each run anew.
class BySteps {
 public:
  /// Whether the node runs bodies one after the other.
  static bool has_steps(const ir::Node&);

  explicit BySteps(const Request&);
  /// With operands and results of the launch, and memory of its own.
  void run(const Launch&) const;

 private:
  ir::Node node_;
  std::vector<Arg> in_, out_;
  Builder builder_;
};

}  // namespace rlx::backend
