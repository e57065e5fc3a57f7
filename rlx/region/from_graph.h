// From the body of a fused node to its region.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "rlx/ir/graph.h"
#include "rlx/region/region.h"

namespace rlx::region {

/// How a tensor lies in memory: strides in elements, one per axis of its shape. No strides: dense, row-major.
struct Layout {
  std::vector<int64_t> strides;
};

/// A canonical region, or the reason why there is none.
struct Built {
  std::optional<Region> region;
  std::string refusal;
  explicit operator bool() const { return region.has_value(); }
};

/// The region that computes the outputs of `body` from its leaves: argument i is leaf i, then come the outputs.
/// The body has static sizes and consists of elementwise operators, casts, reductions over one set of axes,
/// expand, transpose, reshapes that add or drop axes of size 1, and constants of one repeated value; its floats
/// are f32 and narrower, or f64. Composite operators come decomposed. Layouts may be left out: all dense.
Built from_graph(const ir::Graph& body, std::span<const Layout> operands = {},
                 std::span<const Layout> results = {});

}  // namespace rlx::region
