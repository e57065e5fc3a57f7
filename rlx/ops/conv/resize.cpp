#include "rlx/ops/conv/resize.h"

#include <algorithm>
#include <cmath>

#include "rlx/ops/numeric.h"

namespace rlx::ops {
namespace {

void check_size(const Infer& c, const Dims& size, ResizeMode mode, bool align_corners) {
  if (size.empty()) c.fail("size is empty; it must have an entry for each axis to resize");
  for (const Dim d : size) {
    if (d.is_inferred()) c.fail("size ", size, " has a negative entry");
  }
  c.require_min_rank(0, int(size.size()));
  c.require_float_or_complex(0);
  if (align_corners && mode == ResizeMode::nearest)
    c.fail("align_corners is for mode linear; nearest takes floor(o in / out)");
}

// The last axes of x replaced by `size`. An empty axis has nothing to take from.
Shape resized(const Infer& c, const Dims& size) {
  Shape y = c.in(0);
  for (size_t i = 0; i < size.size(); ++i) {
    const int axis = y.rank() - int(size.size() - i);
    if (decide_equal(y.dim(axis), 0) == true && decide_equal(size[i], 0) != true)
      c.fail(c.operand_name(0), ": ", c.in(0), " is empty along axis ", axis, " and cannot become ", size[i]);
    y = y.with_dim(axis, size[i]);
  }
  return y;
}

// Position o of the longer or shorter axis is (1 - part) x[low] + part x[high].
struct Tap {
  int64_t low, high;
  double part;
};

std::vector<Tap> taps(int64_t in, int64_t out, ResizeMode mode, bool align_corners) {
  std::vector<Tap> result;
  for (int64_t o = 0; o < out; ++o) {
    if (mode == ResizeMode::nearest) {
      result.push_back({o * in / out, o * in / out, 0});
      continue;
    }
    double at = 0;
    if (!align_corners) {
      at = std::max(0.0, (double(o) + 0.5) * double(in) / double(out) - 0.5);
    } else if (out > 1) {
      at = double(o) * double(in - 1) / double(out - 1);
    }
    const int64_t low = std::min(int64_t(std::floor(at)), in - 1);
    result.push_back({low, std::min(low + 1, in - 1), at - double(low)});
  }
  return result;
}

// One axis after the other; `backward` adds into the places the forward form reads.
template <class T>
std::vector<T> resample(std::vector<T> x, Dims dims, const Dims& to, ResizeMode mode, bool align_corners,
                        bool backward) {
  for (size_t axis = dims.size() - to.size(); axis < dims.size(); ++axis) {
    const auto [outer, length, inner] = axis_view(Shape(DType::f64, dims), int(axis));
    const int64_t target = to[axis - (dims.size() - to.size())].value();
    const auto list = taps(backward ? target : length, backward ? length : target, mode, align_corners);
    std::vector<T> y(size_t(outer * target * inner), T(0));
    for (int64_t b = 0; b < outer; ++b) {
      for (size_t o = 0; o < list.size(); ++o) {
        const auto [low, high, part] = list[o];
        for (int64_t i = 0; i < inner; ++i) {
          const auto at = [&](int64_t size, int64_t k) { return size_t((b * size + k) * inner + i); };
          if (backward) {
            const T v = x[at(length, int64_t(o))];
            y[at(target, low)] += v * (1 - part);
            y[at(target, high)] += v * part;
          } else if (part == 0) {
            y[at(target, int64_t(o))] = x[at(length, low)];  // nothing times an infinite neighbour
          } else {
            y[at(target, int64_t(o))] = x[at(length, low)] * (1 - part) + x[at(length, high)] * part;
          }
        }
      }
    }
    x = std::move(y);
    dims[axis] = target;
  }
  return x;
}

template <class Attrs>
Literals run(const Eval& c, const Attrs& a, bool backward) {
  const auto go = [&]<class T>() {
    return resample(values_as<T>(c.in(0)), c.in(0).shape().dims(), a.size, a.mode, a.align_corners, backward);
  };
  if (is_complex(c.out().dtype()))
    return { Literal::complexes(c.out(), go.template operator()<std::complex<double>>()) };
  return { Literal::reals(c.out(), go.template operator()<double>()) };
}

Dims last(const Dims& dims, size_t count) { return Dims(dims.end() - ptrdiff_t(count), dims.end()); }

}  // namespace

Shapes Resize::infer(Infer& c, Attrs& a) {
  if (a.scale) {
    if (*a.scale < 1) c.fail("scale ", *a.scale, " must be 1 or more");
    if (!a.size.empty())
      c.fail("size ", a.size, " and scale ", *a.scale, " are both given; one of them says");
    c.require_min_rank(0, 3);
    for (int i = 2; i < c.in(0).rank(); ++i) a.size.push_back(c.in(0).dim(i) * Dim(*a.scale));
    a.scale.reset();
  }
  check_size(c, a.size, a.mode, a.align_corners);
  return {resized(c, a.size)};
}

Literals Resize::reference(const Eval& c, const Attrs& a) { return run(c, a, false); }

Exprs Resize::vjp(const Vjp& c, const Attrs& a) {
  return {make<ResizeBackward>(
      c.graph, {a.mode, last(c.in(0).shape().dims(), a.size.size()), a.align_corners}, {c.dy()})};
}

Exprs Resize::vmap(const Vmap& c, const Attrs& a) { return {make<Resize>(c.graph, a, {c.in(0)})}; }

std::vector<OpSample<Resize::Attrs>> Resize::samples() {
  using enum ResizeMode;
  return {{{nearest, {}, 2}, {"f32[1,2,3,4]"}},    {{linear, {7, 9}}, {"f64[1,2,3,4]"}},
          {{linear, {5}, {}, true}, {"f32[2,3]"}}, {{nearest, {5, 2}}, {"f32[3,3]"}},
          {{linear, {2, 2, 3}}, {"f32[1,3,2,2]"}}, {{linear, {1}, {}, true}, {"f16[4]"}},
          {{nearest, {3}}, {"f32[0,2]"}},          {{linear, {3}}, {"f32[1]"}},
          {{linear, {}, 3}, {"c64[1,1,2]"}}};
}

Shapes ResizeBackward::infer(Infer& c, Attrs& a) {
  check_size(c, a.size, a.mode, a.align_corners);
  Shape x = c.in(0);
  for (size_t i = 0; i < a.size.size(); ++i) x = x.with_dim(x.rank() - int(a.size.size() - i), a.size[i]);
  return {x};
}

Literals ResizeBackward::reference(const Eval& c, const Attrs& a) { return run(c, a, true); }

Exprs ResizeBackward::vjp(const Vjp& c, const Attrs& a) {
  return {make<Resize>(c.graph, {a.mode, last(c.in(0).shape().dims(), a.size.size()), {}, a.align_corners},
                       {c.dy()})};
}

Exprs ResizeBackward::vmap(const Vmap& c, const Attrs& a) {
  return {make<ResizeBackward>(c.graph, a, {c.in(0)})};
}

std::vector<OpSample<ResizeBackward::Attrs>> ResizeBackward::samples() {
  using enum ResizeMode;
  return {{{nearest, {3, 4}}, {"f32[1,2,6,8]"}}, {{linear, {3, 4}}, {"f64[2,7,9]"}},
          {{linear, {3}, true}, {"f32[2,5]"}},   {{nearest, {2}}, {"f32[0,3]"}},
          {{linear, {1}}, {"f16[3]"}},           {{linear, {2}}, {"c64[1,5]"}}};
}

Shapes ResizeNearest2x::infer(Infer& c, Attrs&) {
  c.require_float_or_complex(0);
  c.require_rank(0, 4);
  const Shape& x = c.in(0);
  return {x.with_dim(2, x.dim(2) * Dim(2)).with_dim(3, x.dim(3) * Dim(2))};
}

Exprs ResizeNearest2x::decompose(const Lower& c, const Attrs&) {
  return {resize_scaled(c.in(0), ResizeMode::nearest, 2)};
}

std::vector<OpSample<ResizeNearest2x::Attrs>> ResizeNearest2x::samples() {
  return {{{}, {"f32[1,2,3,2]"}}, {{}, {"f64[2,1,1,1]"}}, {{}, {"f32[0,1,2,2]"}},
          {{}, {"f16[1,1,3,1]"}}, {{}, {"c64[1,1,2,1]"}}, {{}, {"f32[1,1,1,1]"}}};
}

Expr resize(Expr x, ResizeMode mode, Dims size, bool align_corners) {
  return make<Resize>(*x.graph, {mode, std::move(size), {}, align_corners}, {x});
}
Expr resize_scaled(Expr x, ResizeMode mode, int64_t scale, bool align_corners) {
  return make<Resize>(*x.graph, {mode, {}, scale, align_corners}, {x});
}
Expr resize_nearest2x(Expr x) { return make<ResizeNearest2x>(*x.graph, {}, {x}); }

}  // namespace rlx::ops
