#include "rlx/ops/attention/heads.h"

#include "rlx/ops/shape/reshape.h"
#include "rlx/ops/shape/transpose.h"

namespace rlx::ops {

HeadView view_heads(const Shape& x, HeadLayout layout, int64_t heads) {
  if (layout == HeadLayout::bshd) return {x.dim(0), x.dim(1), x.dim(2), x.dim(3)};
  if (layout == HeadLayout::bhsd) return {x.dim(0), x.dim(2), x.dim(1), x.dim(3)};
  return {x.rank() == 2 ? Dim(1) : x.dim(0), x.dim(-2), heads, floordiv(x.dim(-1), heads)};
}

HeadView view_heads(Infer& c, int i, HeadLayout layout, int64_t heads) {
  const Shape& x = c.in(i);
  const std::string name = c.operand_name(i);
  if (layout != HeadLayout::bshd_packed) {
    const bool heads_first = layout == HeadLayout::bhsd;
    if (x.rank() != 4) {
      c.fail(name, ": ", x, " has rank ", x.rank(), "; layout ", choice_names(layout)[size_t(layout)], " is ",
             heads_first ? "[batch, heads, seq, head_dim]" : "[batch, seq, heads, head_dim]");
    }
    HeadView v = view_heads(x, layout, heads);
    if (heads != 0) {
      if (decide_equal(v.heads, heads) == false)
        c.fail(name, ": ", x, " has ", v.heads, " heads; it must have ", heads);
      v.heads = c.same(v.heads, heads, "numbers of heads");
    }
    return v;
  }
  if (x.rank() != 2 && x.rank() != 3) {
    c.fail(name, ": ", x, " has rank ", x.rank(),
           "; layout bshd_packed is [batch, seq, heads * head_dim] or [seq, heads * head_dim]; give layout "
           "bshd or bhsd for four axes");
  }
  if (!exact_div(x.dim(-1), heads))
    c.fail(name, ": ", x, " does not divide into ", heads, " heads; its last axis is heads * head_dim");
  return view_heads(x, layout, heads);
}

Dims head_dims(const HeadView& v, HeadLayout layout, int rank) {
  if (layout == HeadLayout::bshd) return {v.batch, v.seq, v.heads, v.head_dim};
  if (layout == HeadLayout::bhsd) return {v.batch, v.heads, v.seq, v.head_dim};
  if (rank == 2) return {v.seq, v.heads * v.head_dim};
  return {v.batch, v.seq, v.heads * v.head_dim};
}

Expr to_heads(Expr x, HeadLayout layout, Dim heads, Dim head_dim) {
  if (layout == HeadLayout::bhsd) return x;
  if (layout == HeadLayout::bshd_packed)
    x = reshape(x, {x.rank() == 2 ? Dim(1) : x.dim(0), x.dim(-2), heads, head_dim});
  return transpose(x, {0, 2, 1, 3});
}

Expr from_heads(Expr x, HeadLayout layout, int rank) {
  if (layout == HeadLayout::bhsd) return x;
  const Dims d = x.shape().dims();
  x = transpose(x, {0, 2, 1, 3});
  if (layout == HeadLayout::bshd) return x;
  return reshape(x, head_dims({d[0], d[2], d[1], d[3]}, layout, rank));
}

}  // namespace rlx::ops
