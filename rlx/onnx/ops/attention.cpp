// Attention and rotary positions.
#include <cmath>
#include <limits>

#include "rlx/lang/operators.h"
#include "rlx/onnx/heads.h"
#include "rlx/onnx/places.h"
#include "rlx/onnx/table.h"

namespace rlx::onnx {
namespace {

constexpr double kNever = -std::numeric_limits<double>::infinity();

Tensor as(const Tensor& t, DType type) { return t.dtype() == type ? t : t.cast(type); }

// What is added to the scores, or nothing: masks of any kind joined to one [.., queries, keys].
Tensor bias_of(const Call& c, const Tensor& q, Dim keys, Dim past, DType type) {
  Tensor bias;
  const auto join = [&](const Tensor& b) { bias = bias.is_empty() ? b : bias + b; };
  const auto from_bool = [&](const Tensor& m) { return zero_where(c, m, type, kNever); };
  if (c.has(3)) {
    Tensor mask = c.in(3);
    const bool boolean = mask.dtype() == DType::bool_;
    Tensor b = boolean ? from_bool(mask) : as(mask, type);
    if (decide_equal(b.dim(-1), keys) == false && b.dim(-1) != Dim(1)) {
      Dims low(size_t(b.rank()), 0), high(size_t(b.rank()), 0);
      high.back() = keys - b.dim(-1);
      b = rlx::pad(b, {.low = low, .high = high, .value = kNever});
    }
    join(b);
  }
  const bool causal = c.flag("is_causal");
  const int64_t left = c.integer("left_window_size", -1), right = c.integer("right_window_size", -1);
  if (causal || left >= 0 || right >= 0) {
    const Shape places(DType::i64, {q.dim(2), keys});
    Tensor query = c.iota(places, 0);
    if (c.has(6) && c.opset() >= 24) {
      // Without a cache of its own the operator counts queries from the end of each sequence.
      const Tensor offset =
          c.in(6).cast(DType::i64).reshape({c.in(6).dim(0), 1, 1, 1}) - c.dim_value(q.dim(2));
      query = query.reshape({1, 1, q.dim(2), keys}) + offset;
    } else if (past != Dim(0)) {
      query = query + c.dim_value(past);
    }
    const Tensor key = c.iota(places, 1);
    if (causal || right == 0) join(from_bool(key <= query));
    if (left >= 0) join(from_bool(key >= query - left));
    if (!causal && right > 0) join(from_bool(key <= query + right));
  }
  if (c.has(6)) {
    const Tensor lengths = c.in(6).cast(DType::i64).reshape({c.in(6).dim(0), 1, 1, 1});
    join(from_bool(c.iota(Shape(DType::i64, {1, 1, 1, keys}), 3) < lengths));
  }
  return bias;
}

Items attention(Call& c) {
  const int64_t q_heads = c.integer("q_num_heads", 0), kv_heads = c.integer("kv_num_heads", 0);
  const bool packed = c.rank(0) == 3;
  const Tensor q = split_heads(c, c.in(0), q_heads);
  Tensor k = split_heads(c, c.in(1), kv_heads), v = split_heads(c, c.in(2), kv_heads);
  Dim past = 0;
  if (c.has(4)) {
    past = c.in(4).dim(2);
    k = rlx::concat({c.in(4), k}, {.axis = 2});
    v = rlx::concat({c.in(5), v}, {.axis = 2});
  }
  const double softcap = c.real("softcap", 0);
  const int64_t mode = c.integer("qk_matmul_output_mode", 0);
  const DType type = q.dtype();
  const DType precise = c.has_attr("softmax_precision")
                            ? *file::info_of(c.element("softmax_precision", file::ElementType::f32)).dtype
                            : type;
  double scale = c.real("scale", 0);
  if (scale == 0) scale = 1 / std::sqrt(double(q.dim(3).value()));
  const Tensor bias = bias_of(c, q, k.dim(2), past, type);
  const bool wants_scores = c.node().outputs.size() > 3 && !c.node().outputs[3].empty();
  const bool rows_seen = bias.is_empty();
  Tensor y, scores_out;
  if (!wants_scores && rows_seen && precise == type && q.dim(1).is_static() && k.dim(1).is_static()) {
    y = rlx::attention(q, k, v, {}, {},
                       {.num_heads = q.dim(1).value(),
                        .num_kv_heads = k.dim(1).value(),
                        .head_dim = q.dim(3).value(),
                        .score_scale = scale,
                        .attn_logit_softcap = softcap > 0 ? std::optional<double>(softcap) : std::nullopt,
                        .layout = ops::HeadLayout::bhsd})[0];
  } else {
    const Tensor keys = repeated_heads(k, q.dim(1)), values = repeated_heads(v, q.dim(1));
    Tensor s = rlx::matmul(q, keys.t()) * scale;
    if (mode == 0) scores_out = s;
    if (softcap > 0) s = softcap * rlx::tanh(s / softcap);
    if (mode == 1) scores_out = s;
    if (!bias.is_empty()) s = s + bias;
    if (mode == 2) scores_out = s;
    Tensor p = as(rlx::softmax(as(s, precise), {.axis = -1}), type);
    // A query that sees no key gives 0.
    if (!bias.is_empty()) {
      const Tensor some = s.reduce(ops::ReduceOp::max, {-1}, true) > kNever;
      p = some.where(p, 0.0);
    }
    if (mode == 3) scores_out = p;
    y = rlx::matmul(p, values);
  }
  Items out{packed ? joined_heads(y) : y};
  out.emplace_back(k);
  out.emplace_back(v);
  if (wants_scores) out.emplace_back(scores_out);
  return out;
}

Items rotary(Call& c) {
  Tensor x = c.in(0);
  const bool packed = x.rank() == 3, interleaved = c.flag("interleaved");
  const int64_t heads = c.integer("num_heads", 0);
  int64_t lanes = c.integer("rotary_embedding_dim", 0);
  x = packed ? x.reshape({x.dim(0), x.dim(1), heads, floordiv(x.dim(2), heads)}) : x.transpose({0, 2, 1, 3});
  const int64_t size = x.dim(3).value();
  if (lanes == 0) lanes = size;
  Tensor cos = c.in(1), sin = c.in(2);
  if (c.has(3)) {
    const Tensor at = c.in(3);
    cos = rlx::gather(cos, at), sin = rlx::gather(sin, at);
  }
  cos = cos.unsqueeze(2), sin = sin.unsqueeze(2);
  const Tensor turned = x.narrow(3, 0, lanes);
  Tensor a, b;
  const Dims half{x.dim(0), x.dim(1), x.dim(2), lanes / 2};
  if (interleaved) {
    const Tensor pairs = turned.reshape({x.dim(0), x.dim(1), x.dim(2), lanes / 2, 2});
    a = pairs.narrow(4, 0, 1).reshape(half), b = pairs.narrow(4, 1, 1).reshape(half);
  } else {
    a = turned.narrow(3, 0, lanes / 2), b = turned.narrow(3, lanes / 2, lanes / 2);
  }
  const Tensor re = cos * a - sin * b, im = sin * a + cos * b;
  Tensor y = interleaved ? rlx::concat({re.unsqueeze(4), im.unsqueeze(4)}, {.axis = 4})
                               .reshape({x.dim(0), x.dim(1), x.dim(2), lanes})
                         : rlx::concat({re, im}, {.axis = 3});
  if (lanes < size) y = rlx::concat({y, x.narrow(3, lanes, size - lanes)}, {.axis = 3});
  return {packed ? y.reshape(c.shape(0).dims()) : y.transpose({0, 2, 1, 3})};
}

}  // namespace

std::span<const Entry> attention_entries() {
  static const std::vector<Entry> kEntries{
      {"Attention", 23, attention},
      {"RotaryEmbedding", 23, rotary},
  };
  return kEntries;
}

}  // namespace rlx::onnx
