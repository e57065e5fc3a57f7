#include "rlx/ops/block/llama_decoder.h"

#include "rlx/ops/attention/rope.h"
#include "rlx/ops/block/linear.h"
#include "rlx/ops/block/residual_rms_norm.h"
#include "rlx/ops/elementwise/binary.h"
#include "rlx/ops/linalg/matmul.h"
#include "rlx/ops/norm/axis_norm.h"

namespace rlx::ops {
namespace {

// Columns of a projection whose number is a symbol are those of its heads.
Expr columns_of_heads(Expr x, int64_t heads, int64_t head_dim) {
  if (x.dim(-1).is_symbolic() && heads > 0 && head_dim > 0)
    x.graph->assume_equal(x.dim(-1), Dim(heads) * Dim(head_dim));
  return x;
}

enum { kX, kLn1G, kLn1B, kQ, kK, kV, kO, kLn2G, kLn2B, kUp, kGate, kDown, kCos, kSin, kMask };

}  // namespace

Shapes LlamaDecoderBlock::infer(Infer& c, Attrs& a) {
  c.require_rank(kX, 3);
  if (a.num_kv_heads == 0) a.num_kv_heads = a.num_heads;
  const bool needs_mask = a.mask_kind == MaskKind::custom || a.mask_kind == MaskKind::bias;
  if (needs_mask && c.count() <= kMask)
    c.fail("mask_kind ", choice_names(a.mask_kind)[size_t(a.mask_kind)], " needs the operand mask");
  return infer_block<LlamaDecoderBlock>(c, a);
}

Exprs LlamaDecoderBlock::decompose(const Lower& c, const Attrs& a) {
  const Expr x = c.in(kX), cos = c.in(kCos), sin = c.in(kSin);
  const Expr h = rms_norm(x, c.in(kLn1G), c.in(kLn1B), -1, a.eps);
  const Expr q = rope(columns_of_heads(matmul(h, c.in(kQ)), a.num_heads, a.head_dim), cos, sin, a.head_dim);
  const Expr k =
      rope(columns_of_heads(matmul(h, c.in(kK)), a.num_kv_heads, a.head_dim), cos, sin, a.head_dim);
  const Expr v = matmul(h, c.in(kV));

  AttentionAttrs attention{.num_heads = a.num_heads, .num_kv_heads = a.num_kv_heads, .head_dim = a.head_dim};
  attention.mask_kind = a.mask_kind;
  attention.window = a.window;
  const Expr extra = c.has(kMask) ? c.in(kMask) : Expr{};
  const bool is_bias = a.mask_kind == MaskKind::bias;
  if (is_bias || a.mask_kind == MaskKind::custom) attention.mask_kind = MaskKind::none;
  const Expr mixed =
      attention_with(q, k, v, is_bias ? Expr{} : extra, is_bias ? extra : Expr{}, attention).output;

  const auto [m, p] = residual_norm(matmul(mixed, c.in(kO)), x, c.in(kLn2G), c.in(kLn2B), a.eps, c.policy);
  return {add(p, gated_ffn(m, c.in(kUp), c.in(kGate), c.in(kDown), c.policy))};
}

std::vector<OpSample<LlamaDecoderBlock::Attrs>> LlamaDecoderBlock::samples() {
  // hidden e, heads h of width d, kv heads k, net width f, over batch b and seq s.
  const auto operands = [](int b, int s, int e, int h, int d, int k, int f, std::string t) {
    const auto of = [&t](auto... dims) { return t + "[" + join(std::vector<int>{dims...}, ",") + "]"; };
    return std::vector<std::string>{of(b, s, e),  of(e),        of(e),        of(e, h * d), of(e, k * d),
                                    of(e, k * d), of(h * d, e), of(e),        of(e),        of(e, f),
                                    of(e, f),     of(f, e),     of(8, d / 2), of(8, d / 2)};
  };
  auto masked = operands(2, 3, 4, 2, 2, 1, 5, "f32");
  masked.push_back("f32[2,3] unit");
  auto biased = operands(2, 3, 4, 2, 2, 2, 3, "f32");
  biased.push_back("f32[2,2,3,3]");
  return {
      {{.num_heads = 2, .head_dim = 2}, operands(1, 3, 4, 2, 2, 2, 5, "f32")},
      {{.num_heads = 4, .head_dim = 2, .num_kv_heads = 2}, operands(2, 3, 6, 4, 2, 2, 5, "f64")},
      {{.num_heads = 2, .head_dim = 4, .num_kv_heads = 1, .mask_kind = MaskKind::sliding_window, .window = 1},
       operands(1, 5, 3, 2, 4, 1, 7, "f32")},
      {{.num_heads = 1, .head_dim = 2}, operands(1, 1, 1, 1, 2, 1, 1, "f32")},
      {{.num_heads = 2, .head_dim = 2}, operands(0, 3, 4, 2, 2, 2, 5, "f32")},
      {{.num_heads = 2, .head_dim = 2, .num_kv_heads = 1, .mask_kind = MaskKind::custom}, masked},
      {{.num_heads = 2, .head_dim = 2, .mask_kind = MaskKind::bias}, biased}};
}

}  // namespace rlx::ops
