#include "rlx/ops/block/qwen35_mtp_head.h"

#include "rlx/base/checked.h"
#include "rlx/ops/attention/attention.h"
#include "rlx/ops/attention/rope.h"
#include "rlx/ops/block/linear.h"
#include "rlx/ops/block/residual_rms_norm.h"
#include "rlx/ops/elementwise/activation.h"
#include "rlx/ops/elementwise/binary.h"
#include "rlx/ops/index/gather.h"
#include "rlx/ops/linalg/matmul.h"
#include "rlx/ops/norm/axis_norm.h"
#include "rlx/ops/shape/concat.h"
#include "rlx/ops/shape/narrow.h"
#include "rlx/ops/shape/reshape.h"

namespace rlx::ops {
namespace {

enum {
  kH,
  kIds,
  kCos,
  kSin,
  kLast,
  kEmbed,
  kHnorm,
  kEnorm = kHnorm + 2,
  kEh = kEnorm + 2,
  kAttnNorm,
  kQGate = kAttnNorm + 2,
  kK,
  kV,
  kQNorm,
  kKNorm = kQNorm + 2,
  kO = kKNorm + 2,
  kPostNorm,
  kUp = kPostNorm + 2,
  kGate,
  kDown,
  kHeadNorm,
  kLmHead = kHeadNorm + 2
};

// Weight and bias lie side by side.
Expr norm(const Lower& c, Expr x, int weight, double eps) {
  return rms_norm(x, c.in(weight), c.in(weight + 1), -1, eps);
}

// [batch, seq, heads * d] normed within each head.
Expr norm_heads(const Lower& c, Expr x, int64_t heads, int64_t head_dim, int weight, double eps) {
  const Expr split = reshape(x, {x.dim(0), x.dim(1), heads, head_dim});
  return reshape(norm(c, split, weight, eps), {x.dim(0), x.dim(1), heads * head_dim});
}

// The row of each sequence that predicts next: [batch, seq, e] -> [batch, 1, e].
Expr take_last(Expr x, Expr index) {
  if (index.rank() == 0) return gather(x, reshape(index, {1}), 1);
  return batched_gather(x, reshape(index, {index.dim(0), 1}), 1, 1);
}

}  // namespace

Shapes Qwen35MtpHead::infer(Infer& c, Attrs& a) {
  c.require_rank(kH, 3);
  c.require_rank(kIds, 2);
  c.require_rank(kUp, 2);
  c.require_rank(kLmHead, 2);
  if (c.in(kLast).rank() > 1) c.fail("last_token_idx: ", c.in(kLast), " must be a scalar or [batch]");
  if (c.in(kLast).rank() == 1)
    c.same(c.in(kLast).dim(0), c.in(kH).dim(0), "batches of last_token_idx and h_pre_norm");
  if (a.num_kv_heads == 0) a.num_kv_heads = a.num_heads;
  if (a.n_rot == 0) a.n_rot = a.head_dim;
  if (a.n_embd != 0) c.same(a.n_embd, c.in(kH).dim(2), "n_embd and the width of h_pre_norm");
  if (a.n_ff != 0) c.same(a.n_ff, c.in(kUp).dim(1), "n_ff and the columns of up_w");
  if (a.mtp_vocab != 0) c.same(a.mtp_vocab, c.in(kLmHead).dim(1), "mtp_vocab and the columns of lm_head_w");
  return infer_block<Qwen35MtpHead>(c, a);
}

Exprs Qwen35MtpHead::decompose(const Lower& c, const Attrs& a) {
  const Expr h = norm(c, c.in(kH), kHnorm, a.eps);
  const Expr e = norm(c, gather(c.in(kEmbed), c.in(kIds), 0), kEnorm, a.eps);
  const Expr start = matmul(concat({e, h}, -1), c.in(kEh));
  const Expr n = norm(c, start, kAttnNorm, a.eps);

  const Dim batch = n.dim(0), seq = n.dim(1);
  const int64_t d = a.head_dim, width = checked_mul(a.num_heads, d);
  const Expr q_gate = reshape(matmul(n, c.in(kQGate)), {batch, seq, a.num_heads, checked_mul(2, d)});
  const Expr gate = reshape(narrow(q_gate, -1, d, d), {batch, seq, width});
  Expr q = reshape(narrow(q_gate, -1, 0, d), {batch, seq, width});
  q = norm_heads(c, q, a.num_heads, d, kQNorm, a.eps);
  Expr k = norm_heads(c, matmul(n, c.in(kK)), a.num_kv_heads, d, kKNorm, a.eps);
  q = rope_n(q, c.in(kCos), c.in(kSin), d, a.n_rot);
  k = rope_n(k, c.in(kCos), c.in(kSin), d, a.n_rot);
  AttentionAttrs attention{.num_heads = a.num_heads, .num_kv_heads = a.num_kv_heads, .head_dim = d};
  attention.mask_kind = MaskKind::causal;
  const Expr mixed = attention_with(q, k, matmul(n, c.in(kV)), {}, {}, attention).output;

  const Expr projected = matmul(mul(mixed, sigmoid(gate)), c.in(kO));
  const auto [m, p] = residual_norm(projected, start, c.in(kPostNorm), c.in(kPostNorm + 1), a.eps, c.policy);
  const Expr out = add(p, gated_ffn(m, c.in(kUp), c.in(kGate), c.in(kDown), c.policy));
  return {matmul(norm(c, take_last(out, c.in(kLast)), kHeadNorm, a.eps), c.in(kLmHead))};
}

std::vector<OpSample<Qwen35MtpHead::Attrs>> Qwen35MtpHead::samples() {
  // Width e, heads h of width d, kv heads k, net width f, vocabulary v, over batch b and seq s.
  const auto operands = [](int b, int s, int e, int h, int d, int k, int f, int v, std::string last,
                           std::string t) {
    const auto of = [&t](auto... dims) { return t + "[" + join(std::vector<int>{dims...}, ",") + "]"; };
    std::vector<std::string> out = {
        of(b, s, e), cat("i32[", b, ",", s, "] <", v), of(8, d / 2), of(8, d / 2), last, of(v, e)};
    const auto add = [&out](std::initializer_list<std::string> more) { out.insert(out.end(), more); };
    add({of(e), of(e), of(e), of(e), of(2 * e, e), of(e), of(e)});
    add({of(e, 2 * h * d), of(e, k * d), of(e, k * d), of(d), of(d), of(d), of(d), of(h * d, e)});
    add({of(e), of(e), of(e, f), of(e, f), of(f, e), of(e), of(e), of(e, v)});
    return out;
  };
  return {{{.num_heads = 2, .head_dim = 2}, operands(1, 3, 4, 2, 2, 2, 5, 7, "i32[] <3", "f32")},
          {{.num_heads = 2, .num_kv_heads = 1, .head_dim = 4, .n_rot = 2},
           operands(2, 3, 4, 2, 4, 1, 5, 6, "i32[2] <3", "f64")},
          {{.num_heads = 2, .num_kv_heads = 2, .head_dim = 2, .n_embd = 3, .n_ff = 5, .mtp_vocab = 6},
           operands(2, 2, 3, 2, 2, 2, 5, 6, "i64[2] <2", "f32")},
          {{.num_heads = 1, .head_dim = 2}, operands(1, 1, 1, 1, 2, 1, 1, 2, "i32[1] <1", "f32")},
          {{.num_heads = 1, .head_dim = 2}, operands(0, 2, 2, 1, 2, 1, 3, 4, "i32[] <2", "f32")}};
}

}  // namespace rlx::ops
