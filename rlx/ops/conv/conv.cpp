#include "rlx/ops/conv/conv.h"

#include <algorithm>
#include <array>
#include <numeric>

#include "rlx/base/checked.h"
#include "rlx/ops/conv/extent.h"
#include "rlx/ops/elementwise/binary.h"
#include "rlx/ops/elementwise/complex.h"
#include "rlx/ops/numeric.h"
#include "rlx/ops/shape/reshape.h"
#include "rlx/ops/shape/transpose.h"

namespace rlx::ops {
namespace {

constexpr int kMaxAxes = 3;

Dim divided(Dim a, Dim b) {
  const auto exact = exact_div(a, b);
  return exact ? *exact : floordiv(a, b);
}

// {0, 1, .., rank-1} with the first axes replaced.
std::vector<int> permutation(int rank, std::initializer_list<int> first) {
  std::vector<int> perm(static_cast<size_t>(rank));
  std::iota(perm.begin(), perm.end(), 0);
  std::copy(first.begin(), first.end(), perm.begin());
  return perm;
}

// Extents `first`, then those of t from axis `from` on.
Dims with_tail(Dims first, Expr t, int from) {
  const Dims& dims = t.shape().dims();
  first.insert(first.end(), dims.begin() + from, dims.end());
  return first;
}

void steps_not_zero(const Infer& c, const std::vector<int64_t>& list, std::string_view name) {
  for (const int64_t v : list) {
    if (v == 0) c.fail(name, " ", list, " has a 0; a step must move");
  }
}

}  // namespace

Shapes Conv::infer(Infer& c, Attrs& a) {
  const Shape &x = c.in(0), &w = c.in(1);
  c.same_dtype({0, 1});
  c.require_numeric(0);
  const int axes = x.rank() - 2;
  if (axes < 1 || axes > kMaxAxes) {
    c.fail("x: ", x, " has rank ", x.rank(), "; it must be [N, C, spatial..] with 1 to 3 spatial axes");
  }
  c.require_rank(1, x.rank());
  constexpr int64_t kAny = INT64_MIN;
  complete_list(c, a.stride, "stride", axes, 1, kAny);
  complete_list(c, a.padding, "padding", axes, 0, kAny);
  complete_list(c, a.dilation, "dilation", axes, 1, kAny);
  complete_list(c, a.input_dilation, "input_dilation", axes, 1, kAny);
  steps_not_zero(c, a.stride, "stride");
  steps_not_zero(c, a.dilation, "dilation");
  steps_not_zero(c, a.input_dilation, "input_dilation");
  if (a.groups == Dim(0) || a.groups.is_inferred()) c.fail("groups ", a.groups, " must be 1 or more");
  if (decide_equal(x.dim(1), a.groups * w.dim(1)) == false) {
    c.fail("channels differ, x: ", x, " has ", x.dim(1), " and w: ", w, " with groups ", a.groups, " takes ",
           a.groups * w.dim(1));
  }
  c.same(x.dim(1), a.groups * w.dim(1), "channels");
  const Dim rest = mod(w.dim(0), a.groups);
  if (decide_equal(rest, 0) == false) {
    c.fail("w: ", w, " has ", w.dim(0), " output channels, not divisible by groups ", a.groups);
  }
  c.same(rest, 0, "output channels modulo groups and 0");
  if (a.size.empty()) {
    for (int i = 0; i < axes; ++i) {
      const auto k = size_t(i);
      if (a.stride[k] < 0 || a.dilation[k] < 0 || a.input_dilation[k] < 0)
        c.fail("size must be given with a negative step");
      const Dim in = x.dim(i + 2);
      const Dim spread = in == Dim(0) ? in : shifted(in * Dim(a.input_dilation[k]), 1 - a.input_dilation[k]);
      if (!w.dim(i + 2).is_static()) {
        const Dim reach = shifted(w.dim(i + 2) * Dim(a.dilation[k]), -a.dilation[k]);
        const Dim room = shifted(spread - reach, checked_add(checked_mul(2, a.padding[k]), -1));
        a.size.push_back(floordiv(room, a.stride[k]) + Dim(1));
        continue;
      }
      const int64_t window = checked_add(checked_mul(w.dim(i + 2).value() - 1, a.dilation[k]), 1);
      a.size.push_back(window_positions(c, spread, a.padding[k], a.padding[k], window, a.stride[k]));
    }
  }
  if (int(a.size.size()) != axes)
    c.fail("size ", a.size, " has ", a.size.size(), " entries; it must have ", axes);
  Dims dims{x.dim(0), w.dim(0)};
  dims.insert(dims.end(), a.size.begin(), a.size.end());
  return {x.with_dims(std::move(dims))};
}

namespace {

using Extents = std::array<int64_t, kMaxAxes>;

// Spatial extents and steps, filled up in front to three axes of size 1 and step 1.
Extents spatial(const Shape& s) {
  Extents out{1, 1, 1};
  for (int i = 0; i < s.rank() - 2; ++i) out[size_t(kMaxAxes - 1 - i)] = s.dim(-1 - i).value();
  return out;
}
Extents filled(const std::vector<int64_t>& list, int64_t fill) {
  Extents out{fill, fill, fill};
  std::copy_backward(list.begin(), list.end(), out.end());
  return out;
}

struct Geometry {
  Extents x, w, y, stride, padding, dilation, input_dilation;

