// Running products and extremes, windows, samples and random words.
#include <algorithm>
#include <numeric>

#include "rlx/ir/inline.h"
#include "rlx/ir/interpreter.h"
#include "rlx/lang/control.h"
#include "rlx/lang/operators.h"
#include "rlx/onnx/write/lower.h"
#include "rlx/ops/shape/iota.h"

namespace rlx::onnx {
namespace {

// The axis in front, where loops run along it, and back.
std::vector<int> front_order(int rank, int axis) {
  std::vector<int> perm{axis};
  for (int i = 0; i < rank; ++i) {
    if (i != axis) perm.push_back(i);
  }
  return perm;
}

Tensor to_front(const Tensor& x, int axis) { return x.transpose(front_order(x.rank(), axis)); }

Tensor from_front(const Tensor& x, int axis) {
  const std::vector<int> order = front_order(x.rank(), axis);
  std::vector<int> back(order.size());
  for (size_t i = 0; i < order.size(); ++i) back[size_t(order[i])] = int(i);
  return x.transpose(back);
}

int from_start(int axis, int rank) { return axis < 0 ? axis + rank : axis; }

Tensor first_slice(const Tensor& x, bool last) {
  const Dim at = last ? x.dim(0) - 1 : Dim(0);
  return x.narrow(0, at, 1).squeeze(0);
}

Tensors cumprod(const ir::Node& n, const Tensors& in) {
  const auto& a = n.as<ops::Cumprod>();
  const int axis = from_start(a.axis, in[0].rank());
  const Tensor x = to_front(in[0], axis);
  const Dims slice(x.shape().dims().begin() + 1, x.shape().dims().end());
  const Tensor one = ir::full(x.graph(), Shape(x.dtype(), slice), 1);
  const bool exclusive = a.exclusive;
  const Tensors r = scan({one}, {.xs = {x}, .reverse = a.reverse}, [&](Tensor so_far, Tensor v) {
    const Tensor next = so_far * v;
    return Tensors{next, exclusive ? so_far : next};
  });
  return {from_front(r[1], axis)};
}

// The value met first stays; NaN wins from where it stands.
template <class Op, bool kLargest>
Tensors running_extreme(const ir::Node& n, const Tensors& in) {
  const auto& a = n.as<Op>();
  const int axis = from_start(a.axis, in[0].rank());
  const Tensor x = to_front(in[0], axis);
  if (x.dim(0) == Dim(0)) return {in[0], in[0].cast(n.shapes[1].dtype())};
  const Dims slice(x.shape().dims().begin() + 1, x.shape().dims().end());
  const DType index = n.shapes[1].dtype();
  const Tensor numbers = ops::iota(x.graph(), Shape(index, {x.dim(0)}), 0);
  const Tensor place = first_slice(numbers, a.reverse).expand(slice);
  const Tensors r = scan({first_slice(x, a.reverse), place}, {.xs = {x, numbers}, .reverse = a.reverse},
                         [&](Tensor best, Tensor at, Tensor v, Tensor number) {
                           const Tensor found = rlx::logical_and(v.ne(v), best.eq(best));
                           const Tensor better = rlx::logical_or(kLargest ? v > best : v < best, found);
                           const Tensor value = rlx::where(better, v, best);
                           const Tensor where = rlx::where(better, number, at);
                           return Tensors{value, where, value, where};
                         });
  return {from_front(r[2], axis), from_front(r[3], axis)};
}

Tensors linear_recurrence(const ir::Node& n, const Tensors& in) {
  const auto& a = n.as<ops::LinearRecurrence>();
  const int axis = from_start(a.axis, in[0].rank());
  const Tensor factor = to_front(in[0], axis), added = to_front(in[1], axis);
  const Dims slice(added.shape().dims().begin() + 1, added.shape().dims().end());
  const Tensor zero = ir::full(added.graph(), Shape(added.dtype(), slice), 0);
  const Tensors r =
      scan({zero}, {.xs = {factor, added}, .reverse = a.reverse}, [](Tensor y, Tensor f, Tensor b) {
        const Tensor next = f * y + b;
        return Tensors{next, next};
      });
  return {from_front(r[1], axis)};
}

// Axis by axis: tap k of every position o is added at o stride + k.
Tensors windows_sum(const ir::Node& n, const Tensors& in) {
  const auto& a = n.as<ops::WindowsSum>();
  const int axes = int(a.size.size()), lead = in[0].rank() - 2 * axes;
  Tensor x = in[0];
  for (int i = axes - 1; i >= 0; --i) {
    const int64_t stride = a.stride.empty() ? 1 : a.stride[size_t(i)];
    const int64_t padding = a.padding.empty() ? 0 : a.padding[size_t(i)];
    const int64_t taps = x.dim(-1).value();
    const int axis = lead + i;
    const Dim spread = x.dim(axis) * Dim(stride);
    const Dim total = max(a.size[size_t(i)] + padding, spread + taps);
    Tensor sum;
    for (int64_t k = 0; k < taps; ++k) {
      Tensor part = x.narrow(-1, k, 1).squeeze(-1);
      if (stride > 1) {
        Dims high(size_t(part.rank()) + 1, 0), joined = part.shape().dims();
        high[size_t(axis) + 1] = stride - 1;
        joined[size_t(axis)] = spread;
        part = part.unsqueeze(axis + 1).pad(Dims(high.size(), 0), high).reshape(joined);
      }
      Dims low(size_t(part.rank()), 0), high = low;
      low[size_t(axis)] = k, high[size_t(axis)] = total - spread - k;
      part = part.pad(low, high);
      sum = sum.is_empty() ? part : sum + part;
    }
    if (sum.is_empty()) throw invalid("onnx: windows without a tap have no counterpart");
    x = sum.narrow(axis, padding, a.size[size_t(i)]);
  }
  return {x};
}

// Each axis is a product with the matrix of what resize makes of the unit vectors.
Tensors resize_backward(const ir::Node& n, const Tensors& in) {
  const auto& a = n.as<ops::ResizeBackward>();
  Tensor dy = in[0];
  const int axes = int(a.size.size()), first = dy.rank() - axes;
  for (int i = 0; i < axes; ++i) {
    const Dim small = a.size[size_t(i)], large = dy.dim(first + i);
    if (!small.is_static() || !large.is_static())
      throw invalid("onnx: resize_backward of sizes that are symbols has no counterpart");
    ir::Graph units("units");
    Literal eye = Literal::zeros(Shape(DType::f64, {small, small}));
    for (int64_t k = 0; k < small.value(); ++k)
      eye.mutable_data<double>()[size_t(k * (small.value() + 1))] = 1;
    const Tensor spread = rlx::resize(Tensor(ir::Expr{&units, units.constant(eye)}),
                                      {.mode = a.mode, .size = {large}, .align_corners = a.align_corners});
    units.set_outputs({spread});
    const Literal weights = ir::interpret(units, Literals{})[0].cast(dy.dtype());
    std::vector<int> swap(size_t(dy.rank()));
    std::iota(swap.begin(), swap.end(), 0);
    std::swap(swap[size_t(first + i)], swap.back());
    const Tensor w = Tensor(ir::Expr{&dy.graph(), dy.graph().constant(weights)});
    dy = rlx::matmul(dy.transpose(swap).unsqueeze(-2), w.t()).squeeze(-2).transpose(swap);
  }
  return {dy};
}

Tensors custom_fn(const ir::Node& n, const Tensors& in) {
  ir::Exprs leaves;
  for (const Tensor& t : in) leaves.push_back(t);
  const ir::Exprs results = ir::inline_graph(in[0].graph(), *n.as<ops::CustomFn>().fwd_body, leaves);
  return {results.begin(), results.end()};
}

// ---- Philox4x32-10 in i64, whose words are all below 2^32.

constexpr int64_t kWord = 0xffffffff;

Tensor number(const Tensor& like, int64_t v) {
  return ir::Expr{&like.graph(), like.graph().constant(Literal::of<int64_t>({}, {v}))};
}

Tensor low_word(const Tensor& x) { return rlx::bitwise_and(x, number(x, kWord)); }
Tensor high_word(const Tensor& x) { return low_word(rlx::shift_right(x, number(x, 32))); }

// The two words of x m, by the halves of m, so that no product reaches 2^63.
std::pair<Tensor, Tensor> product_words(const Tensor& x, int64_t m) {
  const Tensor low = x * number(x, m & 0xffff), high = x * number(x, m >> 16), half = number(x, 16);
  const Tensor middle = high + rlx::shift_right(low, half);
  const Tensor bottom = rlx::bitwise_and(low, number(x, 0xffff));
  const Tensor raised = rlx::bitwise_and(middle, number(x, 0xffff)) * number(x, 0x10000);
  return {rlx::shift_right(middle, half), raised + bottom};
}

Tensors philox_round(const Tensors& c) {
  const auto [high0, low0] = product_words(c[0], 0xD2511F53);
  const auto [high1, low1] = product_words(c[2], 0xCD9E8D57);
  const Tensor k0 = low_word(c[4] + number(c[4], 0x9E3779B9)), k1 = low_word(c[5] + number(c[5], 0xBB67AE85));
  return {rlx::bitwise_xor(rlx::bitwise_xor(high1, c[1]), c[4]),
          low1,
          rlx::bitwise_xor(rlx::bitwise_xor(high0, c[3]), c[5]),
          low0,
          k0,
          k1};
}

Tensors random_bits(const ir::Node& n, const Tensors& in) {
  const auto& a = n.as<ops::RandomBits>();
  const Dim each = product(a.shape);
  const Dims streams(n.shapes[0].dims().begin(), n.shapes[0].dims().end() - ptrdiff_t(a.shape.size()));
  Dims all = streams;
  all.push_back(each);
  const auto stream = [&](const Tensor& t) {
    return t.cast(DType::i64).expand(streams).unsqueeze(-1).expand(all);
  };
  const Tensor key = stream(in[0]), counter = stream(in[1]);
  const Tensor place = ops::iota(in[0].graph(), Shape(DType::i64, all), int(all.size()) - 1);
  const Tensor block = rlx::shift_right(place, number(place, 2));
  const Tensors words = scan({low_word(block), high_word(block), low_word(counter), high_word(counter),
                              low_word(key), high_word(key)},
                             {.length = Dim(10)}, [](const Tensors& c) { return philox_round(c); });
  const Tensor which = rlx::bitwise_and(place, number(place, 3));
  Tensor y = words[3];
  for (int i = 2; i >= 0; --i) y = rlx::where(which.eq(i), words[size_t(i)], y);
  return {y.cast(DType::u32).reshape(n.shapes[0].dims())};
}

}  // namespace

const std::map<std::string_view, LowerNode>& sequence_lowerings() {
  static const std::map<std::string_view, LowerNode> kLowerings{
      {"cummax", running_extreme<ops::Cummax, true>},
      {"cummin", running_extreme<ops::Cummin, false>},
      {"cumprod", cumprod},
      {"custom_fn", custom_fn},
      {"linear_recurrence", linear_recurrence},
      {"random_bits", random_bits},
      {"resize_backward", resize_backward},
      {"windows_sum", windows_sum},
  };
  return kLowerings;
}

}  // namespace rlx::onnx
