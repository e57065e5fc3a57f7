#include "rlx/ir/layout.h"

#include "rlx/base/text.h"

namespace rlx::ir {

bool Layout::is_row_major(const Dims& dims) const {
  int64_t expected = 1;
  for (size_t i = dims.size(); i-- > 0;) {
    const int64_t size = dims[i].value();
    if (size == 0) return true;
    if (size == 1) continue;
    if (strides[i] != expected) return false;
    expected *= size;
  }
  return true;
}

// Axes of size 1 are left out on both sides. The others are matched in groups of equal products, as NumPy does: a
// group of old axes must be one run (stride of each = size * stride of the next) to be cut differently.
std::optional<Layout> reshaped(const Layout& from, const Dims& before, const Dims& after) {
  Layout out;
  out.offset = from.offset;
  out.strides.assign(after.size(), 1);
  std::vector<std::pair<int64_t, int64_t>> old;  // size, stride
  for (size_t i = 0; i < before.size(); ++i) {
    const int64_t size = before[i].value();
    if (size == 0) return Layout::row_major(after);
    if (size != 1) old.push_back({size, from.strides[i]});
  }
  size_t next = 0, to = 0;
  while (true) {
    while (to < after.size() && after[to].value() == 1) ++to;
    if (next == old.size() || to == after.size()) break;
    const size_t first_old = next, first_new = to;
    int64_t old_size = old[next++].first, new_size = after[to++].value();
    while (old_size != new_size) {
      if (old_size < new_size) {
        if (next == old.size()) return std::nullopt;
        old_size *= old[next++].first;
      } else {
        if (to == after.size()) return std::nullopt;
        new_size *= after[to++].value();
      }
    }
    for (size_t i = first_old; i + 1 < next; ++i) {
      if (old[i].second != old[i + 1].first * old[i + 1].second) return std::nullopt;
    }
    int64_t stride = old[next - 1].second;
    for (size_t i = to; i-- > first_new;) {
      out.strides[i] = stride;
      stride *= after[i].value();
    }
  }
  return out;
}

void append_text(std::string& out, const Layout& l) {
  out += cat("(", join(l.strides, ","), ")");
  if (l.offset != 0) out += cat(l.offset > 0 ? "+" : "", l.offset);
}

}  // namespace rlx::ir
