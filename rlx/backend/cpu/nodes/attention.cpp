// Attention, forward.
#include "rlx/ops/attention/attention.h"

#include "rlx/backend/cpu/kernels/attention.h"
#include "rlx/backend/cpu/nodes/families.h"

namespace rlx::cpu {
namespace {

using ops::HeadLayout;

// Where the axes batch, head and row of an operand are; batch is -1 where the operand has none.
struct HeadAxes {
  int batch, head, row;
};
HeadAxes axes_of(HeadLayout layout, int rank) {
  switch (layout) {
    case HeadLayout::bshd:
      return {0, 2, 1};
    case HeadLayout::bhsd:
      return {0, 1, 2};
    case HeadLayout::bshd_packed:
      break;
  }
  return rank == 3 ? HeadAxes{0, -1, 1} : HeadAxes{-1, -1, 0};
}

HeadStrides strides_of(const Arg& x, HeadLayout layout, int64_t lanes) {
  const HeadAxes axes = axes_of(layout, x.shape.rank());
  const auto stride = [&](int axis) { return axis < 0 ? 0 : x.layout.strides[size_t(axis)]; };
  return {stride(axes.batch), axes.head < 0 ? lanes : stride(axes.head), stride(axes.row)};
}

int64_t size_at(const Arg& x, int axis) { return axis < 0 ? 1 : x.shape.dim(axis).value(); }

// Strides of a [batch, heads, queries, keys] operand, 0 where it has size 1.
HeadStrides score_strides(const Arg& x) {
  const auto stride = [&](int axis) {
    return x.shape.dim(axis) == Dim(1) ? 0 : x.layout.strides[size_t(axis)];
  };
  return {stride(0), stride(1), stride(2)};
}

Attention describe(const Request& r) {
  const auto& a = r.node.as<ops::Attention>();
  const Arg &q = r.in[0], &k = r.in[1], &v = r.in[2];
  const HeadAxes qa = axes_of(a.layout, q.shape.rank()), ka = axes_of(a.layout, k.shape.rank());
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
  p.q_strides = strides_of(q, a.layout, p.head_dim);
  p.k_strides = strides_of(k, a.layout, p.head_dim);
  p.v_strides = strides_of(v, a.layout, p.value_dim);
  p.o_strides = strides_of(r.out[0], a.layout, p.value_dim);
  if (a.has_mask && r.in[3].shape.rank() == 4) p.mask_strides = score_strides(r.in[3]);
  if (a.has_bias) p.bias_strides = score_strides(r.in.back());
  return p;
}

Support accepts(const Request& r) {
  const auto& a = r.node.as<ops::Attention>();
  for (size_t i = 0; i < 3; ++i) {
    if (r.in[i].dtype() != DType::f32) return Support::no("operand ", i, " is ", r.in[i].dtype());
    if (r.in[i].shape.dim(-1) != Dim(1) && r.in[i].layout.strides.back() != 1)
      return Support::no("the lanes of operand ", i, " are not neighbours");
  }
  if (a.has_mask) {
    const Arg& m = r.in[3];
    if (m.shape.rank() == 2 && (m.dtype() != DType::f32 || !m.is_row_major()))
      return Support::no("a key mask of ", m.dtype(), " at ", m.layout);
    if (m.shape.rank() == 4 && m.dtype() != DType::bool_) return Support::no("a mask of ", m.dtype());
    if (m.shape.rank() == 4 && m.layout.strides[3] != 1)
      return Support::no("the keys of the mask are not neighbours");
    if (m.shape.rank() == 2 && m.shape.dim(0) == Dim(1) && describe(r).batch != 1)
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

std::unique_ptr<Step> prepare(const Request& r) {
  const auto& a = r.node.as<ops::Attention>();
  const Attention p = describe(r);
  const bool key_mask = a.has_mask && r.in[3].shape.rank() == 2, mask = a.has_mask && !key_mask;
  const size_t bias = a.has_bias ? r.in.size() - 1 : 0;
  auto step = make_step(
      [p, key_mask, mask, bias](const Launch& l) {
        Attention now = p;
        now.q = reinterpret_cast<const float*>(l.in[0]);
        now.k = l.in[1];
        now.v = l.in[2];
        if (key_mask) now.key_mask = reinterpret_cast<const float*>(l.in[3]);
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

}  // namespace

void add_attention(KernelTable& table) {
  table.add<ops::Attention>({"attention_tiled_f32", accepts, prepare});
}

}  // namespace rlx::cpu
