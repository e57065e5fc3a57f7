// Neighbours in a graph that run as one kernel (rlx/backend/node_groups.h). They are found when a program is built, behind all passes: sizes are
// known, regions are made.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "rlx/backend/node_groups.h"

namespace rlx::cuda {

/// Products of few rows with one input: the region of rows that makes the input, the products, the elementwise operator that takes all of them.
inline constexpr std::string_view kProductGroup = "product_group";
/// A convolution and the elementwise operator that takes it alone, such as a bias and a relu.
inline constexpr std::string_view kConvGroup = "conv_group";
/// Rotations and updates of states that wait for nobody: rope, and what puts rows into caches.
inline constexpr std::string_view kRowsGroup = "rows_group";
/// The products of one input whose columns such a group moves, with it; few rows also with the region of rows that makes the input.
inline constexpr std::string_view kTurnedGroup = "turned_group";
/// The cross entropy of rows and its gradient, with the casts of logits before and of the gradient behind them.
inline constexpr std::string_view kLossGroup = "loss_group";

/// The gradients of attention and what lays them side by side, as the gradient of one product for queries, keys and values is.
inline constexpr std::string_view kGradientsGroup = "gradients_group";
/// Sums of rows, the elements made with them, and sums over all rows of both: the gradients of a norm.
inline constexpr std::string_view kSumsGroup = "sums_group";
/// What a mask lets through, tile by tile and bit by bit, and attention that knows it so.
inline constexpr std::string_view kMaskTableGroup = "mask_table", kMaskedAttentionGroup = "masked_attention";
/// Regions of elements that do the same over other memory and wait for none of each other: the updates of all weights.
inline constexpr std::string_view kManyRegions = "many_regions";

/// Sums of one large value over the same axes: a region as others are, which reads it once.
using backend::kRegionGroup;

using Group = backend::NodeGroup;

/// Rotations and updates of states that take all columns of some products, with the views between them.
struct MovedProducts {
  std::vector<const ir::Node*> products, moves;
};
std::vector<MovedProducts> moved_products(const ir::Graph&);

std::vector<Group> product_groups(const ir::Graph&);
/// Products of more rows with the elements behind them, in the same kind of group.
std::vector<Group> element_groups(const ir::Graph&);
std::vector<Group> conv_groups(const ir::Graph&);
std::vector<Group> rows_groups(const ir::Graph&);
std::vector<Group> loss_groups(const ir::Graph&);
std::vector<Group> region_groups(const ir::Graph&);
std::vector<Group> gradients_groups(const ir::Graph&);
std::vector<Group> sums_groups(const ir::Graph&);

/// Found last: members may be what the other groups made of a graph.
std::vector<Group> many_groups(const ir::Graph&);

/// The graph with large values of f32 that take a few operators to make from fewer bytes, such as casts of 16 bits, made again inside of each region
/// that reads them; nothing where there are none. The numbers are the same.
std::optional<ir::Graph> with_recomputation(const ir::Graph&, const ir::Target&);

/// The graph with large values of f32 that are made element by element and then turned or cut into other axes made in those axes at once, of views of their operands: whoever reads them
/// may then make them again; the numbers are the same. Large products that are turned for elements are products of turned operands.
std::optional<ir::Graph> with_views_in_front(const ir::Graph&, const ir::Target&);

/// The graph with sums that loops carry although no step reads them, as the gradients of their constants are, made behind the loops: what is summed is
/// stacked, and one product or sum goes over all steps. Sums are rounded in another order.
std::optional<ir::Graph> with_sums_behind_loops(const ir::Graph&, const ir::Target&);

/// The graph with bodies of loops around one product in which all elementwise operators in front of it are one region, and all behind it: one kernel may
/// take such a loop (nodes/scan_product.cpp). The numbers are the same.
std::optional<ir::Graph> with_joined_sides(const ir::Graph&, const ir::Target&);

/// The graph with masks that several attentions read looked at once: which tiles they let through, and a bit for each key. The numbers are the same.
std::optional<ir::Graph> with_mask_tables(const ir::Graph&, const ir::Target&);

/// The graph with those groups that the target takes; nothing where there are none.
std::optional<ir::Graph> with_groups(const ir::Graph&, const ir::Target&);

/// The place of each node, by its id, in the order of the graph.
std::vector<size_t> order_of(const ir::Graph&);
/// The one reader of all `products`, if it works element by element, has no more results than `most` and waits for nothing that comes behind place `first` but what is made of leaves.
const ir::Node* elements_behind(const ir::Graph&, const std::vector<size_t>& order, size_t first,
                                const std::vector<const ir::Node*>& products, size_t most = 1);

/// Whether the body of a `fused` node holds a reduction.
bool reduces(const ir::Node& fused);

}  // namespace rlx::cuda
