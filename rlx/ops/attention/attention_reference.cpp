// Attention in plain loops: the judge of its numbers.
#include <cmath>

#include "rlx/ops/attention/scores.h"

namespace rlx::ops {
namespace {

// A tensor that broadcasts to [batch, heads, queries, keys].
struct Square {
  std::vector<double> values;
  int64_t strides[4] = {};

  explicit Square(const Literal& x) : values(x.to_reals()) {
    Dims dims = x.shape().dims();
    if (dims.size() == 2) dims.insert(dims.begin() + 1, 2, Dim(1));
    const auto dense = row_major_strides(dims);
    for (size_t i = 0; i < 4; ++i) strides[i] = dims[i] == Dim(1) ? 0 : dense[i];
  }
  double at(int64_t b, int64_t h, int64_t i, int64_t j) const {
    return values[size_t(b * strides[0] + h * strides[1] + i * strides[2] + j * strides[3])];
  }
};

bool allowed_by_position(const AttentionAttrs& a, int64_t query, int64_t key) {
  if (a.mask_kind == MaskKind::none) return true;
  if (key > query) return false;
  return a.mask_kind != MaskKind::sliding_window || key >= query - a.window;
}

}  // namespace

Literals Attention::reference(const Eval& c, const Attrs& a) {
  const auto e = detail::extents_of(c.in(0).shape(), c.in(1).shape(), c.in(2).shape(), a);
  const auto q = c.in(0).to_reals(), k = c.in(1).to_reals(), v = c.in(2).to_reals();
  std::optional<Square> mask, bias;
  if (a.has_mask) mask.emplace(c.in(3));
  if (a.has_bias) bias.emplace(c.in(3 + int(a.has_mask)));
  const int64_t queries = e.q.seq.value(), keys = e.k.seq.value(), lanes = e.v.head_dim.value();
  const HeadIndex at_q(e.q, a.layout), at_k(e.k, a.layout), at_v(e.v, a.layout);
  const HeadIndex at_y({e.q.batch, e.q.seq, e.q.heads, e.v.head_dim}, a.layout);
  std::vector<double> y(size_t(c.out(0).elements())), lse(size_t(c.out(1).elements()));
  std::vector<double> s(static_cast<size_t>(keys));
  for (int64_t b = 0; b < e.q.batch.value(); ++b) {
    for (int64_t h = 0; h < a.num_heads; ++h) {
      const int64_t kv = h * a.num_kv_heads / a.num_heads;
      for (int64_t i = 0; i < queries; ++i) {
        double top = -INFINITY;
        for (int64_t j = 0; j < keys; ++j) {
          double dot = 0;
          for (int64_t d = 0; d < a.head_dim; ++d) dot += q[at_q(b, h, i, d)] * k[at_k(b, kv, j, d)];
          dot *= a.scale();
          if (a.attn_logit_softcap) dot = *a.attn_logit_softcap * std::tanh(dot / *a.attn_logit_softcap);
          if (bias) dot += bias->at(b, h, i, j);
          if (!allowed_by_position(a, i + keys - queries, j)) dot = -INFINITY;
          if (mask && mask->at(b, h, i, j) < 0.5) dot = -INFINITY;
          s[size_t(j)] = dot;
          top = std::isnan(dot) || dot > top ? dot : top;
        }
        double sum = 0;
        if (top != -INFINITY)
          for (double& x : s) sum += x = std::exp(x - top);
        lse[size_t((b * a.num_heads + h) * queries + i)] = top == -INFINITY ? top : top + std::log(sum);
        for (int64_t d = 0; d < lanes && top != -INFINITY; ++d) {
          double total = 0;
          for (int64_t j = 0; j < keys; ++j) total += s[size_t(j)] * v[at_v(b, kv, j, d)];
          y[at_y(b, h, i, d)] = total / sum;
        }
      }
    }
  }
  return {Literal::reals(c.out(0), y), Literal::reals(c.out(1), lse)};
}

}  // namespace rlx::ops
