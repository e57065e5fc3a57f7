#include "rlx/ops/quant/quantize.h"

#include <cmath>

#include "rlx/ops/elementwise/binary.h"
#include "rlx/ops/elementwise/cast.h"
#include "rlx/ops/elementwise/math.h"

namespace rlx::ops {
namespace {

void check_scale(const Infer& c, double scale, int64_t zero_point) {
  if (!(scale > 0) || !std::isfinite(scale)) c.fail("scale ", scale, " must be positive and finite");
  if (zero_point < -128 || zero_point > 127) c.fail("zero point ", zero_point, " is no i8 code; -128 .. 127");
}

void check_channels(Infer& c, ChannelScales& a) {
  a.axis = c.axis(a.axis, 0);
  const auto count = int64_t(a.scales.size());
  if (int64_t(a.zero_points.size()) != count)
    c.fail(count, " scales and ", a.zero_points.size(), " zero points; each channel has one of each");
  const Dim channels = c.in(0).dim(a.axis);
  if (decide_equal(channels, count) == false)
    c.fail(count, " scales for ", channels, " channels on axis ", a.axis, " of ", c.operand_name(0), ": ",
           c.in(0));
  c.same(channels, count, "channels and scales");
  for (size_t i = 0; i < a.scales.size(); ++i) check_scale(c, a.scales[i], a.zero_points[i]);
}

void require_codes(const Infer& c) {
  if (c.in(0).dtype() != DType::i8) c.fail("q: ", c.in(0), " has dtype ", c.in(0).dtype(), "; codes are i8");
}

// Scales and zero points as f64 tensors that broadcast against x. In f64 so that a scale is not rounded.
struct Steps {
  Expr scale, zero;
};
Steps steps_of(Graph& g, const TensorScale& a, int) {
  const auto number = [&](double v) { return Expr{&g, g.constant(Literal::scalar(DType::f64, v))}; };
  return {number(a.scale), number(double(a.zero_point))};
}
Steps steps_of(Graph& g, const ChannelScales& a, int rank) {
  const Dims dims = channel_dims(rank, a.axis, int64_t(a.scales.size()));
  const std::vector<double> zeros(a.zero_points.begin(), a.zero_points.end());
  return {{&g, g.constant(Literal::of<double>(dims, a.scales))},
          {&g, g.constant(Literal::of<double>(dims, zeros))}};
}

template <class Attrs>
Exprs emit_quantize(const Lower& c, const Attrs& a) {
  const Expr x = c.in(0);
  const auto [scale, zero] = steps_of(c.graph, a, x.rank());
  return {cast(round(cast(x, DType::f64) / scale) + zero, DType::i8)};  // the cast saturates
}

template <class Attrs>
Exprs emit_dequantize(const Lower& c, const Attrs& a) {
  const Expr q = c.in(0);
  const auto [scale, zero] = steps_of(c.graph, a, q.rank());
  return {cast((cast(q, DType::f64) - zero) * scale, DType::f32)};
}

ChannelScales moved_axis(ChannelScales a) {
  ++a.axis;
  return a;
}

}  // namespace

Dims channel_dims(int rank, int axis, Dim n) {
  Dims dims(size_t(rank), Dim(1));
  dims[size_t(axis)] = n;
  return dims;
}

Shapes Quantize::infer(Infer& c, Attrs& a) {
  c.require_float(0);
  check_scale(c, a.scale, a.zero_point);
  return {c.in(0).with_dtype(DType::i8)};
}
Exprs Quantize::decompose(const Lower& c, const Attrs& a) { return emit_quantize(c, a); }
std::vector<OpSample<TensorScale>> Quantize::samples() {
  return {{{0.07, -5}, {"f32[4,9]"}}, {{0.5, 0}, {"f64[3]"}}, {{1e-3, 127}, {"f32[2]"}},
          {{1, 0}, {"f32[0,2]"}},     {{0.1, 3}, {"f16[1]"}}, {{2, -128}, {"bf16[]"}}};
}

Shapes QuantizePerChannel::infer(Infer& c, Attrs& a) {
  c.require_float(0);
  check_channels(c, a);
  return {c.in(0).with_dtype(DType::i8)};
}
Exprs QuantizePerChannel::decompose(const Lower& c, const Attrs& a) { return emit_quantize(c, a); }
Exprs QuantizePerChannel::vmap(const Vmap& c, const Attrs& a) {
  return {make<QuantizePerChannel>(c.graph, moved_axis(a), {c.in(0)})};
}
std::vector<OpSample<ChannelScales>> QuantizePerChannel::samples() {
  return {{{0, {0.1, 0.2}, {0, 3}}, {"f32[2,3]"}},
          {{-1, {0.1, 1, 0.05}, {1, 2, -3}}, {"f64[2,3]"}},
          {{1, {0.5, 0.25}, {0, 0}}, {"f32[3,2,2]"}},
          {{0, {1}, {-128}}, {"f16[1]"}},
          {{0, {}, {}}, {"f32[0,2]"}}};
}

Shapes Dequantize::infer(Infer& c, Attrs& a) {
  require_codes(c);
  check_scale(c, a.scale, a.zero_point);
  return {c.in(0).with_dtype(DType::f32)};
}
Exprs Dequantize::decompose(const Lower& c, const Attrs& a) { return emit_dequantize(c, a); }
std::vector<OpSample<TensorScale>> Dequantize::samples() {
  return {{{0.07, -5}, {"i8[4,9]"}},
          {{0.5, 0}, {"i8[3]"}},
          {{1e-3, 127}, {"i8[1]"}},
          {{1, 0}, {"i8[0,2]"}},
          {{2, -128}, {"i8[]"}}};
}

Shapes DequantizePerChannel::infer(Infer& c, Attrs& a) {
  require_codes(c);
  check_channels(c, a);
  return {c.in(0).with_dtype(DType::f32)};
}
Exprs DequantizePerChannel::decompose(const Lower& c, const Attrs& a) { return emit_dequantize(c, a); }
Exprs DequantizePerChannel::vmap(const Vmap& c, const Attrs& a) {
  return {make<DequantizePerChannel>(c.graph, moved_axis(a), {c.in(0)})};
}
std::vector<OpSample<ChannelScales>> DequantizePerChannel::samples() {
  return {{{0, {0.1, 0.2}, {0, 3}}, {"i8[2,3]"}},
          {{-1, {0.1, 1, 0.05}, {1, 2, -3}}, {"i8[2,3]"}},
          {{1, {0.5, 0.25}, {0, 0}}, {"i8[3,2,2]"}},
          {{0, {1}, {-128}}, {"i8[1]"}},
          {{0, {}, {}}, {"i8[0,2]"}}};
}

Expr quantize(Expr x, double scale, int64_t zero_point) {
  return make<Quantize>(*x.graph, {scale, zero_point}, {x});
}
Expr quantize_per_channel(Expr x, int axis, std::vector<double> scales, std::vector<int64_t> zero_points) {
  return make<QuantizePerChannel>(*x.graph, {axis, std::move(scales), std::move(zero_points)}, {x});
}
Expr dequantize(Expr q, double scale, int64_t zero_point) {
  return make<Dequantize>(*q.graph, {scale, zero_point}, {q});
}
Expr dequantize_per_channel(Expr q, int axis, std::vector<double> scales, std::vector<int64_t> zero_points) {
  return make<DequantizePerChannel>(*q.graph, {axis, std::move(scales), std::move(zero_points)}, {q});
}

}  // namespace rlx::ops
