#include "rlx/ops/attention/fused_block.h"

#include "rlx/base/checked.h"
#include "rlx/ops/attention/rope.h"
#include "rlx/ops/elementwise/binary.h"
#include "rlx/ops/linalg/matmul.h"
#include "rlx/ops/norm/axis_norm.h"
#include "rlx/ops/require.h"
#include "rlx/ops/shape/narrow.h"

namespace rlx::ops {
namespace {

void require_count(Infer& c, int want, std::string_view flags) {
  if (c.count() != want) c.fail(c.count(), " operands given; with ", flags, " it takes ", want);
}

void require_same_floats(Infer& c, int mask) {
  c.require_float(0);
  for (int i = 1; i < c.count(); ++i) {
    if (i != mask) c.same_dtype({0, i});
  }
}

// head_dim from the rows of out_w when it is not given, and the width of all
// heads.
int64_t check_heads(Infer& c, int64_t num_heads, int64_t& head_dim, int out_w) {
  c.require_rank(0, 3);
  c.require_rank(out_w, 2);
  if (num_heads < 1) c.fail("num_heads is ", num_heads, "; it must be 1 or more");
  if (head_dim == 0) {
    const Dim rows = c.in(out_w).dim(0);
    if (!rows.is_static() || rows.value() % num_heads != 0)
      c.fail("out_w: ", c.in(out_w), " does not tell head_dim for ", num_heads, " heads; give it");
    head_dim = rows.value() / num_heads;
  }
  return checked_mul(num_heads, head_dim);
}

Expr plus(Expr x, Expr bias) { return bias ? x + bias : x; }

// mask [batch, keys] over the rows of x.
Expr attend(Expr x, Expr qkv_w, Expr qkv_b, Expr out_w, Expr out_b, Expr mask, Expr cos, Expr sin,
            int64_t num_heads, int64_t head_dim) {
  const Dim width = num_heads * head_dim;
  const Expr qkv = plus(matmul(x, qkv_w), qkv_b);
  Expr q = narrow(qkv, 2, 0, width), k = narrow(qkv, 2, width, width);
  const Expr v = narrow(qkv, 2, width + width, width);
  if (cos) q = rope(q, cos, sin, head_dim), k = rope(k, cos, sin, head_dim);
  return plus(matmul(attention(q, k, v, mask, num_heads, head_dim), out_w), out_b);
}

}  // namespace

Shapes FusedAttentionBlock::infer(Infer& c, Attrs& a) {
  require_count(c, 4 + 2 * int(a.has_bias) + 2 * int(a.has_rope),
                cat("has_bias ", a.has_bias, " and has_rope ", a.has_rope));
  require_same_floats(c, 3);
  const int64_t width = check_heads(c, a.num_heads, a.head_dim, 2);
  const Shape& x = c.in(0);
  require_dims(c, 1, {x.dim(2), 3 * width}, "(hidden, 3 num_heads head_dim)");
  require_dims(c, 2, {width, x.dim(2)}, "(num_heads head_dim, hidden)");
  require_dims(c, 3, {x.dim(0), x.dim(1)}, "(batch, seq)");
  if (a.has_bias) {
    require_dims(c, 4, {3 * width}, "for qkv_b");
    require_dims(c, 5, {x.dim(2)}, "for out_b");
  }
  return {x};
}

Exprs FusedAttentionBlock::decompose(const Lower& c, const Attrs& a) {
  const int tables = a.has_bias ? 6 : 4;
  return {attend(c.in(0), c.in(1), a.has_bias ? c.in(4) : Expr{}, c.in(2), a.has_bias ? c.in(5) : Expr{},
                 c.in(3), a.has_rope ? c.in(tables) : Expr{}, a.has_rope ? c.in(tables + 1) : Expr{},
                 a.num_heads, a.head_dim)};
}

std::vector<OpSample<FusedAttentionBlock::Attrs>> FusedAttentionBlock::samples() {
  return {{{.num_heads = 2}, {"f32[2,3,4]", "f32[4,12]", "f32[4,4]", "f32[2,3] in 0.6..1.4"}},
          {{.num_heads = 1, .has_bias = true},
           {"f64[1,2,3]", "f64[3,6]", "f64[2,3]", "bool[1,2]", "f64[6]", "f64[3]"}},
          {{.num_heads = 2, .head_dim = 2, .has_rope = true},
           {"f32[1,3,4]", "f32[4,12]", "f32[4,4]", "i32[1,3] in 1..3", "f32[3,1]", "f32[3,1]"}},
          {{.num_heads = 1, .has_bias = true, .has_rope = true},
           {"f32[1,1,2]", "f32[2,6]", "f32[2,2]", "f32[1,1] in 0.6..1.4", "f32[6]", "f32[2]", "f32[4,1]",
            "f32[4,1]"}},
          {{.num_heads = 2}, {"f16[0,3,4]", "f16[4,12]", "f16[4,4]", "f16[0,3]"}}};
}

namespace {

// Where the operands of a layer lie; the biases are -1 where there are none.
struct LayerOperands {
  int qkv_w, qkv_b, out_w, out_b, ln1_g, ln1_b, fc1_w, fc1_b, fc2_w, fc2_b, ln2_g, ln2_b, mask, count;
  explicit LayerOperands(bool bias) {
    int next = 1;
    const auto always = [&] { return next++; };
    const auto if_bias = [&] { return bias ? next++ : -1; };
    qkv_w = always(), qkv_b = if_bias(), out_w = always(), out_b = if_bias();
    ln1_g = always(), ln1_b = always();
    fc1_w = always(), fc1_b = if_bias(), fc2_w = always(), fc2_b = if_bias();
    ln2_g = always(), ln2_b = always(), mask = always(), count = next;
  }
};

}  // namespace

Shapes FusedTransformerLayer::infer(Infer& c, Attrs& a) {
  const LayerOperands at(a.has_bias);
  require_count(c, at.count, cat("has_bias ", a.has_bias));
  require_same_floats(c, at.mask);
  const Shape& x = c.in(0);
  const int64_t width = check_heads(c, a.num_heads, a.head_dim, at.out_w);
  c.require_rank(at.fc1_w, 2);
  if (a.intermediate_size == 0) {
    const Dim columns = c.in(at.fc1_w).dim(1);
    if (!columns.is_static()) c.fail("fc1_w: ", c.in(at.fc1_w), " does not tell intermediate_size; give it");
    a.intermediate_size = columns.value();
  }
  const Dim hidden = x.dim(2), inner = a.intermediate_size;
  require_dims(c, at.qkv_w, {hidden, 3 * width}, "for qkv_w");
  require_dims(c, at.out_w, {width, hidden}, "for out_w");
  require_dims(c, at.fc1_w, {hidden, inner}, "for fc1_w");
  require_dims(c, at.fc2_w, {inner, hidden}, "for fc2_w");
  for (const int norm : {at.ln1_g, at.ln1_b, at.ln2_g, at.ln2_b})
    require_dims(c, norm, {hidden}, "for a norm");
  if (a.has_bias) {
    require_dims(c, at.qkv_b, {3 * width}, "for qkv_b");
    require_dims(c, at.fc1_b, {inner}, "for fc1_b");
    for (const int bias : {at.out_b, at.fc2_b}) require_dims(c, bias, {hidden}, "for out_b and fc2_b");
  }
  require_dims(c, at.mask, {x.dim(0), x.dim(1)}, "(batch, seq) for mask");
  return {x};
}

Exprs FusedTransformerLayer::decompose(const Lower& c, const Attrs& a) {
  const LayerOperands at(a.has_bias);
  const auto in = [&c](int i) { return i < 0 ? Expr{} : c.in(i); };
  const Expr attended = attend(c.in(0), in(at.qkv_w), in(at.qkv_b), in(at.out_w), in(at.out_b), in(at.mask),
                               {}, {}, a.num_heads, a.head_dim);
  const Expr x = layer_norm(c.in(0) + attended, in(at.ln1_g), in(at.ln1_b), -1, a.eps1);
  const Expr inner = activation(a.activation, plus(matmul(x, in(at.fc1_w)), in(at.fc1_b)));
  const Expr y = plus(matmul(inner, in(at.fc2_w)), in(at.fc2_b));
  return {layer_norm(x + y, in(at.ln2_g), in(at.ln2_b), -1, a.eps2)};
}

std::vector<OpSample<FusedTransformerLayer::Attrs>> FusedTransformerLayer::samples() {
  const auto sample = [](Attrs a, const std::string& t, int b, int s, int h, int width, int inner,
                         const char* mask) {
    const auto matrix = [&](int m, int n) { return cat(t, "[", m, ",", n, "]"); };
    const auto vector = [&](int n) { return cat(t, "[", n, "]"); };
    OpSample<Attrs> out{a, {cat(t, "[", b, ",", s, ",", h, "]")}};
    const auto add = [&](const std::string& type) { out.inputs.push_back(type); };
    const auto add_bias = [&](int n) {
      if (a.has_bias) add(vector(n));
    };
    add(matrix(h, 3 * width)), add_bias(3 * width), add(matrix(width, h)), add_bias(h);
    add(vector(h)), add(vector(h)), add(matrix(h, inner)), add_bias(inner), add(matrix(inner, h)),
        add_bias(h);
    add(vector(h)), add(vector(h)), add(cat(t, "[", b, ",", s, "]", mask));
    return out;
  };
  return {sample({.num_heads = 2, .eps1 = 0.1, .eps2 = 0.2}, "f32", 1, 2, 4, 4, 3, " in 0.6..1.4"),
          sample({.num_heads = 1, .eps1 = 0.1, .eps2 = 0.1, .has_bias = false}, "f64", 2, 1, 3, 2, 2,
                 " in 0.6..1.4"),
          sample({.num_heads = 1, .eps1 = 0.1, .eps2 = 0.1, .activation = Activation::tanh}, "f32", 1, 1, 2,
                 2, 1, " in 0.6..1.4"),
          sample({.num_heads = 1}, "f32", 0, 2, 2, 2, 2, ""),
          sample({.num_heads = 2, .head_dim = 1, .intermediate_size = 3, .eps1 = 0.1, .eps2 = 0.1}, "f16", 1,
                 3, 2, 2, 3, " in 0.6..1.4")};
}

Expr fused_attention_block(Expr hidden, Expr qkv_w, Expr out_w, Expr mask, Expr qkv_b, Expr out_b, Expr cos,
                           Expr sin, int64_t num_heads, int64_t head_dim) {
  if (bool(qkv_b) != bool(out_b))
    throw invalid("fused_attention_block: give both of qkv_b and out_b, or none");
  if (bool(cos) != bool(sin)) throw invalid("fused_attention_block: give both of cos and sin, or none");
  Values operands{hidden, qkv_w, out_w, mask};
  if (qkv_b) operands.insert(operands.end(), {qkv_b, out_b});
  if (cos) operands.insert(operands.end(), {cos, sin});
  return make<FusedAttentionBlock>(*hidden.graph, {num_heads, head_dim, bool(qkv_b), bool(cos)}, operands);
}

Expr fused_transformer_layer(Expr hidden, const Exprs& weights, FusedTransformerLayer::Attrs attrs) {
  Values operands{hidden};
  operands.insert(operands.end(), weights.begin(), weights.end());
  return make<FusedTransformerLayer>(*hidden.graph, attrs, operands);
}

}  // namespace rlx::ops
