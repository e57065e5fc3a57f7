#include "rlx/ops/random/random.h"

#include <cmath>
#include <numbers>

#include "rlx/base/philox.h"
#include "rlx/ops/elementwise/binary.h"
#include "rlx/ops/elementwise/cast.h"
#include "rlx/ops/elementwise/logical.h"
#include "rlx/ops/elementwise/math.h"
#include "rlx/ops/shape/narrow.h"
#include "rlx/ops/shape/reshape.h"

namespace rlx::ops {

void require_stream(const Infer& c, int i) {
  for (const int k : {i, i + 1}) {
    if (!is_integer(c.in(k).dtype()))
      c.fail(c.operand_name(k), ": ", c.in(k), " has dtype ", c.in(k).dtype(), "; it must be an integer");
  }
}

namespace {

// Extents of the streams, then those drawn from each.
Dims drawn_dims(Infer& c, const Dims& shape) {
  require_stream(c, 0);
  for (const Dim d : shape) {
    if (d.is_inferred()) c.fail("shape ", shape, " has an axis of size -1; give a size or a symbol");
  }
  Dims dims = c.broadcast(c.in(0), c.in(1));
  dims.insert(dims.end(), shape.begin(), shape.end());
  return dims;
}

Shapes infer_floats(Infer& c, const Shape& shape) {
  if (!is_float(shape.dtype()) || is_storage_only(shape.dtype()))
    c.fail("shape ", shape, " has dtype ", shape.dtype(), "; it must be f16, bf16, f32 or f64");
  return {Shape(shape.dtype(), drawn_dims(c, shape.dims()))};
}

int precision(DType t) { return t == DType::f16 ? 11 : t == DType::bf16 ? 8 : 24; }

Expr top_bits(Expr bits, int count) { return shift_right(bits, scalar_like(bits, 32 - count)); }

Expr word(Expr bits, int64_t i) {
  return reshape(narrow(bits, -1, i, 1), Dims(bits.shape().dims().begin(), bits.shape().dims().end() - 1));
}

// [0, 1) with as many bits as the type holds. f64 takes two words for each element: 27 bits and 26 bits.
Expr unit_interval(Expr key, Expr counter, DType t, Dims shape) {
  if (t != DType::f64) {
    const int bits = precision(t);
    return cast(top_bits(random_bits(key, counter, std::move(shape)), bits), t) * std::ldexp(1.0, -bits);
  }
  shape.push_back(2);
  const Expr words = random_bits(key, counter, std::move(shape));
  return cast(top_bits(word(words, 0), 27), t) * 0x1p-27 + cast(top_bits(word(words, 1), 26), t) * 0x1p-53;
}

}  // namespace

Shapes RandomBits::infer(Infer& c, Attrs& a) { return {Shape(DType::u32, drawn_dims(c, a.shape))}; }

Literals RandomBits::reference(const Eval& c, const Attrs& a) {
  const Literal &key = c.in(0), &counter = c.in(1);
  const Dims streams(c.out().dims().begin(), c.out().dims().end() - std::ptrdiff_t(a.shape.size()));
  const auto at_key = broadcast_positions(key.shape().dims(), streams);
  const auto at_counter = broadcast_positions(counter.shape().dims(), streams);
  const auto each = uint64_t(product(a.shape).value());
  Literal y = Literal::zeros(c.out());
  const auto out = y.mutable_data<uint32_t>();
  for (size_t s = 0; s < at_key.size(); ++s) {
    const auto k = uint64_t(key.integer_at(at_key[s])), n = uint64_t(counter.integer_at(at_counter[s]));
    for (uint64_t e = 0; e < each; ++e) out[s * each + e] = philox_block(k, n, e / 4)[e % 4];
  }
  return {y};
}

Exprs RandomBits::vmap(const Vmap& c, const Attrs& a) {
  const Exprs aligned = align_batched(c);
  return {random_bits(aligned[0], aligned[1], a.shape)};
}

std::vector<OpSample<RandomBits::Attrs>> RandomBits::samples() {
  return {{{{2, 3}}, {"i64[]", "u32[]"}}, {{{}}, {"u32[]", "i64[]"}},  {{{7}}, {"i32[]", "i64[] <1000"}},
          {{{0, 4}}, {"i64[]", "i64[]"}}, {{{5}}, {"i64[3]", "u8[]"}}, {{{3}}, {"u32[2,1]", "i64[3]"}},
          {{{1}}, {"i64[0]", "i64[1]"}}};
}

Shapes RandomUniform::infer(Infer& c, Attrs& a) {
  if (!(a.low < a.high) || !std::isfinite(a.high - a.low))
    c.fail("low is ", a.low, " and high is ", a.high, "; low must be below high and both finite");
  return infer_floats(c, a.shape);
}

Exprs RandomUniform::decompose(const Lower& c, const Attrs& a) {
  Expr y = unit_interval(c.in(0), c.in(1), a.shape.dtype(), a.shape.dims());
  if (a.high - a.low != 1) y = y * (a.high - a.low);
  return {a.low == 0 ? y : y + a.low};
}

Exprs RandomUniform::vmap(const Vmap& c, const Attrs& a) {
  const Exprs aligned = align_batched(c);
  return {random_uniform(aligned[0], aligned[1], a.shape, a.low, a.high)};
}

std::vector<OpSample<RandomUniform::Attrs>> RandomUniform::samples() {
  return {{{parse_shape("f32[2,3]")}, {"i64[]", "u32[]"}},
          {{parse_shape("f64[5]"), -2, 3}, {"u32[]", "i64[]"}},
          {{parse_shape("f16[]"), 1, 2}, {"i32[]", "i64[]"}},
          {{parse_shape("f32[0]")}, {"i64[]", "i64[]"}},
          {{parse_shape("bf16[7]")}, {"i64[2]", "i64[]"}},
          {{parse_shape("f32[1]"), 0, 10}, {"i64[]", "i64[2,1]"}}};
}

Shapes RandomNormal::infer(Infer& c, Attrs& a) {
  if (!(a.stddev >= 0)) c.fail("stddev is ", a.stddev, "; it must not be negative");
  return infer_floats(c, a.shape);
}

Exprs RandomNormal::decompose(const Lower& c, const Attrs& a) {
  const DType wide = a.shape.dtype() == DType::f64 ? DType::f64 : DType::f32;
  Dims shape = a.shape.dims();
  shape.push_back(2);
  const Expr pair = unit_interval(c.in(0), c.in(1), wide, std::move(shape));
  const Expr radius = sqrt(-2.0 * log(1.0 - word(pair, 0)));
  const Expr z = radius * cos(2 * std::numbers::pi * word(pair, 1));
  return {cast(a.mean + a.stddev * z, a.shape.dtype())};
}

Exprs RandomNormal::vmap(const Vmap& c, const Attrs& a) {
  const Exprs aligned = align_batched(c);
  return {random_normal(aligned[0], aligned[1], a.shape, a.mean, a.stddev)};
}

std::vector<OpSample<RandomNormal::Attrs>> RandomNormal::samples() {
  return {{{parse_shape("f32[2,3]")}, {"i64[]", "u32[]"}},
          {{parse_shape("f64[5]"), -2, 3}, {"u32[]", "i64[]"}},
          {{parse_shape("f16[]"), 1, 0.5}, {"i32[]", "i64[]"}},
          {{parse_shape("f32[0]")}, {"i64[]", "i64[]"}},
          {{parse_shape("bf16[7]")}, {"i64[2]", "i64[]"}},
          {{parse_shape("f32[1]"), 0, 0}, {"i64[]", "i64[2,1]"}}};
}

Expr random_bits(Expr key, Expr counter, Dims shape) {
  return make<RandomBits>(*key.graph, {std::move(shape)}, {key, counter});
}
Expr random_uniform(Expr key, Expr counter, const Shape& shape, double low, double high) {
  return make<RandomUniform>(*key.graph, {shape, low, high}, {key, counter});
}
Expr random_normal(Expr key, Expr counter, const Shape& shape, double mean, double stddev) {
  return make<RandomNormal>(*key.graph, {shape, mean, stddev}, {key, counter});
}

}  // namespace rlx::ops
