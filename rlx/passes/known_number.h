// Values that are one number.
#pragma once

#include <optional>

#include "rlx/ir/graph.h"

namespace rlx::passes {

/// The one number that a value holds everywhere, where it is known.
std::optional<double> known_number(const ir::Graph&, ir::Value);

}  // namespace rlx::passes
