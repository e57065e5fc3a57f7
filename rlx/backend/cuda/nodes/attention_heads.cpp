#include "rlx/backend/cuda/nodes/attention_heads.h"

#include "rlx/backend/cuda/region/printer.h"

namespace rlx::cuda {
namespace {

constexpr int64_t kMostLanes = 256, kMostTexts = 65535;  // blocks of a grid along its second and third axis

// Strides of a mask or bias of scores, 0 where it has size 1; [batch, keys] serves all heads and queries.
HeadStrides score_strides(const Arg& x) {
  const auto stride = [&](int axis) {
    return x.shape.dim(axis) == Dim(1) ? 0 : x.layout.strides[size_t(axis)];
  };
  if (x.shape.rank() == 2) return {stride(0), 0, 0};
  return {stride(0), stride(1), stride(2)};
}

}  // namespace

HeadTensor heads_of(const Arg& x, ops::HeadLayout layout, int64_t heads) {
  const auto& s = x.layout.strides;
  const auto size = [&](int axis) { return x.shape.dim(axis).value(); };
  switch (layout) {
    case ops::HeadLayout::bshd:
      return {{s[0], s[2], s[1]}, size(0), size(1), size(3)};
    case ops::HeadLayout::bhsd:
      return {{s[0], s[1], s[2]}, size(0), size(2), size(3)};
    case ops::HeadLayout::bshd_packed:
      break;
  }
  const int64_t lanes = size(-1) / heads;
  if (x.shape.rank() == 2) return {{0, lanes, s[0]}, 1, size(0), lanes};
  return {{s[0], lanes, s[1]}, size(0), size(1), lanes};
}

AttentionShape::AttentionShape(const Request& r, const ops::AttentionAttrs& a, int extra) {
  const int64_t kv = kv_heads_of(a);
  const HeadTensor q = heads_of(r.in[0], a.layout, a.num_heads), k = heads_of(r.in[1], a.layout, kv),
                   v = heads_of(r.in[2], a.layout, kv);
  p.qs = q.strides, p.ks = k.strides, p.vs = v.strides;
  p.q_heads = int(a.num_heads), p.kv_heads = int(kv);
  p.q_len = int(q.rows), p.k_len = int(k.rows);
  p.head_dim = int(q.lanes), p.value_dim = int(v.lanes);
  p.scale = float(a.scale());
  p.softcap = float(a.attn_logit_softcap.value_or(0));
  p.window = a.window;
  mask = a.has_mask ? extra : -1;
  bias = a.has_bias ? int(r.in.size()) - 1 : -1;
  if (mask >= 0) p.ms = score_strides(r.in[size_t(mask)]);
  if (bias >= 0) p.bs = score_strides(r.in[size_t(bias)]);
  batch = q.batch;
}

std::string AttentionShape::text(const Request& r, const ops::AttentionAttrs& a, int unit) const {
  const auto type = [&](int operand) {
    return operand < 0 ? "u8" : memory_type(r.in[size_t(operand)].dtype());
  };
  const auto round = [&](int n) { return (n + unit - 1) / unit * unit; };
  const auto flag = [](bool b) { return b ? "true" : "false"; };
  const bool window = a.mask_kind == ops::MaskKind::sliding_window;
  const bool causal = window || a.mask_kind == ops::MaskKind::causal;
  return cat("typedef ", type(0), " T;\ntypedef ", type(mask), " Mask;\ntypedef ", type(bias),
             " Bias;\nconstexpr int kDim = ", round(p.head_dim), ", kValueDim = ", round(p.value_dim),
             ";\nconstexpr bool kHasMask = ", flag(mask >= 0),
             ", kKeyMask = ", flag(mask >= 0 && p.ms.row == 0), ", kHasBias = ", flag(bias >= 0),
             ", kCausal = ", flag(causal), ", kWindow = ", flag(window), ", kSoftcap = ", flag(p.softcap > 0),
             ";\n");
}

Support accepts_heads(const Request& r, const ops::AttentionAttrs& a, int extra) {
  const DType t = r.in[0].dtype();
  if (t != DType::f32 && t != DType::f16 && t != DType::bf16) return Support::no("heads of ", t);
  for (size_t i = 0; i < r.in.size(); ++i) {
    const Arg& x = r.in[i];
    if (i < 3 && x.dtype() != t) return Support::no("operand ", i, " is ", x.dtype());
    if (x.shape.elements() == 0) return Support::no("operand ", i, " is empty");
    if (x.shape.dim(-1) != Dim(1) && x.layout.strides.back() != 1)
      return Support::no("the last axis of operand ", i, " is strided");
    if (int(i) >= extra && (is_complex(x.dtype()) || is_storage_only(x.dtype())))
      return Support::no("operand ", i, " is ", x.dtype());
  }
  const HeadTensor q = heads_of(r.in[0], a.layout, a.num_heads);
  if (q.batch > kMostTexts || a.num_heads > kMostTexts)
    return Support::no(q.batch, " texts of ", a.num_heads, " heads");
  if (q.lanes > kMostLanes || heads_of(r.in[2], a.layout, kv_heads_of(a)).lanes > kMostLanes)
    return Support::no("heads of more than ", kMostLanes, " lanes");
  return Support::yes();
}

}  // namespace rlx::cuda
