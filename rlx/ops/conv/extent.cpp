#include "rlx/ops/conv/extent.h"

#include "rlx/base/checked.h"

namespace rlx::ops {

Dim shifted(Dim d, int64_t offset) { return offset < 0 ? d - Dim(-offset) : d + Dim(offset); }

Dim window_positions(const Infer& c, Dim in, int64_t low, int64_t high, int64_t window, int64_t stride) {
  const int64_t extra = checked_add(checked_add(low, high), -window);
  if (in.is_static() && checked_add(in.value(), extra) < 0) {
    c.fail("a window of ", window, " does not fit into size ", in, " with padding ", low, " and ", high);
  }
  return floordiv(shifted(in, extra), stride) + Dim(1);
}

void complete_list(const Infer& c, std::vector<int64_t>& list, std::string_view name, int axes,
                   int64_t fallback, int64_t least) {
  if (list.empty()) list.push_back(fallback);
  if (list.size() == 1) list.resize(size_t(axes), list[0]);
  if (int(list.size()) != axes) {
    c.fail(name, " ", list, " has ", list.size(), " entries; it must have ", axes,
           ", one for each spatial axis");
  }
  for (const int64_t v : list) {
    if (v < least) c.fail(name, " ", list, " has an entry below ", least);
  }
}

}  // namespace rlx::ops
