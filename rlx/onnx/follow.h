// Following integers computed from sizes: the operators of shape arithmetic on Sizes instead of tensors.
#pragma once

#include <optional>

#include "rlx/onnx/table.h"

namespace rlx::onnx {

/// The operand as sizes: known as expressions, or a small integer constant.
std::optional<Sizes> sizes_of(const Item&);
/// Whether some operand is known by expressions, so that following is worth trying.
bool any_symbolic(const Call&);

using SizeFunction = std::optional<Size> (*)(const Size&, const Size&);
std::optional<Item> follow_elementwise(const Call&, SizeFunction);
using SizeTest = std::optional<bool> (*)(const Size&, const Size&);
std::optional<Item> follow_test(const Call&, SizeTest);

template <SizeFunction kFunction>
std::optional<Item> follow(const Call& c) {
  return follow_elementwise(c, kFunction);
}
template <SizeTest kTest>
std::optional<Item> follow_if(const Call& c) {
  return follow_test(c, kTest);
}

/// The operand itself, with the dtype it has.
std::optional<Item> follow_same(const Call&);
std::optional<Item> follow_where(const Call&);
std::optional<Item> follow_shape(const Call&);
std::optional<Item> follow_size(const Call&);
std::optional<Item> follow_gather(const Call&);
std::optional<Item> follow_concat(const Call&);
std::optional<Item> follow_slice(const Call&);
std::optional<Item> follow_reshape(const Call&);
std::optional<Item> follow_squeeze(const Call&);
std::optional<Item> follow_unsqueeze(const Call&);
std::optional<Item> follow_cast(const Call&);
/// Entries of a list of sizes replaced by others, as ScatterElements and ScatterND write them.
std::optional<Item> follow_scatter(const Call&);
/// All entries of a list of sizes taken together.
std::optional<Item> follow_reduction(const Call&, SizeFunction);
template <SizeFunction kFunction>
std::optional<Item> follow_all(const Call& c) {
  return follow_reduction(c, kFunction);
}

}  // namespace rlx::onnx
