// Where the values of a run lie, to tell which overlap.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>

#include "rlx/runtime/view.h"

namespace rlx::runtime {

struct Extent {
  const std::byte *begin = nullptr, *end = nullptr;
  bool is_written = false;
};

inline bool overlap(const Extent& a, const Extent& b) {
  return std::max(a.begin, b.begin) < std::min(a.end, b.end);
}

inline Extent extent_of(const TensorView& v) { return {v.data, v.data + v.bytes()}; }

/// Whether nothing that is written overlaps anything else. Sorts them; allocates nothing.
bool lie_apart(std::span<Extent>);

}  // namespace rlx::runtime
