#include "rlx/backend/cuda/nodes/flat_region.h"

#include <algorithm>

namespace rlx::cuda {
namespace {

using region::Argument;
using region::Role;

// Sizes that stand for all: indices of 32 bits suffice for the first, and both are multiples of every vector.
constexpr int64_t kShort = 1 << 20, kLong = int64_t(1) << 31, kLongFrom = int64_t(1) << 30;

bool lies_in_order(const Argument& a, int64_t count) {
  if (a.role == Role::in) return a.strides[0] == 0 || a.strides[0] == 1;
  return a.role == Role::out && (a.strides[0] == 1 || count == 1);
}

}  // namespace

std::optional<FlatRegion> flat_region(const ir::Node& n, std::span<const Shape> types,
                                      std::span<const region::Layout> operands) {
  std::vector<region::Layout> results;
  for (const Shape& s : n.shapes) results.push_back({row_major_strides(s.dims())});
  region::Built built = region::of_node(n, types, operands, results);
  if (!built || built.region->has_reduction() || built.region->rank() != 1) return std::nullopt;
  FlatRegion out;
  out.region = std::move(*built.region);
  out.count = out.region.dims[0];
  const auto& arguments = out.region.arguments;
  if (out.count < 1 ||
      !std::all_of(
          arguments.begin(), arguments.end(), [&](const Argument& a) { return lies_in_order(a, out.count); }))
    return std::nullopt;
  if (out.count > 1) out.region.dims[0] = out.count < kLongFrom ? kShort : kLong;
  out.text = print_element_function(out.region, "one", {});
  return out;
}

}  // namespace rlx::cuda
