// Where the values of a run lie, to tell which overlap.
#pragma once

#include <cstddef>
#include <span>

namespace rlx::runtime {

struct Extent {
  const std::byte *begin = nullptr, *end = nullptr;
  bool is_written = false;
};

/// Whether nothing that is written overlaps anything else. Sorts them; allocates nothing.
bool lie_apart(std::span<Extent>);

}  // namespace rlx::runtime
