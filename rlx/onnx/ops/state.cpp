// Layers with a recurrent state: linear attention and causal convolution.
#include <cmath>

#include "rlx/lang/control.h"
#include "rlx/lang/operators.h"
#include "rlx/onnx/table.h"

namespace rlx::onnx {
namespace {

// [batch, time, heads * size] as [time, batch, heads, size].
Tensor by_time(const Tensor& x, int64_t heads) {
  return x.reshape({x.dim(0), x.dim(1), heads, floordiv(x.dim(2), heads)}).transpose({1, 0, 2, 3});
}

Items linear_attention(Call& c) {
  const std::string rule = c.text("update_rule", "gated_delta");
  const bool gated = rule == "gated" || rule == "gated_delta",
             delta = rule == "delta" || rule == "gated_delta";
  if (!gated && !delta && rule != "linear") throw c.wrong("update_rule is '", rule, "'");
  const int64_t q_heads = c.integer("q_num_heads", 0), kv_heads = c.integer("kv_num_heads", 0);
  if (q_heads < 1 || kv_heads < 1 || q_heads % kv_heads != 0)
    throw c.wrong(q_heads, " heads of queries and ", kv_heads, " of keys");
  c.ignore("chunk_size");
  const DType type = c.dtype(0);
  const DType wide = type == DType::f64 ? DType::f64 : DType::f32;
  const auto in = [&](int i, int64_t heads) { return by_time(c.in(i).cast(wide), heads); };
  const Tensor q = in(0, q_heads), k = in(1, kv_heads), v = in(2, kv_heads);
  const Dim batch = q.dim(1), d_k = k.dim(3), d_v = v.dim(3);
  double scale = c.real("scale", 0);
  if (scale == 0) scale = 1 / std::sqrt(double(q.dim(3).value()));
  const Tensor start = c.has(3) ? c.in(3).cast(wide) : c.full({batch, kv_heads, d_k, d_v}, wide, 0);
  Tensors xs{q, k, v};
  if (gated) xs.push_back(in(4, kv_heads));  // [time, batch, heads, d_k or 1]
  if (delta) {
    const Tensor beta = c.in(5).cast(wide);
    xs.push_back(beta.transpose({1, 0, 2}).unsqueeze(3));
  }
  const int64_t group = q_heads / kv_heads;
  const Tensors results = rlx::scan({start}, {.xs = xs}, [&](const Tensors& a) -> Tensors {
    Tensor s = a[0];
    const Tensor key = a[2].unsqueeze(3), value = a[3].unsqueeze(2);  // [.., d_k, 1], [.., 1, d_v]
    if (gated) s = s * rlx::exp(a[4]).unsqueeze(3);
    Tensor added = value;
    if (delta) added = (value - rlx::matmul(a[2].unsqueeze(2), s)) * a.back().unsqueeze(3);
    s = s + key * added;
    const Tensor queries = a[1].reshape({batch, kv_heads, group, d_k});
    return {s, rlx::matmul(queries, s) * scale};
  });
  const Tensor y = results[1].transpose({1, 0, 2, 3, 4}).reshape({batch, q.dim(0), Dim(q_heads) * d_v});
  return {y.cast(type), results[0].cast(c.has(3) ? c.dtype(3) : type)};
}

Items causal_conv(Call& c) {
  const Tensor x = c.in(0), w = c.in(1);
  const int64_t taps = w.dim(2).value();
  const std::string activation = c.text("activation", "none");
  const Tensor past = c.has(3) ? c.in(3) : c.full({x.dim(0), x.dim(1), taps - 1}, x.dtype(), 0);
  const Tensor all = taps > 1 ? rlx::concat({past, x}, {.axis = 2}) : x;
  ops::Conv1d::Attrs depthwise;
  depthwise.groups = int(x.dim(1).value());
  Tensor y = rlx::conv1d(all, w, depthwise);
  if (c.has(2)) y = y + c.in(2).reshape({1, x.dim(1), 1});
  if (activation == "silu" || activation == "swish") {
    y = rlx::silu(y);
  } else if (activation != "none") {
    throw c.wrong("activation is '", activation, "'");
  }
  return {y, all.narrow(2, all.dim(2) - Dim(taps - 1), taps - 1)};
}

}  // namespace

std::span<const Entry> state_entries() {
  static const std::vector<Entry> kEntries{
      {"CausalConvWithState", 27, causal_conv},
      {"LinearAttention", 27, linear_attention, BoundsRule::refuse, nullptr, false},
  };
  return kEntries;
}

}  // namespace rlx::onnx
