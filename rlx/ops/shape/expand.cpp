#include "rlx/ops/shape/expand.h"

#include <cstring>

#include "rlx/ops/elementwise/broadcast.h"
#include "rlx/ops/shape/reshape.h"

namespace rlx::ops {

Shapes Expand::infer(Infer& c, Attrs& a) {
  const Shape& x = c.in(0);
  const int extra = int(a.shape.size()) - x.rank();
  if (extra < 0) c.fail("x: ", x, " has more axes than the target ", a.shape);
  for (int i = 0; i < int(a.shape.size()); ++i) {
    Dim& d = a.shape[size_t(i)];
    if (i < extra) {
      if (d.is_inferred()) c.fail("entry ", i, " of the target is -1, but x: ", x, " has no such axis");
      continue;
    }
    const Dim from = x.dim(i - extra);
    if (d.is_inferred()) d = from;
    if (from == Dim(1)) continue;
    if (decide_equal(from, d) == false) {
      c.fail("x: ", x, " does not broadcast to ", a.shape, "; axis ", i - extra, " has size ", from,
             ", it must be 1 or ", d);
    }
    c.same(from, d, "sizes");
  }
  return {x.with_dims(a.shape)};
}

Literals Expand::reference(const Eval& c, const Attrs&) {
  const auto at = broadcast_positions(c.in(0).shape().dims(), c.out().dims());
  Literal y = Literal::zeros(c.out());
  const size_t size = dtype_size(c.out().dtype());
  std::byte* to = y.mutable_bytes().data();
  for (size_t i = 0; i < at.size(); ++i)
    std::memcpy(to + i * size, c.in(0).bytes().data() + size_t(at[i]) * size, size);
  return {y};
}

Exprs Expand::vjp(const Vjp& c, const Attrs&) { return {unbroadcast(c.dy(), c.in(0).shape().dims())}; }

Exprs Expand::vmap(const Vmap& c, const Attrs& a) {
  Dims from = c.in(0).shape().dims(), to = a.shape;
  from.insert(from.begin() + 1, to.size() + 1 - from.size(),
              Dim(1));  // axes the result adds come after the batch
  to.insert(to.begin(), c.size);
  return {expand(reshape(c.in(0), from), to)};
}

std::optional<Layout> Expand::view(const View& c, const Attrs&) {
  const Dims &x = c.in.dims(), &y = c.out.dims();
  Layout out{std::vector<int64_t>(y.size(), 0), c.layout.offset};
  for (size_t i = 0, first = y.size() - x.size(); i < x.size(); ++i) {
    if (x[i] == y[first + i]) out.strides[first + i] = c.layout.strides[i];
  }
  return out;
}

std::vector<OpSample<Expand::Attrs>> Expand::samples() {
  return {{{{4, 3}}, {"f32[3]"}}, {{{2, -1, 5}}, {"f64[3,1]"}}, {{{0, 3}}, {"f32[1,3]"}},
          {{{7}}, {"i32[]"}},     {{{2, 2}}, {"bool[2,1]"}},    {{{1}}, {"f32[1]"}},
          {{{3}}, {"c64[1]"}}};
}

Expr expand(Expr x, Dims shape) {
  return x.shape().dims() == shape ? x : make<Expand>(*x.graph, {std::move(shape)}, {x});
}

}  // namespace rlx::ops
