// How the heads of queries, keys and values lie in memory, and the common form [batch, heads, seq, head_dim]
// that the formulas use.
#pragma once

#include <array>

#include "rlx/ops/vocabulary.h"

namespace rlx::ops {

/// bshd_packed: [batch, seq, heads * head_dim], or [seq, heads * head_dim] for one batch row;
/// bshd: [batch, seq, heads, head_dim]; bhsd: [batch, heads, seq, head_dim].
enum class HeadLayout { bshd_packed, bshd, bhsd };
constexpr std::array<std::string_view, 3> choice_names(HeadLayout) { return {"bshd_packed", "bshd", "bhsd"}; }

/// A tensor of heads taken apart.
struct HeadView {
  Dim batch, seq, heads, head_dim;
};

/// The extents of operand i under `layout`, which holds `heads` heads (0: read from a rank-4 operand).
HeadView view_heads(Infer& c, int i, HeadLayout layout, int64_t heads);

/// The type of a tensor of heads with these extents; `rank` tells [seq, ...] from [batch, seq, ...].
Dims head_dims(const HeadView&, HeadLayout layout, int rank);

/// To [batch, heads, seq, head_dim] and back to `rank` axes.
Expr to_heads(Expr x, HeadLayout layout, Dim heads, Dim head_dim);
Expr from_heads(Expr x, HeadLayout layout, int rank);

/// Where element (batch b, head h, row s, lane d) lies; for static extents.
struct HeadIndex {
  int64_t seq, heads, head_dim;
  bool heads_first;
  HeadIndex(const HeadView& v, HeadLayout layout)
      : seq(v.seq.value()),
        heads(v.heads.value()),
        head_dim(v.head_dim.value()),
        heads_first(layout == HeadLayout::bhsd) {}
  size_t operator()(int64_t b, int64_t h, int64_t s, int64_t d) const {
    const int64_t row = heads_first ? (b * heads + h) * seq + s : (b * seq + s) * heads + h;
    return size_t(row * head_dim + d);
  }
};

/// The extents of a static tensor of heads, for reference rules.
HeadView view_heads(const Shape& x, HeadLayout layout, int64_t heads);

}  // namespace rlx::ops
