#include "rlx/onnx/heads.h"

#include <cmath>

#include "rlx/lang/operators.h"

namespace rlx::onnx {

Tensor split_heads(const Call& c, const Tensor& x, int64_t heads) {
  if (x.rank() == 4) return x;
  if (x.rank() != 3) throw c.wrong("an operand is ", x.shape(), "; it must have 3 or 4 axes");
  if (heads < 1) throw c.wrong("an operand with 3 axes needs the number of heads");
  return x.reshape({x.dim(0), x.dim(1), heads, floordiv(x.dim(2), heads)}).transpose({0, 2, 1, 3});
}

Tensor joined_heads(const Tensor& x) {
  return x.transpose({0, 2, 1, 3}).reshape({x.dim(0), x.dim(2), x.dim(1) * x.dim(3)});
}

Tensor repeated_heads(const Tensor& x, Dim heads) {
  if (x.dim(1) == heads) return x;
  const Dim each = floordiv(heads, x.dim(1));
  return x.unsqueeze(2)
      .expand({x.dim(0), x.dim(1), each, x.dim(2), x.dim(3)})
      .reshape({x.dim(0), heads, x.dim(2), x.dim(3)});
}

Tensor zero_where(const Call& c, const Tensor& m, DType type, double otherwise) {
  return rlx::where(m, c.scalar(type, 0), c.scalar(type, otherwise));
}

Tensor attended(const Call& c, const Tensor& q, const Tensor& k, const Tensor& v, const AttendSpec& s) {
  for (const Tensor* t : {&q, &k, &v}) {
    if (t->rank() != 4 || !t->dim(1).is_static() || !t->dim(3).is_static())
      throw c.wrong("heads of ", t->shape(), "; their number and size must be known");
  }
  const int64_t size = q.dim(3).value();
  const auto y =
      rlx::attention(q, k, v, s.bias, {},
                     {.num_heads = q.dim(1).value(),
                      .num_kv_heads = k.dim(1).value(),
                      .head_dim = size,
                      .mask_kind = s.window   ? ops::MaskKind::sliding_window
                                   : s.causal ? ops::MaskKind::causal
                                              : ops::MaskKind::none,
                      .window = s.window ? *s.window - 1 : 0,
                      .has_bias = !s.bias.is_empty(),
                      .score_scale = s.scale != 0 ? s.scale : 1 / std::sqrt(double(size)),
                      .attn_logit_softcap = s.softcap > 0 ? std::optional<double>(s.softcap) : std::nullopt,
                      .layout = ops::HeadLayout::bhsd});
  if (s.sink.is_empty()) return y[0];
  // exp(lse) / (exp(lse) + exp(sink)) of each row stays.
  const DType wide = y[1].dtype();
  const Tensor kept = rlx::sigmoid(y[1] - s.sink.cast(wide).reshape({1, q.dim(1), 1}));
  return (y[0].cast(wide) * kept.unsqueeze(3)).cast(q.dtype());
}

}  // namespace rlx::onnx
