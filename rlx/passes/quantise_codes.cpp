#include "rlx/passes/quantise_codes.h"

#include <algorithm>
#include <cmath>

#include "rlx/ops/control/fused.h"
#include "rlx/ops/conv/conv_nd.h"
#include "rlx/ops/conv/pool.h"
#include "rlx/ops/elementwise/activation.h"
#include "rlx/ops/elementwise/binary.h"
#include "rlx/ops/elementwise/cast.h"
#include "rlx/ops/elementwise/clamp.h"
#include "rlx/ops/elementwise/math.h"
#include "rlx/ops/linalg/matmul.h"
#include "rlx/ops/quant/quantize.h"
#include "rlx/ops/shape/reshape.h"
#include "rlx/ops/shape/transpose.h"
#include "rlx/passes/ask.h"
#include "rlx/passes/known_number.h"
#include "rlx/passes/quantise_forms.h"

namespace rlx::passes {
namespace {

using ir::Expr;

const std::vector<int> kToLast = {0, 2, 3, 1}, kToFirst = {0, 3, 1, 2};  // where channels go

bool is_product(const ir::Node& n) { return n.is<ops::Conv2d>() || n.is<ops::Matmul>(); }

// ---- a product and what is done to its channels ----

/// v -> v * by, or v + by; one number, or one a channel, as f64 [] or [channels].
struct ChannelStep {
  bool multiplies = false;
  Expr by;
};

struct ScaledProduct {
  ir::Value product;
  std::vector<ChannelStep> steps;  // the last comes first
  bool relu = false;
};

int channel_axis(const ir::Node& product) {
  return product.is<ops::Conv2d>() ? 1 : product.shapes[0].rank() - 1;
}

// v, which broadcasts against `type`, as one number or one for each position of `axis`.
std::optional<Expr> per_channel(ir::Graph& g, ir::Value v, const Shape& type, int axis) {
  const Shape s = g.shape(v);
  const Dims dims = s.dims();
  if (s.rank() > type.rank()) return std::nullopt;
  bool one = true;
  for (int i = 0; i < s.rank(); ++i) {
    if (dims[size_t(i)] == Dim(1)) continue;
    if (i + type.rank() - s.rank() != axis || dims[size_t(i)] != type.dim(axis)) return std::nullopt;
    one = false;
  }
  const Expr flat = ops::reshape({&g, v}, one ? Dims{} : Dims{type.dim(axis)});
  return flat.dtype() == DType::f64 ? flat : ops::cast(flat, DType::f64);
}

// Follows sums and products with channels down to the product that they begin with.
std::optional<ScaledProduct> scaled_product(ir::Graph& g, ir::Value v) {
  ScaledProduct out;
  struct Found {
    ir::Value other;
    bool multiplies, inverse;
  };
  std::vector<Found> found;
  for (constexpr int kMostSteps = 16; int(found.size()) < kMostSteps;) {
    const ir::Node& n = g.node(v);
    if (is_product(n)) break;
    if (g.use_count(v) > 1) return std::nullopt;
    if (n.is<ops::Relu>() && found.empty() && !out.relu) {
      out.relu = true;
      v = n.inputs[0];
      continue;
    }
    if (n.is<ops::Cast>() && is_float(n.shapes[0].dtype()) && is_float(g.shape(n.inputs[0]).dtype())) {
      v = n.inputs[0];
      continue;
    }
    const bool add = n.is<ops::Add>(), sub = n.is<ops::Sub>(), mul = n.is<ops::Mul>(), div = n.is<ops::Div>();
    if (!add && !sub && !mul && !div) return std::nullopt;
    const bool wide = g.shape(n.inputs[0]).dims() == n.shapes[0].dims() &&
                      (sub || div || g.shape(n.inputs[1]).dims() != n.shapes[0].dims());
    const size_t side = wide ? 0 : 1;
    if (!wide && (sub || div || g.shape(n.inputs[1]).dims() != n.shapes[0].dims())) return std::nullopt;
    found.push_back({n.inputs[1 - side], mul || div, sub || div});
    v = n.inputs[side];
  }
  const ir::Node& product = g.node(v);
  if (!is_product(product)) return std::nullopt;
  out.product = v;
  const Shape type = product.shapes[0];
  const int axis = channel_axis(product);
  for (const Found& f : found) {
    auto by = per_channel(g, f.other, type, axis);
    if (!by) return std::nullopt;
    if (f.inverse) by = f.multiplies ? ops::div(ops::scalar_like(*by, 1), *by) : ops::neg(*by);
    out.steps.push_back({f.multiplies, *by});
  }
  return out;
}

// ---- the operands ----

struct CodeOperands {
  Dequantised x, w;
  ir::Value w_codes;  // as stored
  bool transposed = false;
  Expr unit;  // scale of x times scale of w, [] or [channels]
};

// The largest magnitude of a code less its zero point.
double reach(DType codes, int64_t zero) {
  const double low = codes == DType::i8 ? -128 : 0;
  return std::max(std::fabs(low - double(zero)), std::fabs(low + 255 - double(zero)));
}

// Weights of a matrix product may stand behind a transpose.
std::optional<Dequantised> weight_codes(ir::Graph& g, ir::Value v, bool& transposed) {
  const ir::Node& n = g.node(v);
  if (n.is<ops::Transpose>() && n.shapes[0].rank() == 2 && n.as<ops::Transpose>().perm == std::vector{1, 0}) {
    transposed = true;
    return dequantised(g, n.inputs[0]);
  }
  return dequantised(g, v);
}

std::optional<CodeOperands> code_operands(ir::Graph& g, const ir::Node& n, const ir::Values& inputs) {
  const bool conv = n.is<ops::Conv2d>();
  CodeOperands o;
  const auto x = dequantised(g, inputs[0]);
  const auto w = conv ? dequantised(g, inputs[1]) : weight_codes(g, inputs[1], o.transposed);
  if (!x || !w || !is_fixed(g, w->codes)) return std::nullopt;
  const Shape xs = g.shape(inputs[0]), ws = g.shape(w->codes), ys = n.shapes[0];
  if (!ws.is_static() || xs.rank() < 2 || (!conv && ws.rank() != 2)) return std::nullopt;
  const Dim channels = ys.dim(channel_axis(n));
  if (!channels.is_static()) return std::nullopt;
  // Sums must stay exact.
  const double terms = double(ws.elements()) / double(std::max<int64_t>(1, channels.value()));
  if (terms * reach(g.shape(x->codes).dtype(), x->zero) * reach(ws.dtype(), w->zero) >= 2147483648.0)
    return std::nullopt;
  o.x = *x, o.w = *w, o.w_codes = w->codes;
  o.unit = {&g, g.constant(Literal::scalar(DType::f64, 1))};
  if (x->scale) {
    if (g.shape(*x->scale).num_elements() != Dim(1)) return std::nullopt;
    o.unit = ops::mul(o.unit, *per_channel(g, *x->scale, xs, 0));
  }
  if (w->scale) {
    const int axis = conv || o.transposed ? 0 : ws.rank() - 1;
    const auto scale = per_channel(g, *w->scale, ws, axis);
    if (!scale) return std::nullopt;
    o.unit = ops::mul(o.unit, *scale);
  }
  return o;
}

// ---- emission ----

Expr centred_codes(Expr codes, int64_t zero) {
  const Expr x = ops::cast(codes, DType::f32);
  return zero == 0 ? x : ops::sub(x, ops::scalar_like(x, double(zero)));
}

/// v = sum * mult + offset to codes of `to`, or without it to f32.
Expr result_of(Expr v, const Quantised* to, bool relu) {
  if (to == nullptr) return relu ? ops::relu(v) : v;
  Expr y = ops::round(v);
  if (to->zero != 0) y = ops::add(y, ops::scalar_like(y, double(to->zero)));
  const double least = relu ? std::max(to->least, double(to->zero)) : to->least;
  return ops::cast(ops::clamp(y, std::min(least, to->most), to->most), to->dtype);
}

// The body on x (channels last for a convolution), w, mult and offset.
ir::Graph body_of(ir::Graph& g, const ir::Node& product, const CodeOperands& o, const Shape& x,
                  const Quantised* to, bool relu) {
  ir::Graph body{std::string(kCodesBody)};
  body.assume_sizes_of(g);
  const Shape channels(DType::f32, {product.shapes[0].dim(channel_axis(product))});
  const auto input = [&](const char* name, const Shape& s) { return Expr{&body, body.input(name, s)}; };
  const Expr codes = input("x", x), weights = input("w", g.shape(o.w_codes)), mult = input("mult", channels),
             offset = input("offset", channels);
  const Expr a = centred_codes(codes, o.x.zero), w = centred_codes(weights, o.w.zero);
  Expr sum;
  if (product.is<ops::Conv2d>()) {
    const auto& c = product.as<ops::Conv2d>();
    sum = ops::transpose(
        ops::conv2d(ops::transpose(a, kToFirst), w, c.kernel_size, c.stride, c.padding, c.dilation, c.groups),
        kToLast);
  } else {
    sum = ops::matmul(a, o.transposed ? ops::transpose(w, {1, 0}) : w);
  }
  body.set_outputs({result_of(ops::add(ops::mul(sum, mult), offset), to, relu)});
  return body;
}

// The product n, whose operands are `inputs` of g, and then the steps.
std::optional<ir::Values> product_of_codes(ir::Graph& g, const ir::Node& n, const ir::Values& inputs,
                                           const ScaledProduct& p, const Quantised* to) {
  const auto o = code_operands(g, n, inputs);
  if (!o) return std::nullopt;
  Expr mult = o->unit, offset{&g, g.constant(Literal::scalar(DType::f64, 0))};
  for (size_t i = p.steps.size(); i-- > 0;) {
    const ChannelStep& s = p.steps[i];
    offset = s.multiplies ? ops::mul(offset, s.by) : ops::add(offset, s.by);
    if (s.multiplies) mult = ops::mul(mult, s.by);
  }
  if (to != nullptr) {
    mult = ops::div(mult, ops::scalar_like(mult, to->scale));
    offset = ops::div(offset, ops::scalar_like(offset, to->scale));
  }
  const Dim channels = n.shapes[0].dim(channel_axis(n));
  const auto spread = [&](Expr v) {  // one for each channel, f32
    if (v.rank() == 0) v = ops::mul(v, ir::full(g, Shape(DType::f64, {channels}), 1));
    return ops::cast(v, DType::f32);
  };
  const bool conv = n.is<ops::Conv2d>();
  const Expr codes{&g, o->x.codes}, in = conv ? ops::transpose(codes, kToLast) : codes;
  const ir::Exprs operands = {in, {&g, o->w_codes}, spread(mult), spread(offset)};
  const Expr y = ops::fused(g, operands, body_of(g, n, *o, in.shape(), to, p.relu))[0];
  return ir::Values{conv ? ops::transpose(y, kToFirst) : y};
}

// ---- values that only move ----

bool is_image_maximum(const ir::Node& n) {
  return n.is<ops::Pool>() && n.as<ops::Pool>().kind == ops::ReduceOp::max &&
         n.as<ops::Pool>().kernel_size.size() == 2 && n.shapes[0].rank() == 4;
}

// The maximum over windows of codes with channels first, computed with channels last.
Expr maximum_of_codes(ir::Graph& g, ir::Value codes, const ops::Pool::Attrs& attrs) {
  const Expr in = ops::transpose({&g, codes}, kToLast);
  ir::Graph body{std::string(kCodesBody)};
  body.assume_sizes_of(g);
  const Expr x{&body, body.input("x", in.shape())};
  const Expr y =
      ops::pool(ops::transpose(x, kToFirst), attrs.kind, attrs.kernel_size, attrs.stride, attrs.padding);
  body.set_outputs({ops::transpose(y, kToLast)});
  return ops::transpose(ops::fused(g, {in}, std::move(body))[0], kToFirst);
}

std::optional<ir::Values> moved_codes(ir::Graph& g, const Quantised& q) {
  const auto same = [&](ir::Value v) -> std::optional<ir::Value> {
    const auto d = dequantised(g, v);
    if (!d || d->zero != q.zero || g.shape(d->codes).dtype() != q.dtype || !q.whole_range())
      return std::nullopt;
    const auto scale = d->scale ? known_number(g, *d->scale) : std::optional(1.0);
    return scale && float(*scale) == float(q.scale) ? std::optional(d->codes) : std::nullopt;
  };
  if (const auto codes = same(q.x)) return ir::Values{*codes};
  const ir::Node& n = g.node(q.x);
  if (n.is<ops::Reshape>() || n.is<ops::Transpose>()) {
    const auto codes = same(n.inputs[0]);
    if (!codes) return std::nullopt;
    return ir::Values{g.value(g.append(*n.op, n.attrs, ir::Values{*codes}))};
  }
  if (n.is<ops::Relu>() && double(q.zero) == q.least) {
    if (const auto codes = same(n.inputs[0])) return ir::Values{*codes};
    return std::nullopt;
  }
  if (!is_image_maximum(n)) return std::nullopt;
  const auto codes = same(n.inputs[0]);
  return codes ? std::optional(ir::Values{maximum_of_codes(g, *codes, n.as<ops::Pool>())}) : std::nullopt;
}

// What stands behind a transpose that brings the channels of an image to the front.
std::optional<ir::Value> behind(const ir::Graph& g, ir::Value v, const std::vector<int>& perm) {
  const ir::Node& n = g.node(v);
  if (!n.is<ops::Transpose>() || n.as<ops::Transpose>().perm != perm) return std::nullopt;
  return n.inputs[0];
}

// ---- sums of two branches ----

std::optional<ir::Values> sum_of_codes(ir::Graph& g, const Quantised& q) {
  ir::Value v = q.x;
  const bool relu = g.node(v).is<ops::Relu>();
  if (relu) v = g.node(v).inputs[0];
  if (!g.node(v).is<ops::Add>()) return std::nullopt;
  const ir::Values terms = g.node(v).inputs;
  const Dims dims = g.shape(q.x).dims();
  Dequantised d[2];
  double mult[2];
  bool last = false;  // channels of one of them are
  for (size_t i = 0; i < 2; ++i) {
    const auto term = dequantised(g, terms[i]);
    if (!term || g.shape(term->codes).dims() != dims) return std::nullopt;
    const auto scale = term->scale ? known_number(g, *term->scale) : std::optional(1.0);
    if (!scale) return std::nullopt;
    d[i] = *term, mult[i] = *scale / q.scale;
    last = last || behind(g, term->codes, kToFirst).has_value();
  }
  ir::Graph body{std::string(kCodesBody)};
  body.assume_sizes_of(g);
  ir::Exprs in, parts;
  for (size_t i = 0; i < 2; ++i) {
    const Expr codes{&g, d[i].codes};
    in.push_back(last ? ops::transpose(codes, kToLast) : codes);
    const Expr x = centred_codes({&body, body.input(i == 0 ? "a" : "b", in[i].shape())}, d[i].zero);
    parts.push_back(ops::mul(x, ops::scalar_like(x, mult[i])));
  }
  body.set_outputs({result_of(ops::add(parts[0], parts[1]), &q, relu)});
  const Expr y = ops::fused(g, in, std::move(body))[0];
  return ir::Values{last ? ops::transpose(y, kToFirst) : y};
}

// ---- channels stay last ----

//   transpose(transpose(x))            =>  x
//   f(transpose(a), transpose(b), c)   =>  transpose(f(a, b, c)), c a number or one for each channel
std::optional<ir::Values> channels_last(ir::Cloner& copy, const ir::Node& n) {
  ir::Graph& g = copy.to();
  if (g.name() == kCodesBody || n.shapes.size() != 1 || n.shapes[0].rank() != 4) return std::nullopt;
  const ir::Values operands = copy.at(n.inputs);
  if (n.is<ops::Transpose>()) {
    if (n.as<ops::Transpose>().perm != kToLast) return std::nullopt;
    const auto x = behind(g, operands[0], kToFirst);
    return x ? std::optional(ir::Values{*x}) : std::nullopt;
  }
  if (!n.op->traits.elementwise && !n.is<ops::Cast>()) return std::nullopt;
  bool any = false;
  for (const ir::Value v : operands) {
    if (behind(g, v, kToFirst)) {
      any = any || g.shape(v).dims() == n.shapes[0].dims();
      continue;
    }
    const Shape& s = g.shape(v);
    for (int i = 0; i < s.rank(); ++i) {
      if (s.dim(i) != Dim(1) && i + 4 - s.rank() != 1) return std::nullopt;
    }
  }
  if (!any) return std::nullopt;
  ir::Values moved;
  for (const ir::Value v : operands) {
    const auto x = behind(g, v, kToFirst);
    const Shape s = g.shape(v);
    moved.push_back(x ? *x : s.rank() == 0 ? v : ir::Value(ops::reshape({&g, v}, {s.num_elements()})));
  }
  const Expr y{&g, g.value(g.append(*n.op, n.attrs, moved))};
  return ir::Values{ops::transpose(y, kToFirst)};
}

bool has_codes(const ir::Graph& g) {
  for (const ir::Node* n : g.nodes()) {
    if (n->is<ops::Dequantize>() || n->is<ops::DequantizePerChannel>()) return true;
    if (!n->is<ops::Cast>() || !is_float(n->shapes[0].dtype())) continue;
    const DType from = g.shape(n->inputs[0]).dtype();
    if (from == DType::u8 || from == DType::i8) return true;
  }
  return false;
}

std::optional<ir::Values> rounded_result(ir::Cloner& copy, const ir::Node& n) {
  ir::Graph& g = copy.to();
  if (g.name() == kCodesBody) return std::nullopt;
  // A maximum that is written on the codes of a convolution.
  const DType type = n.shapes[0].dtype();
  if (is_image_maximum(n) && (type == DType::u8 || type == DType::i8) &&
      behind(g, copy.at(n.inputs[0]), kToFirst)) {
    const auto attrs = n.as<ops::Pool>();
    return ir::Values{maximum_of_codes(g, copy.at(n.inputs[0]), attrs)};
  }
  const auto q = quantised(g, n, copy.at(n.inputs));
  if (!q) return std::nullopt;
  const ir::OriginScope scope(g, ir::noted_origin(n, "on codes"));
  if (auto y = moved_codes(g, *q)) return y;
  if (auto y = sum_of_codes(g, *q)) return y;
  const auto p = scaled_product(g, q->x);
  if (!p) return std::nullopt;
  const ir::Node& product = g.node(p->product);
  return product_of_codes(g, product, product.inputs, *p, &*q);
}

// f64 keeps sums that f32 would round.
std::optional<ir::Values> real_result(ir::Cloner& copy, const ir::Node& n) {
  ir::Graph& g = copy.to();
  if (g.name() == kCodesBody || !is_product(n) || n.shapes[0].dtype() != DType::f32) return std::nullopt;
  const ir::OriginScope scope(g, ir::noted_origin(n, "on codes"));
  return product_of_codes(g, n, copy.at(n.inputs), {}, nullptr);
}

// Asked with a small body: sizes of the graph at hand may not be known yet.
bool runs_codes(const ir::Target& target) {
  ir::Graph g;
  const Expr x{&g, g.input("x", Shape(DType::i8, {1, 4, 5, 5}))},
      w{&g, g.param("w", Shape(DType::i8, {4, 4, 3, 3}))};
  g.set_outputs({ops::conv2d(ops::dequantize(x, 1, 0), ops::dequantize(w, 1, 0))});
  const ir::Rewritten joined = join_codes(g);
  for (const ir::Node* n : joined.graph.nodes()) {
    if (n->is<ops::Fused>()) return bool(runs(target, joined.graph, *n));
  }
  return false;
}

}  // namespace

ir::Rewritten join_codes(ir::Graph graph, const ir::Target* target) {
  if (!has_codes(graph) || (target != nullptr && !runs_codes(*target))) return {std::move(graph), 0};
  const auto without_dead = [](ir::Rewritten r) {
    r.graph.erase_dead();
    return r;
  };
  const ir::Rewritten rounded = without_dead(ir::rewrite(graph, rounded_result));
  const ir::Rewritten real = without_dead(ir::rewrite(rounded.graph, real_result));
  ir::Rewritten last = without_dead(ir::rewrite(real.graph, channels_last));
  last.changes += rounded.changes + real.changes;
  return last;
}

}  // namespace rlx::passes
