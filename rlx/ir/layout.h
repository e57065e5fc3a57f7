// How the elements of a static tensor lie in a buffer.
#pragma once

#include <cstdint>
#include <vector>

#include "rlx/base/shape.h"

namespace rlx::ir {

/// Element (i0, i1, ..) lies at offset + sum of i_k strides[k], counted in elements. A stride of 0 repeats, a
/// negative one runs backwards.
struct Layout {
  std::vector<int64_t> strides;
  int64_t offset = 0;

  static Layout row_major(const Dims& dims) { return {row_major_strides(dims), 0}; }
  /// Whether the elements lie in row-major order without gaps; strides of axes of size 1 do not matter, and an
  /// empty tensor lies in any order.
  bool is_row_major(const Dims& dims) const;
  friend bool operator==(const Layout&, const Layout&) = default;
};

using Layouts = std::vector<Layout>;

/// The layout of the same elements under other extents, in row-major order of both; nothing when the elements do
/// not lie so that strides can tell it.
std::optional<Layout> reshaped(const Layout& from, const Dims& before, const Dims& after);

void append_text(std::string& out, const Layout&);  // `(384,1)+64`

}  // namespace rlx::ir
