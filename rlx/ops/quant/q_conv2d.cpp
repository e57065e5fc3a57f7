#include "rlx/ops/quant/q_conv2d.h"

#include "rlx/base/checked.h"
#include "rlx/ops/conv/conv.h"
#include "rlx/ops/elementwise/broadcast.h"
#include "rlx/ops/shape/concat.h"
#include "rlx/ops/shape/narrow.h"
#include "rlx/ops/shape/reshape.h"

namespace rlx::ops {
namespace {

void fill_pair(Infer& c, std::string_view name, std::vector<int64_t>& pair, int64_t missing, int64_t least) {
  if (pair.empty()) pair = {missing, missing};
  if (pair.size() != 2 || pair[0] < least || pair[1] < least)
    c.fail(name, " ", pair, " must be two numbers of ", least, " or more");
}

// floor((in + 2 p - d (k - 1) - 1) / s) + 1
Dim windows(Infer& c, Dim in, int64_t k, int64_t s, int64_t p, int64_t d) {
  const int64_t reach = checked_add(checked_mul(d, k - 1), 1), padding = checked_mul(2, p);
  if (in.is_static() && checked_add(in.value(), padding) < reach)
    c.fail("a window of ", reach, " does not fit an image of ", in, " with padding ", p);
  return floordiv(in + Dim(padding) - Dim(reach), s) + Dim(1);
}

}  // namespace

Shapes QConv2d::infer(Infer& c, Attrs& a) {
  c.require_rank(0, 4);
  c.require_rank(1, 4);
  require_requantize(c, a, c.in(1).dim(0));
  const Shape &x = c.in(0), &w = c.in(1);
  if (!w.dim(2).is_static() || !w.dim(3).is_static())
    c.fail("w: ", w, " has a symbolic kernel size; a kernel has known sizes");
  const std::vector<int64_t> kernel = {w.dim(2).value(), w.dim(3).value()};
  if (a.kernel_size.empty()) a.kernel_size = kernel;
  if (a.kernel_size != kernel) c.fail("kernel_size ", a.kernel_size, " is not that of w: ", w);
  fill_pair(c, "stride", a.stride, 1, 1);
  fill_pair(c, "padding", a.padding, 0, 0);
  fill_pair(c, "dilation", a.dilation, 1, 1);
  const Dim out = w.dim(0);
  if (a.groups < 1 || decide_equal(mod(out, a.groups), 0) == false)
    c.fail("groups ", a.groups, " does not divide the ", out, " channels of w: ", w);
  c.same(mod(out, a.groups), 0, "channels of w modulo groups and 0");
  if (decide_equal(x.dim(1), w.dim(1) * Dim(a.groups)) == false)
    c.fail("channels differ, x: ", x, " and w: ", w, " with ", a.groups, " groups");
  c.same(x.dim(1), w.dim(1) * Dim(a.groups), "channels");
  if (decide_equal(c.in(2).dim(0), out) == false) c.fail("bias: ", c.in(2), " does not fit w: ", w);
  c.same(c.in(2).dim(0), out, "sizes of bias and w");
  return {
      x.with_dims({x.dim(0), out, windows(c, x.dim(2), kernel[0], a.stride[0], a.padding[0], a.dilation[0]),
                   windows(c, x.dim(3), kernel[1], a.stride[1], a.padding[1], a.dilation[1])})};
}

Literals QConv2d::reference(const Eval& c, const Attrs& a) {
  const auto x = c.in(0).to_integers(), w = c.in(1).to_integers(), bias = c.in(2).to_integers();
  const Shape &xs = c.in(0).shape(), &ys = c.out();
  const int64_t channels = xs.dim(1).value(), height = xs.dim(2).value(), width = xs.dim(3).value();
  const int64_t out = ys.dim(1).value(), part = channels / a.groups, kh = a.kernel_size[0],
                kw = a.kernel_size[1];
  std::vector<int64_t> y;
  for (int64_t n = 0; n < ys.dim(0).value(); ++n) {
    for (int64_t o = 0; o < out; ++o) {
      const int64_t first = o / (out / a.groups) * part;
      for (int64_t oy = 0; oy < ys.dim(2).value(); ++oy) {
        for (int64_t ox = 0; ox < ys.dim(3).value(); ++ox) {
          int64_t acc = bias[size_t(o)];
          for (int64_t ci = 0; ci < part; ++ci) {
            for (int64_t ky = 0; ky < kh; ++ky) {
              for (int64_t kx = 0; kx < kw; ++kx) {
                const int64_t iy = oy * a.stride[0] + ky * a.dilation[0] - a.padding[0];
                const int64_t ix = ox * a.stride[1] + kx * a.dilation[1] - a.padding[1];
                if (iy < 0 || iy >= height || ix < 0 || ix >= width) continue;
                acc += (x[size_t(((n * channels + first + ci) * height + iy) * width + ix)] - a.x_zp) *
                       (w[size_t(((o * part + ci) * kh + ky) * kw + kx)] - a.w_zp);
              }
            }
          }
          y.push_back(requantized(acc, a, xs.dtype(), o));
        }
      }
    }
  }
  return {Literal::integers(ys, y)};
}

// Images of a batch are more images; batched kernels run one example after another.
Exprs QConv2d::vmap(const Vmap& c, const Attrs& a) {
  const auto run = [&](Expr x, Expr w, Expr bias) { return make<QConv2d>(c.graph, a, {x, w, bias}); };
  if (!c.batched(1) && !c.batched(2)) {
    const Expr x = c.in(0);
    Dims folded = x.shape().dims();
    folded.erase(folded.begin());
    folded[0] = folded[0] * c.size;
    const Expr y = run(reshape(x, folded), c.in(1), c.in(2));
    Dims dims = y.shape().dims();
    dims[0] = x.dim(1);
    dims.insert(dims.begin(), c.size);
    return {reshape(y, dims)};
  }
  if (!c.size.is_static())
    throw invalid("vmap: q_conv2d with batched weights needs a known batch, not ", c.size, "; bind it first");
  Exprs examples;
  for (int64_t i = 0; i < c.size.value(); ++i) {
    const auto one = [&](int k) { return c.batched(k) ? squeeze(narrow(c.in(k), 0, i, 1), 0) : c.in(k); };
    examples.push_back(run(one(0), one(1), one(2)));
  }
  return {stack(examples, 0)};
}

double QConv2d::operations(std::span<const Shape> in, std::span<const Shape> out, const Attrs&) {
  return window_operations(out[0], in[1]);
}

std::vector<OpSample<QConv2d::Attrs>> QConv2d::samples() {
  return {{{{3, -2, 1, 0.01}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, 1}, {"i8[1,2,4,5]", "i8[3,2,3,3]", "i32[3]"}},
          {{{0, 1, -4, 0.1}, {}, {2, 1}, {0, 1}, {1, 2}, 2}, {"i8[2,2,5,4]", "i8[4,1,2,2]", "i32[4]"}},
          {{{0, 0, 0, 1}}, {"i8[1,1,1,1]", "i8[1,1,1,1]", "i32[1]"}},
          {{{5, 0, 0, 0.5, Rounding::half_away}}, {"i8[0,1,2,2]", "i8[1,1,2,2]", "i32[1]"}},
          {{{-7, 3, 2, 0.25}, {}, {}, {2, 2}}, {"i8[1,1,2,3]", "i8[2,1,1,2]", "i32[2]"}},
          {{{4, 0, 2, 1, Rounding::half_even, {0.02, 0.3, 0.05, 0.007}}, {}, {1, 2}, {1, 1}, {}, 2},
           {"i8[2,4,4,6]", "i8[4,2,3,3]", "i32[4]"}},
          {{{120, 0, 3, 0.05}, {}, {2, 2}, {1, 1}}, {"u8[1,3,5,5]", "i8[2,3,3,3]", "i32[2]"}}};
}

Expr q_conv2d(Expr x, Expr w, Expr bias, std::vector<int64_t> kernel_size, std::vector<int64_t> stride,
              std::vector<int64_t> padding, std::vector<int64_t> dilation, int64_t groups, int64_t x_zp,
              int64_t w_zp, int64_t out_zp, double mult, Rounding rounding) {
  return make<QConv2d>(*x.graph,
                       {{x_zp, w_zp, out_zp, mult, rounding},
                        std::move(kernel_size),
                        std::move(stride),
                        std::move(padding),
                        std::move(dilation),
                        groups},
                       {x, w, bias});
}

}  // namespace rlx::ops
