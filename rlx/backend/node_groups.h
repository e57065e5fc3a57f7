// Neighbours in a graph that run as one kernel: each group becomes one `fused` node whose body is named after its kind, which is how
// kernels know it (docs/design/016). For backends that are also `Grouping`.
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "rlx/ir/graph.h"
#include "rlx/ir/target.h"

namespace rlx::backend {

/// A group of this kind is a region like others: bodies of members that are regions are laid open in it.
inline constexpr std::string_view kRegionGroup = "fused";

struct NodeGroup {
  std::string_view kind;
  std::vector<const ir::Node*> nodes;
};

/// The graph with those groups that the target takes; nothing where there are none. Of groups that share a node the first counts.
std::optional<ir::Graph> with_groups(const ir::Graph&, const ir::Target&, std::span<const NodeGroup>);

/// How the builder will lay a value: views of leaves lie as the views say; whatever is made lies row by row.
ir::Layout expected_layout(const ir::Graph&, ir::Value);

/// Whether the target takes a `fused` node of these attributes with operands of `g` that lie so; results lie row by row.
bool is_taken(const ir::Target&, const ir::Graph& g, ir::AttrsRef attrs, const ir::Values& operands,
              const ir::Layouts& layouts);

}  // namespace rlx::backend