  // Position in x met by (o, k) on one axis, -1 for none.
  int64_t source(size_t axis, int64_t o, int64_t k) const {
    const int64_t t = o * stride[axis] + k * dilation[axis] - padding[axis];
    if (t % input_dilation[axis] != 0) return -1;
    const int64_t i = t / input_dilation[axis];
    return i < x[axis] ? i : -1;  // a negative i is "none" already
  }

  // f(position in x's plane, position in the kernel) for each term of output position o.
  template <class F>
  void for_each_term(const Extents& o, F f) const {
    for (int64_t k0 = 0; k0 < w[0]; ++k0) {
      const int64_t i0 = source(0, o[0], k0);
      if (i0 < 0) continue;
      for (int64_t k1 = 0; k1 < w[1]; ++k1) {
        const int64_t i1 = source(1, o[1], k1);
        if (i1 < 0) continue;
        for (int64_t k2 = 0; k2 < w[2]; ++k2) {
          const int64_t i2 = source(2, o[2], k2);
          if (i2 >= 0) f((i0 * x[1] + i1) * x[2] + i2, (k0 * w[1] + k1) * w[2] + k2);
        }
      }
    }
  }
};

template <class T>
std::vector<T> convolve(const Eval& c, const Conv::Attrs& a) {
  const Shape &xs = c.in(0).shape(), &ws = c.in(1).shape(), &ys = c.out();
  const Geometry g{spatial(xs),
                   spatial(ws),
                   spatial(ys),
                   filled(a.stride, 1),
                   filled(a.padding, 0),
                   filled(a.dilation, 1),
                   filled(a.input_dilation, 1)};
  const auto x = values_as<T>(c.in(0)), w = values_as<T>(c.in(1));
  const auto volume = [](const Extents& e) { return e[0] * e[1] * e[2]; };
  const int64_t batch = ys.dim(0).value(), outputs = ys.dim(1).value(), inputs = ws.dim(1).value();
  const int64_t outputs_per_group = outputs / a.groups.value();
  std::vector<T> y;
  y.reserve(size_t(ys.elements()));
  for (int64_t n = 0; n < batch; ++n) {
    for (int64_t co = 0; co < outputs; ++co) {
      const int64_t first = (n * a.groups.value() + co / outputs_per_group) * inputs;
      Extents o;
      for (o[0] = 0; o[0] < g.y[0]; ++o[0]) {
        for (o[1] = 0; o[1] < g.y[1]; ++o[1]) {
          for (o[2] = 0; o[2] < g.y[2]; ++o[2]) {
            T sum = 0;
            g.for_each_term(o, [&](int64_t i, int64_t k) {
              for (int64_t ci = 0; ci < inputs; ++ci) {
                sum += x[size_t((first + ci) * volume(g.x) + i)] *
                       w[size_t((co * inputs + ci) * volume(g.w) + k)];
              }
            });
            y.push_back(sum);
          }
        }
      }
    }
  }
  return y;
}

}  // namespace

Literals Conv::reference(const Eval& c, const Attrs& a) {
  return {by_accumulator(c.out(), [&]<class T>() { return convolve<T>(c, a); })};
}

Expr swap_channels(Expr w, Dim groups) {
  const Dim a = divided(w.dim(0), groups), b = w.dim(1);
  const Expr split = reshape(w, with_tail({groups, a, b}, w, 2));
  const Expr swapped = transpose(split, permutation(split.rank(), {0, 2, 1}));
  return reshape(swapped, with_tail({groups * b, a}, w, 2));
}

Expr conv_input_gradient(Expr dy, Expr w, const Dims& x_dims, const Conv::Attrs& a) {
  Conv::Attrs b = a;
  std::swap(b.stride, b.input_dilation);
  for (int64_t& d : b.dilation) d = -d;
  for (int64_t& p : b.padding) p = -p;
  b.size.assign(x_dims.begin() + 2, x_dims.end());
  return conv(dy, swap_channels(w, a.groups), b);
}

// The batch is what is summed over, so it becomes the channels, and the input channels of a group the batch.
Expr conv_weight_gradient(Expr x, Expr dy, const Dims& w_dims, const Conv::Attrs& a) {
  Conv::Attrs b = a;
  std::swap(b.stride, b.dilation);
  b.size.assign(w_dims.begin() + 2, w_dims.end());
  const Dim batch = x.dim(0), inputs = w_dims[1];
  const Expr split = reshape(x, with_tail({batch, a.groups, inputs}, x, 2));
  const Expr moved = transpose(split, permutation(split.rank(), {2, 1, 0}));
  const Expr by_input = reshape(moved, with_tail({inputs, a.groups * batch}, x, 2));
  const Expr dw = conv(by_input, transpose(dy, permutation(dy.rank(), {1, 0})), b);
  return transpose(dw, permutation(dw.rank(), {1, 0}));
}

Exprs Conv::vjp(const Vjp& c, const Attrs& a) {
  Exprs out(2);
  const Expr x = c.in(0), w = c.in(1);
  if (c.wants(0)) out[0] = conv_input_gradient(c.dy(), conj_of(w), x.shape().dims(), a);
  if (c.wants(1)) out[1] = conv_weight_gradient(conj_of(x), c.dy(), w.shape().dims(), a);
  return out;
}

Exprs Conv::jvp(const Jvp& c, const Attrs& a) {
  return {add_or(c.has_dx(0) ? conv(c.dx(0), c.in(1), a) : Expr{},
                 c.has_dx(1) ? conv(c.in(0), c.dx(1), a) : Expr{})};
}

// A batch of inputs joins N. A batch of kernels joins the output channels of each group; when the inputs
// are batched too, every element of the batch becomes a group of its own.
Exprs Conv::vmap(const Vmap& c, const Attrs& a) {
  const Expr x = c.in(0), w = c.in(1);
  if (!c.batched(1)) {
    const Expr y = conv(reshape(x, with_tail({c.size * x.dim(1)}, x, 2)), w, a);
    return {reshape(y, with_tail({c.size, x.dim(1)}, y, 1))};
  }
  const Dim outputs = w.dim(1), per_group = divided(outputs, a.groups);
  if (c.batched(0)) {
    Attrs each = a;
    each.groups = c.size * a.groups;
    const Expr moved = transpose(x, permutation(x.rank(), {1, 0}));
    const Expr y = conv(reshape(moved, with_tail({x.dim(1), c.size * x.dim(2)}, x, 3)),
                        reshape(w, with_tail({c.size * outputs}, w, 2)), each);
    const Expr split = reshape(y, with_tail({y.dim(0), c.size, outputs}, y, 2));
    return {transpose(split, permutation(split.rank(), {1, 0}))};
  }
  const Expr grouped = reshape(w, with_tail({c.size, a.groups, per_group}, w, 2));
  const Expr moved = transpose(grouped, permutation(grouped.rank(), {1, 0}));
  const Expr y = conv(x, reshape(moved, with_tail({c.size * outputs}, w, 2)), a);
  const Expr split = reshape(y, with_tail({y.dim(0), a.groups, c.size, per_group}, y, 2));
  const Expr first = transpose(split, permutation(split.rank(), {2, 0, 1, 3}));
  return {reshape(first, with_tail({c.size, y.dim(0), outputs}, y, 2))};
}

double window_operations(const Shape& places, const Shape& w) {
  return 2.0 * double(places.elements()) * double(w.elements()) /
         double(std::max<int64_t>(1, w.dim(0).value()));
}

// Every number of y meets Ci / groups windows, every number of x Co / groups of them: with steps above one on either
// side the smaller count is nearer to the terms that exist.
double Conv::operations(std::span<const Shape> in, std::span<const Shape> out, const Attrs& a) {
  const double per_input =
      double(in[1].elements()) / double(std::max<int64_t>(1, in[1].dim(1).value() * a.groups.value()));
  return std::min(window_operations(out[0], in[1]), 2 * double(in[0].elements()) * per_input);
}

std::vector<OpSample<Conv::Attrs>> Conv::samples() {
  return {{{}, {"f32[2,3,5]", "f32[4,3,2]"}},
          {{{2}, {1}, {2}, {1}, 2}, {"f64[2,4,7]", "f64[2,2,3]"}},
          {{{1, 2}, {1, 0}, {1, 1}, {2, 1}}, {"f32[1,2,3,4]", "f32[3,2,2,2]"}},
          {{{1}, {-1}, {-1}, {3}, 1, {9}}, {"f32[2,2,4]", "f32[2,2,3]"}},
          {{{1, 2, 1}, {0, 1, 1}}, {"f32[1,2,2,3,2]", "f32[2,2,1,2,2]"}},
          {{{-2}, {-5}, {1}, {1}, 1, {4}}, {"f32[1,1,5]", "f32[1,1,2]"}},
          {{}, {"f32[0,2,4]", "f32[3,2,2]"}},
          {{}, {"f16[1,1,1]", "f16[1,1,1]"}},
          {{{1}, {1}, {1}, {1}, 3}, {"c64[1,3,3]", "c64[3,1,2]"}},
          {{{2, 1}}, {"i32[1,2,4,3]", "i32[2,2,2,3]"}},
          {{{1}, {0}, {1}, {1}, 1, {3}}, {"f32[2,2,0]", "f32[1,2,2]"}}};
}

Expr conv(Expr x, Expr w, Conv::Attrs attrs) { return make<Conv>(*x.graph, std::move(attrs), {x, w}); }

}  // namespace rlx::ops
