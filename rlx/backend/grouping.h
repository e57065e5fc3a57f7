// What a backend may offer beside its kernels: to join neighbours before kernels are chosen.
#pragma once

#include <optional>

#include "rlx/ir/graph.h"

namespace rlx::backend {

/// A backend that is also this is asked whenever a program is built.
class Grouping {
 public:
  virtual ~Grouping() = default;
  /// The graph with neighbours that run as one kernel joined to one node each; nothing where there are none. Leaves and outputs
  /// stay.
  virtual std::optional<ir::Graph> grouped(const ir::Graph&) const = 0;
};

}  // namespace rlx::backend
