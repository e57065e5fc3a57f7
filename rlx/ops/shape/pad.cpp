#include "rlx/ops/shape/pad.h"

#include "rlx/ops/shape/box.h"
#include "rlx/ops/shape/slice.h"

namespace rlx::ops {

Shapes Pad::infer(Infer& c, Attrs& a) {
  const Shape& x = c.in(0);
  Dims dims = x.dims();
  for (auto* border : {&a.low, &a.high}) {
    if (border->empty()) border->assign(dims.size(), Dim(0));
    const char* which = border == &a.low ? "low " : "high ";
    if (border->size() != dims.size()) c.fail(which, *border, " has ", border->size(), " entries for x: ", x);
    for (size_t k = 0; k < dims.size(); ++k) {
      if ((*border)[k].is_inferred()) c.fail(which, *border, " has a negative entry; use slice to cut");
      dims[k] = dims[k] + (*border)[k];
    }
  }
  return {x.with_dims(std::move(dims))};
}

Literals Pad::reference(const Eval& c, const Attrs& a) {
  std::vector<int64_t> start;
  for (const Dim d : a.low) start.push_back(d.value());
  const Literal& x = c.in(0);
  Literal y = Literal::full(c.out(), a.value);
  put_elements(
      x, box_positions(x.shape().dims(), c.out().dims(), start, std::vector<int64_t>(start.size(), 1)), y);
  return {y};
}

Exprs Pad::vjp(const Vjp& c, const Attrs& a) {
  Dims limit = a.low;
  for (size_t k = 0; k < limit.size(); ++k) limit[k] = limit[k] + c.in(0).dim(int(k));
  return {slice(c.dy(), a.low, limit)};
}

Exprs Pad::jvp(const Jvp& c, const Attrs& a) { return {pad(c.dx(0), a.low, a.high)}; }

Exprs Pad::vmap(const Vmap& c, const Attrs& a) {
  Attrs b = a;
  b.low.insert(b.low.begin(), Dim(0));
  b.high.insert(b.high.begin(), Dim(0));
  return {make<Pad>(c.graph, b, {c.in(0)})};
}

std::vector<OpSample<Pad::Attrs>> Pad::samples() {
  return {{{{1, 0}, {0, 2}, 0}, {"f32[2,3]"}},
          {{{1, 2, 1}, {}, -1.5}, {"f64[1,2,3]"}},
          {{{2}, {1}, 7}, {"i32[0]"}},
          {{{}, {3}, 1}, {"bool[1]"}},
          {{{}, {}, 0}, {"f32[]"}},
          {{{0, 1}, {1, 0}, 2}, {"c64[2,2]"}},
          {{{0, 0}, {0, 0}, 0}, {"f16[3,1]"}}};
}

Expr pad(Expr x, Dims low, Dims high, double value) {
  return make<Pad>(*x.graph, {std::move(low), std::move(high), value}, {x});
}

}  // namespace rlx::ops
