#include "rlx/ops/quant/dequant_matmul.h"

#include "rlx/base/checked.h"
#include "rlx/ops/elementwise/binary.h"
#include "rlx/ops/elementwise/cast.h"
#include "rlx/ops/elementwise/compare.h"
#include "rlx/ops/elementwise/logical.h"
#include "rlx/ops/elementwise/math.h"
#include "rlx/ops/elementwise/select.h"
#include "rlx/ops/elementwise/stop_gradient.h"
#include "rlx/ops/linalg/matmul.h"
#include "rlx/ops/linear/grouped_matmul.h"
#include "rlx/ops/quant/dequantize_blocks.h"
#include "rlx/ops/reduce/reduce.h"
#include "rlx/ops/shape/concat.h"
#include "rlx/ops/shape/expand.h"
#include "rlx/ops/shape/narrow.h"
#include "rlx/ops/shape/reshape.h"
#include "rlx/ops/shape/transpose.h"

namespace rlx::ops {
namespace {

using quant::Scheme;
using quant::SchemeKind;

// The size of the contracted axis, which the number of blocks depends on.
int64_t require_features(const Infer& c) {
  c.require_float(0);
  c.require_min_rank(0, 2);
  const Dim k = c.in(0).dim(-1);
  if (!k.is_static())
    c.fail("x: ", c.in(0), " has a symbolic last axis; the blocks of the weights need its size");
  return k.value();
}

void require_operand(const Infer& c, const std::string& scheme, int i, const Shape& want,
                     std::optional<DType> also = {}) {
  if (i >= c.count()) c.fail(scheme, " needs ", c.operand_name(i), ": ", want);
  const Shape& have = c.in(i);
  bool fits = have.rank() == want.rank() && (have.dtype() == want.dtype() || have.dtype() == also);
  for (int axis = 0; fits && axis < want.rank(); ++axis)
    fits = decide_equal(have.dim(axis), want.dim(axis)) != false;
  if (!fits) c.fail(c.operand_name(i), ": ", have, " does not fit ", scheme, "; it must be ", want);
}

void require_count(const Infer& c, const std::string& scheme, int most) {
  if (c.count() > most) c.fail(scheme, " has no ", c.operand_name(most), "; leave it out");
}

// Columns of packed GGUF rows of k elements in that many bytes.
Dim packed_columns(const Infer& c, const Scheme& s, const std::string& text, int64_t k, Dim bytes) {
  if (k % s.block != 0) c.fail("k = ", k, " is no multiple of ", s.block, ", the block of ", text);
  const int64_t row = quant::code_bytes(s, k, 1);
  const auto columns = row == 0 ? std::optional<Dim>(0) : exact_div(bytes, row);
  if (!columns)
    c.fail("packed: ", bytes, " bytes are no whole number of ", text, " columns of ", row, " bytes");
  return *columns;
}

Dim require_gguf(Infer& c, const Scheme& s, const std::string& text, int64_t k) {
  require_count(c, text, 2);
  if (c.in(1).dtype() != DType::u8)
    c.fail("w: ", c.in(1), " has dtype ", c.in(1).dtype(), "; packed weights are bytes, u8");
  return packed_columns(c, s, text, k, c.in(1).num_elements());
}

Dim require_scaled(Infer& c, const Scheme& s, const std::string& text, int64_t k) {
  const DType real = c.count() > 2 && c.in(2).dtype() == DType::f64 ? DType::f64 : DType::f32;
  const bool nvfp4 = s.kind == SchemeKind::nvfp4_block, flat = s.kind == SchemeKind::int4_block;
  if (flat && (c.count() < 3 || c.in(2).rank() != 2))
    c.fail(text, " needs scale: f32[", ceildiv(k, s.block), ", n]");
  if (!flat) c.require_rank(1, 2);
  const Dim n = flat ? c.in(2).dim(1) : c.in(1).dim(1);
  const Dim groups = s.block > 0 ? ceildiv(k, s.block) : Dim(1);
  switch (s.kind) {
    case SchemeKind::int8_block:
    case SchemeKind::int8_block_asym:
      require_operand(c, text, 1, Shape(DType::i8, {k, n}));
      require_operand(c, text, 2, Shape(real, {groups, n}));
      break;
    case SchemeKind::int4_block: {
      if (!n.is_static()) c.fail("scale: ", c.in(2), " has a symbolic size; the packed codes need it");
      const int64_t bytes = quant::code_bytes(s, k, n.value());
      if (c.in(1).dtype() != DType::u8 || decide_equal(c.in(1).num_elements(), bytes) == false)
        c.fail("w: ", c.in(1), " does not fit ", text, "; it must hold ", bytes, " bytes, u8");
      require_operand(c, text, 2, Shape(real, {groups, n}));
      break;
    }
    case SchemeKind::fp8_e4m3:
    case SchemeKind::fp8_e5m2:
      require_operand(c, text, 1, Shape(DType::u8, {k, n}),
                      s.kind == SchemeKind::fp8_e4m3 ? DType::f8e4m3 : DType::f8e5m2);
      require_operand(c, text, 2, Shape(real, {n}));
      break;
    case SchemeKind::nvfp4_block:
      require_operand(c, text, 1, Shape(DType::u8, {ceildiv(k, 2), n}));
      require_operand(c, text, 2, Shape(DType::u8, {groups, n}), DType::f8e4m3);
      break;
    case SchemeKind::gguf:
      break;
  }
  if (nvfp4) {
    require_operand(c, text, 3, Shape(DType::f32, {1}), DType::f64);
  } else if (!s.has_zero_point()) {
    require_count(c, text, 3);
  } else if (c.count() > 3 || !flat) {
    require_operand(c, text, 3, Shape(real, {groups, n}));
  }
  return n;
}

// Codes or bytes as numbers, [k, n].
Expr decoded(Expr codes, const std::string& scheme, Dims shape, DType t) {
  if (codes.dtype() == DType::u8) return cast(dequantize_blocks(codes, scheme, std::move(shape)), t);
  return cast(codes, t);
}

// One row per group of `block` rows, repeated for each row of the first k.
Expr per_row(Expr groups, int64_t block, int64_t k) {
  const Dim g = groups.dim(0), n = groups.dim(1);
  const Expr repeated = reshape(expand(reshape(groups, {g, 1, n}), {g, block, n}), {g * Dim(block), n});
  return narrow(repeated, 0, 0, k);
}

// W[k, n] of a scheme with scales beside the codes.
Expr scaled_weights(const Lower& c, const Scheme& s, const std::string& text, int64_t k, Dim n, DType t) {
  const Expr codes = decoded(c.in(1), text, {k, n}, t);
  if (s.kind == SchemeKind::nvfp4_block) {
    const Expr scale = decoded(c.in(2), "fp8e4m3", c.in(2).shape().dims(), t);
    const Expr safe = where(equal(scale, scale), scale, scalar_like(scale, 0));
    return codes * per_row(safe, s.block, k) * cast(c.in(3), t);
  }
  const Expr scale = cast(c.in(2), t);
  if (s.block == 0) return codes * scale;
  if (!s.has_zero_point()) return codes * per_row(scale, s.block, k);
  const Expr zero = c.has(3) ? per_row(cast(c.in(3), t), s.block, k) : scalar_like(codes, 8);
  return (codes - zero) * per_row(scale, s.block, k);
}

void require_blocks(const Infer& c, const std::string& scheme) {
  if (!scheme.starts_with("gguf_")) c.fail("activations=q8 needs blocks, gguf_TYPE; scheme is ", scheme);
}

// Formats that have a least value in each block, f16 behind the f16 scale: products add it times the sum of the activations.
bool has_least(const std::string& scheme) { return scheme == "gguf_q4_1" || scheme == "gguf_q5_1"; }

// v as f16 holds it, in the range of normal numbers.
Expr nearest_half(Expr v) {
  const Expr size = abs(v), low = scalar_like(v, 0x1p-14), high = scalar_like(v, 65504);
  const Expr outside = logical_or(less(size, low), greater(size, high));
  return where(outside, v, cast(cast(v, DType::f16), v.dtype()));
}

struct Rounded {
  Expr x;
  Expr sum_error;  // [.., k / 32], where the format has least values: d sum q as f16 less the sum of x
};

// x = d q, d = max |x| / 127 for each strip of 32 and multiplied as f16, or of each 256 where blocks are so long. The rounded value is held
// constant and x added and taken away again: gradients go straight through.
Rounded rounded(Expr x, const std::string& scheme) {
  const int64_t size = quant::scheme_from_text(scheme)->block == 256 ? 256 : 32;
  const int last = x.shape().rank();
  Dims dims = x.shape().dims();
  dims.back() = x.dim(-1).value() / size;
  dims.push_back(size);
  const Expr strips = reshape(x, dims), held = stop_gradient(strips);
  dims.back() = 1;
  const Expr top = reshape(reduce_max(abs(held), {last}), dims);
  // Divisions as llama.cpp has them: a code at the edge of two then falls to the same side.
  const Expr zero = less(top, scalar_like(top, 0x1p-120)), none = scalar_like(top, 0);
  const Expr factor = 127.0 / where(zero, scalar_like(top, 1), top);
  const Expr scale = where(zero, none, size == 256 ? 1.0 / factor : top / 127.0);
  const Expr codes = round(held * where(zero, none, factor));
  const Expr stored = size == 256 ? scale : nearest_half(scale);
  Rounded out{reshape(codes * stored + (strips - held), x.shape().dims()), {}};
  if (!has_least(scheme)) return out;
  dims.pop_back();
  const Expr sum = reshape(reduce_sum(codes, {last}), dims), d = reshape(scale, dims);
  out.sum_error = nearest_half(d * sum) - reshape(stored, dims) * sum;
  return out;
}

// The least values of the blocks of weights [.., k, n], [.., k / 32, n]: what blocks decode to when their codes are zero.
Expr least_values(Expr w, const std::string& scheme, const Dims& shape) {
  const int64_t block = quant::code_bytes(*quant::scheme_from_text(scheme), 32, 1), head = 4;
  const int axis = int(shape.size()) - 2;
  const Expr blocks = reshape(w, {*exact_div(w.shape().num_elements(), block), block});
  const Expr codes = narrow(blocks, 1, head, block - head);
  const Expr bare = concat({narrow(blocks, 1, 0, head), codes - codes}, 1);
  Dims split = shape;
  split[size_t(axis)] = shape[size_t(axis)].value() / 32;
  const Dims all = split;
  split.insert(split.end() - 1, 32);
  const Expr values = dequantize_blocks(reshape(bare, w.shape().dims()), scheme, shape);
  return reshape(narrow(reshape(values, split), axis + 1, 0, 1), all);
}

}  // namespace

Shapes DequantMatmul::infer(Infer& c, Attrs& a) {
  const Scheme s = require_scheme(c, a.scheme);
  const int64_t k = require_features(c);
  if (a.activations == Activations::q8) require_blocks(c, a.scheme);
  const Dim n = s.is_gguf() ? require_gguf(c, s, a.scheme, k) : require_scaled(c, s, a.scheme, k);
  return {c.in(0).with_dim(-1, n)};
}

Exprs DequantMatmul::decompose(const Lower& c, const Attrs& a) {
  const Scheme s = *quant::scheme_from_text(a.scheme);
  const Expr x = c.in(0);
  const int64_t k = x.dim(-1).value();
  const Dim n = c.out().dim(-1);
  // Weights are made in f32 also for narrower activations, and rounded once.
  const DType t = x.dtype() == DType::f64 ? DType::f64 : DType::f32;
  const Expr w =
      s.is_gguf() ? dequantize_blocks(c.in(1), a.scheme, {k, n}) : scaled_weights(c, s, a.scheme, k, n, t);
  if (a.activations == Activations::exact) return {matmul(x, cast(w, x.dtype()))};
  const Rounded r = rounded(cast(x, t), a.scheme);
  Expr y = matmul(r.x, cast(w, t));
  if (has_least(a.scheme)) y = y + matmul(r.sum_error, cast(least_values(c.in(1), a.scheme, {k, n}), t));
  return {cast(y, x.dtype())};
}

std::vector<OpSample<DequantMatmul::Attrs>> DequantMatmul::samples() {
  return {{{"gguf_q4_0"}, {"f32[2,32]", "u8[54] <60"}},
          {{"gguf_q8_0"}, {"f64[1,3,64]", "u8[2,68] <60"}},
          {{"gguf_q4_0", Activations::q8}, {"f32[2,64]", "u8[3,36] <60"}},
          {{"gguf_q4_1", Activations::q8}, {"f32[2,2,64]", "u8[3,40] <60"}},
          {{"gguf_q6k", Activations::q8}, {"f32[3,256]", "u8[2,210] <60"}},
          {{"int8/4"}, {"f32[2,6]", "i8[6,3]", "f32[2,3]"}},
          {{"int8a/2"}, {"f64[2,4]", "i8[4,2]", "f64[2,2]", "f64[2,2]"}},
          {{"int4/4"}, {"f32[3,5]", "u8[8] bytes", "f32[2,3]"}},
          {{"int4/2"}, {"f32[1,2]", "u8[1] bytes", "f32[1,1]", "f32[1,1]"}},
          {{"fp8e4m3"}, {"f32[0,3]", "u8[3,2] <120", "f32[2]"}},
          {{"fp8e5m2"}, {"f16[2,3]", "u8[3,2] <120", "f32[2]"}},
          {{"nvfp4/16"}, {"f32[2,18]", "u8[9,2] bytes", "u8[2,2] <120", "f32[1] positive"}}};
}

Shapes DequantMatmulTransposed::infer(Infer& c, Attrs& a) {
  const Scheme s = require_scheme(c, a.scheme);
  if (!s.is_gguf()) c.fail("scheme '", a.scheme, "' keeps scales beside its codes; gguf_TYPE expected");
  const int64_t n = require_features(c);
  const Shape& w = c.in(1);
  if (w.dtype() != DType::u8) c.fail("w: ", w, " has dtype ", w.dtype(), "; packed weights are bytes, u8");
  if (!w.num_elements().is_static())
    c.fail("w: ", w, " has a symbolic size; the number of its blocks is needed");
  // The n columns of W lie behind each other, each k / block blocks.
  const int64_t bytes = w.num_elements().value(), step = checked_mul(n, quant::code_bytes(s, s.block, 1));
  if (step == 0 || bytes % step != 0)
    c.fail("w: ", w, " is no whole number of ", a.scheme, " blocks for each of the ", n,
           " columns of x: ", c.in(0));
  return {c.in(0).with_dim(-1, bytes / step * s.block)};
}

Exprs DequantMatmulTransposed::decompose(const Lower& c, const Attrs& a) {
  const Expr x = c.in(0);
  const Expr w = dequantize_blocks(c.in(1), a.scheme, {c.out().dim(-1), x.dim(-1)});
  return {matmul(x, cast(transpose(w, {1, 0}), x.dtype()))};
}

std::vector<OpSample<DequantMatmulTransposed::Attrs>> DequantMatmulTransposed::samples() {
  return {{{"gguf_q4_0"}, {"f32[2,3]", "u8[54] <60"}},
          {{"gguf_q8_0"}, {"f64[1,3,2]", "u8[2,68] <60"}},
          {{"gguf_q6k"}, {"f32[4,2]", "u8[2,210] <60"}},
          {{"gguf_q5_0"}, {"f32[1,1]", "u8[22] <60"}},
          {{"gguf_q4_1"}, {"f16[0,3]", "u8[3,40] <60"}}};
}

Shapes DequantMoeWeights::infer(Infer& c, Attrs& a) {
  const Scheme s = require_scheme(c, a.scheme);
  if (!s.is_gguf())
    c.fail("scheme '", a.scheme, "' keeps scales beside its codes; expert slabs are gguf_TYPE");
  if (a.shape.size() != 3) c.fail("shape has ", a.shape.size(), " axes; it must be experts, k, n");
  DequantizeBlocks::Attrs blocks{a.scheme, a.shape};
  return DequantizeBlocks::infer(c, blocks);
}

Exprs DequantMoeWeights::decompose(const Lower& c, const Attrs& a) {
  return {dequantize_blocks(c.in(0), a.scheme, a.shape)};
}

std::vector<OpSample<DequantMoeWeights::Attrs>> DequantMoeWeights::samples() {
  return {{{"gguf_q4_0", {2, 32, 2}}, {"u8[2,36] <60"}},
          {{"gguf_q8_0", {3, 32, 1}}, {"u8[102] <60"}},
          {{"gguf_q5_1", {1, 32, 1}}, {"u8[1,24] <60"}},
          {{"gguf_q6k", {1, 256, 1}}, {"u8[210] <60"}},
          {{"gguf_q4_1", {0, 32, 2}}, {"u8[0,40]"}}};
}

Shapes DequantGroupedMatmul::infer(Infer& c, Attrs& a) {
  const Scheme s = require_scheme(c, a.scheme);
  if (!s.is_gguf())
    c.fail("scheme '", a.scheme, "' keeps scales beside its codes; expert slabs are gguf_TYPE");
  const int64_t k = require_features(c);
  if (a.activations == Activations::q8) require_blocks(c, a.scheme);
  c.require_rank(0, 2);
  c.require_index(2);
  c.require_rank(2, 1);
  const Shape &x = c.in(0), &packed = c.in(1), &experts = c.in(2);
  if (decide_equal(x.dim(0), experts.dim(0)) == false)
    c.fail("experts: ", experts, " does not fit x: ", x, "; each row has one");
  c.same(x.dim(0), experts.dim(0), "rows and experts");
  if (packed.dtype() != DType::u8)
    c.fail("packed: ", packed, " has dtype ", packed.dtype(), "; packed weights are bytes, u8");
  if (a.num_experts == Dim(0)) {
    if (packed.rank() < 2)
      c.fail("packed: ", packed, " does not tell the number of experts; set num_experts");
    a.num_experts = packed.dim(0);
  }
  const auto slab = exact_div(packed.num_elements(), a.num_experts);
  if (!slab) c.fail("packed: ", packed, " is no ", a.num_experts, " slabs of one size");
  return {x.with_dim(-1, packed_columns(c, s, a.scheme, k, *slab))};
}

Exprs DequantGroupedMatmul::decompose(const Lower& c, const Attrs& a) {
  const Expr x = c.in(0);
  const int64_t k = x.dim(1).value();
  const Dim e = a.num_experts, n = c.out().dim(1);
  const Expr w = dequant_moe_weights(c.in(1), a.scheme, {e, k, n});
  if (a.activations == Activations::exact) return {grouped_matmul(x, cast(w, x.dtype()), c.in(2))};
  const DType t = x.dtype() == DType::f64 ? DType::f64 : DType::f32;
  const Rounded r = rounded(cast(x, t), a.scheme);
  Expr y = grouped_matmul(r.x, cast(w, t), c.in(2));
  if (has_least(a.scheme))
    y = y + grouped_matmul(r.sum_error, cast(least_values(c.in(1), a.scheme, {e, k, n}), t), c.in(2));
  return {cast(y, x.dtype())};
}

std::vector<OpSample<DequantGroupedMatmul::Attrs>> DequantGroupedMatmul::samples() {
  return {{{"gguf_q4_0"}, {"f32[4,32]", "u8[3,36] <60", "i32[4] <3"}},
          {{"gguf_q5_1", 0, Activations::q8}, {"f32[4,32]", "u8[3,48] <60", "i32[4] <3"}},
          {{"gguf_q8_0", 2}, {"f64[2,32]", "u8[68] <60", "i64[2] <2"}},
          {{"gguf_q4_1"}, {"f32[1,32]", "u8[1,20] <60", "u8[1] <1"}},
          {{"gguf_q5_0"}, {"f32[0,32]", "u8[2,22] <60", "i32[0]"}},
          {{"gguf_q6k"}, {"f16[3,256]", "u8[2,210] <60", "u32[3] <2"}}};
}

Expr dequant_matmul(Expr x, Expr w_q, Expr scale, Expr zp, const std::string& scheme) {
  if (zp && !scale) throw invalid("dequant_matmul: zp is given without scale; they come together");
  Values operands{x, w_q};
  if (scale) operands.push_back(scale);
  if (zp) operands.push_back(zp);
  return make<DequantMatmul>(*x.graph, {scheme}, operands);
}

Expr dequant_matmul_packed(Expr x, Expr packed_w, const std::string& scheme) {
  if (!scheme.starts_with("gguf_"))
    throw invalid("dequant_matmul_packed: scheme '", scheme,
                  "' has scales beside its codes; use dequant_matmul");
  return dequant_matmul(x, packed_w, {}, {}, scheme);
}

Expr dequant_matmul_transposed(Expr x, Expr packed_w, const std::string& scheme) {
  return make<DequantMatmulTransposed>(*x.graph, {scheme}, {x, packed_w});
}

Expr dequant_matmul_nvfp4(Expr x, Expr w_q, Expr block_scales, Expr global_scale) {
  return dequant_matmul(x, w_q, block_scales, global_scale, "nvfp4/16");
}

Expr dequant_grouped_matmul(Expr x, Expr packed, Expr experts, const std::string& scheme, Dim num_experts) {
  return make<DequantGroupedMatmul>(*x.graph, {scheme, num_experts}, {x, packed, experts});
}

Expr dequant_moe_weights(Expr packed, const std::string& scheme, Dims shape) {
  return make<DequantMoeWeights>(*packed.graph, {scheme, std::move(shape)}, {packed});
}

}  // namespace rlx::ops
