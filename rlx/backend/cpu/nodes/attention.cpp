// Attention and its gradients.
#include "rlx/ops/attention/attention.h"

#include "rlx/backend/cpu/kernels/attention_backward.h"
#include "rlx/backend/cpu/nodes/heads.h"
#include "rlx/backend/cpu/nodes/paged_attention.h"
#include "rlx/backend/cpu/nodes/wide.h"

namespace rlx::cpu {
namespace {

using ops::HeadLayout;

// Strides of a [batch, heads, queries, keys] operand, 0 where it has size 1.
HeadStrides score_strides(const Arg& x) {
  const auto stride = [&](int axis) {
    return x.shape.dim(axis) == Dim(1) ? 0 : x.layout.strides[size_t(axis)];
  };
  return {stride(0), stride(1), stride(2)};
}

// Mask and bias follow from operand `extra` on; o lies as `like`.
Attention describe(const Request& r, const ops::AttentionAttrs& a, size_t extra, const Arg& like) {
  const Arg &q = r.in[0], &k = r.in[1], &v = r.in[2];
  const HeadAxes qa = head_axes(a.layout, q.shape.rank()), ka = head_axes(a.layout, k.shape.rank());
  const bool packed = a.layout == HeadLayout::bshd_packed;
  Attention p;
  p.batch = size_at(q, qa.batch);
  p.q_heads = a.num_heads;
  p.kv_heads = a.num_kv_heads > 0 ? a.num_kv_heads : a.num_heads;
  p.q_len = size_at(q, qa.row);
  p.k_len = size_at(k, ka.row);
  p.head_dim = packed ? q.shape.dim(-1).value() / p.q_heads : q.shape.dim(-1).value();
  p.value_dim = packed ? v.shape.dim(-1).value() / p.kv_heads : v.shape.dim(-1).value();
  p.scale = float(a.scale());
  p.softcap = float(a.attn_logit_softcap.value_or(0));
  p.causal = a.mask_kind == ops::MaskKind::causal || a.mask_kind == ops::MaskKind::sliding_window;
  p.window = a.mask_kind == ops::MaskKind::sliding_window ? a.window : -1;
  p.q_strides = head_strides(q, a.layout, p.head_dim);
  p.k_strides = head_strides(k, a.layout, p.head_dim);
  p.v_strides = head_strides(v, a.layout, p.value_dim);
  p.o_strides = head_strides(like, a.layout, p.value_dim);
  if (a.has_mask && r.in[extra].shape.rank() == 4) p.mask_strides = score_strides(r.in[extra]);
  if (a.has_bias) p.bias_strides = score_strides(r.in.back());
  return p;
}

// `heads`: the first operands, which hold heads; `kv`: what keys and values are.
Support accepts_operands(const Request& r, const ops::AttentionAttrs& a, size_t heads, size_t extra,
                         DType kv = DType::f32) {
  for (size_t i = 0; i < heads; ++i) {
    if (r.in[i].dtype() != (i == 1 || i == 2 ? kv : DType::f32))
      return Support::no("operand ", i, " is ", r.in[i].dtype());
    if (r.in[i].shape.dim(-1) != Dim(1) && r.in[i].layout.strides.back() != 1)
      return Support::no("the lanes of operand ", i, " are not neighbours");
  }
  if (a.has_mask) {
    const Arg& m = r.in[extra];
    if (m.shape.rank() == 2 && (m.dtype() != DType::f32 || !m.is_row_major()))
      return Support::no("a key mask of ", m.dtype(), " at ", m.layout);
    if (m.shape.rank() == 4 && m.dtype() != DType::bool_) return Support::no("a mask of ", m.dtype());
    if (m.shape.rank() == 4 && m.layout.strides[3] != 1)
      return Support::no("the keys of the mask are not neighbours");
    if (m.shape.rank() == 2 && m.shape.dim(0) == Dim(1) && describe(r, a, extra, r.in[0]).batch != 1)
      return Support::no("one key mask for the whole batch");
  }
  if (a.has_bias) {
    const Arg& b = r.in.back();
    if (b.dtype() != DType::f32 || b.shape.rank() != 4 ||
        (b.shape.dim(3) != Dim(1) && b.layout.strides[3] != 1))
      return Support::no("a bias of ", b.shape, " at ", b.layout);
  }
  return Support::yes();
}

// Keys and values in 16 bits are read where they lie.
Support accepts(const Request& r) {
  const DType kept = r.in[1].dtype();
  const bool narrow = kept == DType::f16 || kept == DType::bf16;
  return accepts_operands(r, r.node.as<ops::Attention>(), 3, 3, narrow ? kept : DType::f32);
}

KvFormat format_of(DType t) {
  return t == DType::f16 ? KvFormat::f16 : t == DType::bf16 ? KvFormat::bf16 : KvFormat::f32;
}

// The keys up to the last that the mask allows; one at least.
int64_t allowed_keys(const float* mask, int64_t keys) {
  while (keys > 1 && mask[keys - 1] < 0.5f) --keys;
  return keys;
}

std::unique_ptr<Step> prepare(const Request& r) {
  const auto& a = r.node.as<ops::Attention>();
  Attention p = describe(r, a, 3, r.out[0]);
  p.kv_format = format_of(r.in[1].dtype());
  const bool key_mask = a.has_mask && r.in[3].shape.rank() == 2, mask = a.has_mask && !key_mask;
  const size_t bias = a.has_bias ? r.in.size() - 1 : 0;
  auto step = make_step(
      [p, key_mask, mask, bias](const Launch& l) {
        Attention now = p;
        now.q = reinterpret_cast<const float*>(l.in[0]);
        now.k = l.in[1];
        now.v = l.in[2];
        if (key_mask) now.key_mask = reinterpret_cast<const float*>(l.in[3]);
        // The unused end of a cache is left out, unless positions are counted from it.
        if (key_mask && p.batch == 1 && !p.causal && p.k_len > 0)
          now.k_len = allowed_keys(now.key_mask, p.k_len);
        if (mask) now.mask = reinterpret_cast<const uint8_t*>(l.in[3]);
        if (bias > 0) now.bias = reinterpret_cast<const float*>(l.in[bias]);
        now.o = reinterpret_cast<float*>(l.out[0]);
        now.lse = reinterpret_cast<float*>(l.out[1]);
        attention(l.team, now, l.workspace);
      },
      attention_workspace(p, r.threads));
  step->note = cat(p.q_heads, " heads on ", p.kv_heads, ", ", p.q_len, " queries, ", p.k_len, " keys");
  return step;
}

// Operands q, k, v, dy, lse, delta, then mask and bias.
Support accepts_backward(const Request& r) {
  const auto& a = r.node.as<ops::AttentionBackward>();
  if (const Support s = none_empty(r); !s) return s;
  for (size_t i = 4; i < 6; ++i) {
    if (r.in[i].dtype() != DType::f32 || !r.in[i].is_row_major())
      return Support::no("operand ", i, " is ", r.in[i].shape, " at ", r.in[i].layout);
  }
  if (a.has_bias && !r.in.back().is_row_major()) return Support::no("a bias at ", r.in.back().layout);
  return accepts_operands(r, a, 4, 6);
}

std::unique_ptr<Step> prepare_backward(const Request& r) {
  const auto& a = r.node.as<ops::AttentionBackward>();
  AttentionBackward p{.forward = describe(r, a, 6, r.in[3])};
  p.dy_strides = p.forward.o_strides;
  p.dq_strides = head_strides(r.out[0], a.layout, p.forward.head_dim);
  p.dk_strides = head_strides(r.out[1], a.layout, p.forward.head_dim);
  p.dv_strides = head_strides(r.out[2], a.layout, p.forward.value_dim);
  const bool key_mask = a.has_mask && r.in[6].shape.rank() == 2, mask = a.has_mask && !key_mask;
  const size_t bias = a.has_bias ? r.in.size() - 1 : 0;
  const auto filled = [=](const Launch& l) {
    AttentionBackward now = p;
    const auto in = [&](size_t i) { return reinterpret_cast<const float*>(l.in[i]); };
    const auto out = [&](size_t i) { return reinterpret_cast<float*>(l.out[i]); };
    now.forward.q = in(0);
    now.forward.k = l.in[1];
    now.forward.v = l.in[2];
    now.forward.lse = reinterpret_cast<float*>(l.in[4]);
    if (key_mask) now.forward.key_mask = in(6);
    if (mask) now.forward.mask = reinterpret_cast<const uint8_t*>(l.in[6]);
    if (bias > 0) now.forward.bias = in(bias), now.dbias = out(3);
    now.dy = in(3);
    now.delta = in(5);
    now.dq = out(0);
    now.dk = out(1);
    now.dv = out(2);
    return now;
  };
  // Which operands there are decides what it needs: addresses stand for them.
  std::byte place[1];
  std::vector<std::byte*> in(r.in.size(), place), out(r.out.size(), place);
  const AttentionBackward sized =
      filled({.team = Team(default_pool(), 1), .in = in.data(), .out = out.data()});
  auto step = make_step([filled](const Launch& l) { attention_backward(l.team, filled(l), l.workspace); },
                        attention_backward_workspace(sized, r.threads));
  step->note = cat(p.forward.q_heads, " heads on ", p.forward.kv_heads);
  return step;
}

}  // namespace

void add_attention(KernelTable& table) {
  constexpr unsigned kKeysAndValues = 0b110;
  table.add<ops::Attention>({"attention_tiled_f32", accepts, prepare});
  // Queries and results in 16 bits, which are few, are converted.
  table.add<ops::Attention>(wide_kernel<accepts, prepare, kKeysAndValues>("attention_narrow_cache"));
  table.add<ops::AttentionBackward>({"attention_backward_tiled_f32", accepts_backward, prepare_backward});
  table.add<ops::AttentionBackward>(
      wide_kernel<accepts_backward, prepare_backward>("attention_backward_wide"));
  add_paged_attention(table);
}

}  // namespace rlx::cpu
