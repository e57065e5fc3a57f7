#include "rlx/ops/linalg/dot_general.h"

#include <algorithm>
#include <numeric>

#include "rlx/ops/elementwise/binary.h"
#include "rlx/ops/elementwise/complex.h"
#include "rlx/ops/linalg/matrix.h"
#include "rlx/ops/shape/transpose.h"

namespace rlx::ops {
namespace {

using Axes = std::vector<int>;

bool is_byte(DType t) { return t == DType::i8 || t == DType::u8; }

Axes counting(int from, size_t count) {
  Axes out(count);
  std::iota(out.begin(), out.end(), from);
  return out;
}

Axes joined(const Axes& a, const Axes& b) {
  Axes out = a;
  out.insert(out.end(), b.begin(), b.end());
  return out;
}

Axes free_axes(int rank, const Axes& contracting, const Axes& batch) {
  Axes out;
  const Axes used = joined(contracting, batch);
  for (int i = 0; i < rank; ++i) {
    if (std::find(used.begin(), used.end(), i) == used.end()) out.push_back(i);
  }
  return out;
}

void canonicalize(Infer& c, int operand, Axes& contracting, Axes& batch) {
  for (Axes* list : {&contracting, &batch}) {
    for (int& axis : *list) axis = c.axis(axis, operand);
  }
  c.axes(joined(contracting, batch), operand);  // refuses repetition
}

void require_pairs(Infer& c, std::string_view what, const Axes& left, const Axes& right) {
  if (left.size() != right.size()) {
    c.fail(what, " axes of lhs ", left, " and rhs ", right, " differ in number; they are paired in order");
  }
  for (size_t i = 0; i < left.size(); ++i) {
    const Dim l = c.in(0).dim(left[i]), r = c.in(1).dim(right[i]);
    if (decide_equal(l, r) == false) {
      c.fail(what, " sizes differ, axis ", left[i], " of lhs ", c.in(0), " and axis ", right[i], " of rhs ",
             c.in(1));
    }
    c.same(l, r, cat(what, " sizes"));
  }
}

// Row-major positions of the elements of x when its axes are walked in the given order.
std::vector<int64_t> positions(const Shape& x, const Axes& axes) {
  const auto strides = row_major_strides(x.dims());
  std::vector<int64_t> out{0};
  for (const int axis : axes) {
    std::vector<int64_t> next;
    next.reserve(out.size() * size_t(x.dim(axis).value()));
    for (const int64_t p : out) {
      for (int64_t i = 0; i < x.dim(axis).value(); ++i) next.push_back(p + i * strides[size_t(axis)]);
    }
    out = std::move(next);
  }
  return out;
}

template <class T>
std::vector<T> contract(const std::vector<T>& l, const std::vector<T>& r, const Eval& c,
                        const DotGeneral::Attrs& a) {
  const Shape &ls = c.in(0).shape(), &rs = c.in(1).shape();
  const auto batch_l = positions(ls, a.lhs_batch), batch_r = positions(rs, a.rhs_batch);
  const auto free_l = positions(ls, free_axes(ls.rank(), a.lhs_contracting, a.lhs_batch));
  const auto free_r = positions(rs, free_axes(rs.rank(), a.rhs_contracting, a.rhs_batch));
  const auto inner_l = positions(ls, a.lhs_contracting), inner_r = positions(rs, a.rhs_contracting);
  std::vector<T> y;
  y.reserve(size_t(c.out().elements()));
  for (size_t b = 0; b < batch_l.size(); ++b) {
    for (const int64_t i : free_l) {
      for (const int64_t j : free_r) {
        T sum = 0;
        for (size_t k = 0; k < inner_l.size(); ++k)
          sum += l[size_t(batch_l[b] + i + inner_l[k])] * r[size_t(batch_r[b] + j + inner_r[k])];
        y.push_back(sum);
      }
    }
  }
  return y;
}

// Brings a gradient whose axes are (batch, free, contracted ascending in the other operand) into the order of
// the operand. `axes` tells the operand's axis of each gradient axis.
Expr arranged(Expr gradient, const Axes& axes) {
  Axes perm(axes.size());
  for (size_t i = 0; i < axes.size(); ++i) perm[size_t(axes[i])] = int(i);
  return transpose(gradient, perm);
}

// Contracted axes of one operand in the order in which the other operand's appear, ascending.
Axes order_of_partner(const Axes& own, const Axes& partner) {
  Axes order = counting(0, own.size()), out;
  std::sort(order.begin(), order.end(),
            [&](int i, int j) { return partner[size_t(i)] < partner[size_t(j)]; });
  for (const int i : order) out.push_back(own[size_t(i)]);
  return out;
}

}  // namespace

DType product_dtype(DType operand) { return is_byte(operand) ? DType::i32 : operand; }

void require_product(Infer& c) {
  if (!(is_byte(c.in(0).dtype()) && is_byte(c.in(1).dtype()))) c.same_dtype({0, 1});
  c.require_numeric(0);
}

Shapes DotGeneral::infer(Infer& c, Attrs& a) {
  require_product(c);
  canonicalize(c, 0, a.lhs_contracting, a.lhs_batch);
  canonicalize(c, 1, a.rhs_contracting, a.rhs_batch);
  require_pairs(c, "contracted", a.lhs_contracting, a.rhs_contracting);
  require_pairs(c, "batch", a.lhs_batch, a.rhs_batch);
  Dims dims;
  for (const int axis : a.lhs_batch) dims.push_back(c.in(0).dim(axis));
  for (const int axis : free_axes(c.in(0).rank(), a.lhs_contracting, a.lhs_batch))
    dims.push_back(c.in(0).dim(axis));
  for (const int axis : free_axes(c.in(1).rank(), a.rhs_contracting, a.rhs_batch))
    dims.push_back(c.in(1).dim(axis));
  return {Shape(product_dtype(c.in(0).dtype()), std::move(dims))};
}

Literals DotGeneral::reference(const Eval& c, const Attrs& a) {
  if (is_integer(c.out().dtype()))
    return {Literal::integers(c.out(), contract(c.in(0).to_integers(), c.in(1).to_integers(), c, a))};
  return with_scalar(c.out().dtype(), [&]<class T>(T) -> Literals {
    return {literal_of(c.out(), contract(scalars_of<T>(c.in(0)), scalars_of<T>(c.in(1)), c, a))};
  });
}

Exprs DotGeneral::vjp(const Vjp& c, const Attrs& a) {
  const Expr l = c.in(0), r = c.in(1), dy = c.dy();
  const Axes free_l = free_axes(l.rank(), a.lhs_contracting, a.lhs_batch);
  const Axes free_r = free_axes(r.rank(), a.rhs_contracting, a.rhs_batch);
  const size_t batch = a.lhs_batch.size();
  const Axes batch_y = counting(0, batch), left_y = counting(int(batch), free_l.size()),
             right_y = counting(int(batch + free_l.size()), free_r.size());
  Exprs out(2);
  if (c.wants(0)) {
    const Expr g = dot_general(dy, conj_of(r), {right_y, free_r, batch_y, a.rhs_batch});
    out[0] = arranged(
        g, joined(joined(a.lhs_batch, free_l), order_of_partner(a.lhs_contracting, a.rhs_contracting)));
  }
  if (c.wants(1)) {
    const Expr g = dot_general(dy, conj_of(l), {left_y, free_l, batch_y, a.lhs_batch});
    out[1] = arranged(
        g, joined(joined(a.rhs_batch, free_r), order_of_partner(a.rhs_contracting, a.lhs_contracting)));
  }
  return out;
}

Exprs DotGeneral::jvp(const Jvp& c, const Attrs& a) {
  return {add_or(c.has_dx(0) ? dot_general(c.dx(0), c.in(1), a) : Expr{},
                 c.has_dx(1) ? dot_general(c.in(0), c.dx(1), a) : Expr{})};
}

// Two batched operands get one more batch axis; the batch of a single one is a free axis, moved to the front.
Exprs DotGeneral::vmap(const Vmap& c, const Attrs& a) {
  Attrs moved = a;
  const bool left = c.batched(0), right = c.batched(1);
  if (left) {
    for (Axes* list : {&moved.lhs_contracting, &moved.lhs_batch}) {
      for (int& axis : *list) ++axis;
    }
  }
  if (right) {
    for (Axes* list : {&moved.rhs_contracting, &moved.rhs_batch}) {
      for (int& axis : *list) ++axis;
    }
  }
  const int batch = int(a.lhs_batch.size());
  if (left && right) {
    moved.lhs_batch.insert(moved.lhs_batch.begin(), 0);
    moved.rhs_batch.insert(moved.rhs_batch.begin(), 0);
    return {dot_general(c.in(0), c.in(1), moved)};
  }
  const int at = left ? batch : c.in(0).rank() - int(a.lhs_contracting.size());
  return {move_axis(dot_general(c.in(0), c.in(1), moved), at, 0)};
}

double DotGeneral::operations(std::span<const Shape> in, std::span<const Shape> out, const Attrs& a) {
  double summed = 1;
  for (const int axis : a.lhs_contracting) summed *= double(in[0].dim(axis).value());
  return 2 * double(out[0].elements()) * summed;
}

std::vector<OpSample<DotGeneral::Attrs>> DotGeneral::samples() {
  return {{{{1}, {0}, {}, {}}, {"f32[2,3]", "f32[3,4]"}},
          {{{2, 0}, {1, 2}, {1}, {0}}, {"f64[2,3,4]", "f64[3,4,2,5]"}},
          {{{-1}, {-1}, {0, 1}, {0, 1}}, {"f32[2,1,3,5]", "f32[2,1,4,5]"}},
          {{{}, {}, {}, {}}, {"f32[2]", "f32[3]"}},
          {{{0}, {0}, {}, {}}, {"f32[0,2]", "f32[0,3]"}},
          {{{0}, {0}, {}, {}}, {"f16[1]", "f16[1]"}},
          {{{1}, {0}, {}, {}}, {"i8[2,5]", "u8[5,3]"}},
          {{{1}, {1}, {0}, {0}}, {"c64[2,3]", "c64[2,3,2]"}},
          {{{0}, {1}, {}, {}}, {"i32[3,2]", "i32[2,3]"}}};
}

Expr dot_general(Expr lhs, Expr rhs, DotGeneral::Attrs attrs) {
  return make<DotGeneral>(*lhs.graph, std::move(attrs), {lhs, rhs});
}

}  // namespace rlx::ops
