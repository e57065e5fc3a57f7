#include "rlx/ops/reduce/sort.h"

#include <algorithm>
#include <numeric>

#include "rlx/ops/reduce/order.h"
#include "rlx/ops/require.h"
#include "rlx/ops/shape/box.h"
#include "rlx/ops/shape/narrow.h"

namespace rlx::ops {
namespace {

std::vector<OpSample<SortAttrs>> sort_samples() {
  return {{{-1}, {"f32[4,9] distinct"}}, {{0, true}, {"f64[5,2] distinct"}},
          {{1}, {"i32[2,6,2] <3"}},      {{0, true}, {"i64[7] <3"}},
          {{0}, {"f32[0,3]"}},           {{0}, {"f16[1]"}},
          {{-1}, {"bool[5]"}},           {{-2}, {"f32[3,1] distinct"}}};
}

}  // namespace

Shapes Sort::infer(Infer& c, Attrs& a) {
  require_order(c);
  a.axis = c.axis(a.axis, 0);
  require_positions(c, DType::i32, c.in(0).dim(a.axis));
  return {c.in(0), c.in(0).with_dtype(DType::i32)};
}

Literals Sort::reference(const Eval& c, const Attrs& a) {
  const auto [outer, length, inner] = axis_view(c.out(), a.axis);
  std::vector<int64_t> order(static_cast<size_t>(length)), from(size_t(c.out().elements())),
      indices(from.size());
  with_values(c.in(0), [&](const auto& x) {
    for (int64_t o = 0; o < outer; ++o) {
      for (int64_t i = 0; i < inner; ++i) {
        const auto at = [&](int64_t k) { return size_t((o * length + k) * inner + i); };
        std::iota(order.begin(), order.end(), int64_t(0));
        std::stable_sort(order.begin(), order.end(), [&](int64_t p, int64_t q) {
          return a.descending ? below(x[at(q)], x[at(p)]) : below(x[at(p)], x[at(q)]);
        });
        for (int64_t k = 0; k < length; ++k) {
          indices[at(k)] = order[size_t(k)];
          from[at(k)] = int64_t(at(order[size_t(k)]));
        }
      }
    }
  });
  return {pick_elements(c.in(0), from, c.out()), Literal::integers(c.out(1), indices)};
}

Exprs Sort::vjp(const Vjp& c, const Attrs& a) { return routed_vjp(c, a.axis); }
Exprs Sort::jvp(const Jvp& c, const Attrs& a) { return routed_jvp(c, a.axis); }
Exprs Sort::vmap(const Vmap& c, const Attrs& a) { return sort(c.in(0), a.axis + 1, a.descending); }
std::vector<OpSample<SortAttrs>> Sort::samples() { return sort_samples(); }

Shapes Argsort::infer(Infer& c, Attrs& a) {
  require_order(c);
  a.axis = c.axis(a.axis, 0);
  require_positions(c, DType::i32, c.in(0).dim(a.axis));
  return {c.in(0).with_dtype(DType::i32)};
}
Exprs Argsort::decompose(const Lower& c, const Attrs& a) { return {sort(c.in(0), a.axis, a.descending)[1]}; }
Exprs Argsort::vmap(const Vmap& c, const Attrs& a) { return {argsort(c.in(0), a.axis + 1, a.descending)}; }
std::vector<OpSample<SortAttrs>> Argsort::samples() { return sort_samples(); }

Shapes TopK::infer(Infer& c, Attrs& a) {
  const Shape& x = c.in(0);
  require_order(c);
  a.axis = c.axis(a.axis, 0);
  const Dim size = x.dim(a.axis);
  require_positions(c, DType::i32, size);
  if (a.k < 0 || (size.is_static() && a.k > size.value()))
    c.fail("k is ", a.k, " and axis ", a.axis, " of x: ", x, " has size ", size,
           "; k must be between 0 and that");
  const Shape y = x.with_dim(a.axis, a.k);
  return {y, y.with_dtype(DType::i32)};
}

Exprs TopK::decompose(const Lower& c, const Attrs& a) {
  Exprs sorted = sort(c.in(0), a.axis, true);
  for (Expr& t : sorted) t = narrow(t, a.axis, 0, a.k);
  return sorted;
}

Exprs TopK::vjp(const Vjp& c, const Attrs& a) { return routed_vjp(c, a.axis); }
Exprs TopK::jvp(const Jvp& c, const Attrs& a) { return routed_jvp(c, a.axis); }
Exprs TopK::vmap(const Vmap& c, const Attrs& a) { return top_k(c.in(0), a.k, a.axis + 1); }

std::vector<OpSample<TopK::Attrs>> TopK::samples() {
  return {{{3}, {"f32[4,9] distinct"}},
          {{2, 0}, {"f64[5,2] distinct"}},
          {{4, 1}, {"i32[2,6,2] <3"}},
          {{0}, {"f32[3]"}},
          {{1}, {"f16[1]"}},
          {{2, -2}, {"f32[2,0]"}},
          {{5}, {"i64[5] <3"}}};
}

Exprs sort(Expr x, int axis, bool descending) { return make_all<Sort>(*x.graph, {axis, descending}, {x}); }
Expr argsort(Expr x, int axis, bool descending) { return make<Argsort>(*x.graph, {axis, descending}, {x}); }
Exprs top_k(Expr x, int64_t k, int axis) { return make_all<TopK>(*x.graph, {k, axis}, {x}); }

}  // namespace rlx::ops
