#include "rlx/ops/shape/concat.h"

#include <cstring>

#include "rlx/ops/elementwise/broadcast.h"
#include "rlx/ops/shape/narrow.h"
#include "rlx/ops/shape/reshape.h"

namespace rlx::ops {

Shapes Concat::infer(Infer& c, Attrs& a) {
  a.axis = c.axis(a.axis, 0);
  Shape out = c.in(0);
  for (int i = 1; i < c.count(); ++i) {
    const Shape& part = c.in(i);
    if (part.rank() != out.rank()) c.fail("ranks differ, ", c.in(0), " and operand ", i, ": ", part);
    if (part.dtype() != out.dtype())
      c.fail("dtypes differ, ", c.in(0), " and operand ", i, ": ", part, "; cast it to ", out.dtype());
    for (int axis = 0; axis < out.rank(); ++axis) {
      if (axis == a.axis) continue;
      if (decide_equal(out.dim(axis), part.dim(axis)) == false) {
        c.fail("sizes of axis ", axis, " differ, ", c.in(0), " and operand ", i, ": ", part, "; only axis ",
               a.axis, " may differ");
      }
      out = out.with_dim(axis, c.same(out.dim(axis), part.dim(axis), "sizes"));
    }
    out = out.with_dim(a.axis, out.dim(a.axis) + part.dim(a.axis));
  }
  return {out};
}

Literals Concat::reference(const Eval& c, const Attrs& a) {
  Literal y = Literal::zeros(c.out());
  const auto whole = axis_view(c.out(), a.axis);
  const size_t row = size_t(whole.inner) * dtype_size(c.out().dtype());
  std::byte* to = y.mutable_bytes().data();
  int64_t at = 0;
  for (const Literal& part : c.operands) {
    const int64_t length = part.shape().dim(a.axis).value();
    for (int64_t o = 0; o < whole.outer && length > 0; ++o) {
      std::memcpy(to + size_t(o * whole.length + at) * row, part.bytes().data() + size_t(o * length) * row,
                  size_t(length) * row);
    }
    at += length;
  }
  return {y};
}

Exprs Concat::vjp(const Vjp& c, const Attrs& a) {
  Exprs out;
  Dim at = 0;
  for (int i = 0; i < c.count(); ++i) {
    const Dim length = c.in(i).dim(a.axis);
    out.push_back(c.wants(i) ? narrow(c.dy(), a.axis, at, length) : Expr{});
    at = at + length;
  }
  return out;
}

Exprs Concat::vmap(const Vmap& c, const Attrs& a) {
  Exprs parts;
  for (int i = 0; i < c.count(); ++i) parts.push_back(lifted(c, i));
  return {concat(parts, a.axis + 1)};
}

std::vector<OpSample<Concat::Attrs>> Concat::samples() {
  return {{{0}, {"f32[2,3]", "f32[4,3]"}}, {{-1}, {"f64[2,1]", "f64[2,2]", "f64[2,3]"}},
          {{1}, {"f32[2,0]", "f32[2,5]"}}, {{0}, {"i32[1]"}},
          {{0}, {"bool[2]", "bool[1]"}},   {{1}, {"c64[1,2,2]", "c64[1,1,2]"}}};
}

Expr concat(const Exprs& parts, int axis) {
  if (parts.empty()) throw invalid("concat: no operands; it takes one or more");
  return make<Concat>(*parts[0].graph, {axis}, Values(parts.begin(), parts.end()));
}

Expr stack(const Exprs& parts, int axis) {
  Exprs rows;
  for (const Expr& part : parts) {
    if (!part) throw invalid("stack: part ", rows.size(), " is an empty tensor");
    const Shape &first = parts[0].shape(), &s = part.shape();
    bool may_be = s.dtype() == first.dtype() && s.rank() == first.rank();
    for (int i = 0; may_be && i < s.rank(); ++i) may_be = decide_equal(s.dim(i), first.dim(i)) != false;
    if (!may_be)
      throw invalid("stack: part ", rows.size(), " is ", s, ", part 0 is ", first,
                    "; they must be of one type");
    rows.push_back(unsqueeze(part, axis));
  }
  return concat(rows, axis);
}

}  // namespace rlx::ops
