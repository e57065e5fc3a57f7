// Attention as exporters of transformers fuse it: projections, caches, rotary positions and masks in one node.
#include <cmath>
#include <limits>

#include "rlx/lang/functions.h"
#include "rlx/lang/operators.h"
#include "rlx/onnx/heads.h"
#include "rlx/onnx/product.h"
#include "rlx/onnx/table.h"

namespace rlx::onnx {
namespace {

constexpr double kNever = -std::numeric_limits<double>::infinity();

// Keys that a mask of whole numbers allows, as what is added to scores [batch, heads, queries, keys].
//   [batch]: length of each row; [2 batch]: ends, then starts; [batch, keys]; [batch, queries, keys];
//   [batch, 1, most, most]: rows from `past` on are of the queries.
Tensor mask_bias(const Call& c, const Tensor& mask, const Tensor& q, Dim keys, Dim past, double blocked) {
  const DType type = q.dtype();
  const Dim batch = q.dim(0);
  if (mask.rank() == 1) {
    const Tensor at = c.iota(Shape(DType::i32, {1, 1, 1, keys}), 3);
    const auto column = [&](const Tensor& t) { return t.cast(DType::i32).reshape({batch, 1, 1, 1}); };
    if (mask.dim(0) == batch) return zero_where(c, at < column(mask), type, blocked);
    if (decide_equal(mask.dim(0), Dim(2) * batch) != true)
      c.unsupported(cat("a mask of type ", mask.shape(), " for a batch of ", batch));
    const Tensor inside =
        rlx::logical_and(at < column(mask.narrow(0, 0, batch)), at >= column(mask.narrow(0, batch, batch)));
    return zero_where(c, inside, type, blocked);
  }
  Tensor m = mask;
  if (m.rank() == 2) {
    m = m.reshape({m.dim(0), 1, 1, m.dim(1)});
  } else if (m.rank() == 3) {
    m = m.unsqueeze(1);
  } else if (m.rank() == 4) {
    m = m.narrow(2, past, q.dim(2)).narrow(3, 0, keys);
  } else {
    throw c.wrong("a mask of type ", mask.shape(), "; it has 1 to 4 axes");
  }
  return zero_where(c, m > 0, type, blocked);
}

void join(Tensor& bias, const Tensor& more) { bias = bias.is_empty() ? more : bias + more; }

// [heads * size] pieces of one vector, or nothing.
Tensors bias_pieces(const Tensor& bias, const Dims& sizes) {
  if (bias.is_empty()) return Tensors(sizes.size());
  return rlx::split(bias, sizes, 0);
}

struct Projected {
  Tensor q, k, v;  // [batch, heads, seq, size]
};

struct Cached {
  Tensor k, v;
  Dim past = 0;
};

Cached with_past(Tensor k, Tensor v, const Tensor& past_k, const Tensor& past_v) {
  if (past_k.is_empty()) return {k, v, 0};
  return {rlx::concat({past_k, k}, {.axis = 2}), rlx::concat({past_v, v}, {.axis = 2}), past_k.dim(2)};
}

// ---- MultiHeadAttention

// Query, key and value in any of the forms: apart, key and value in one, all in one, or of heads already.
Projected multi_head_operands(const Call& c, int64_t heads) {
  const Tensor query = c.in(0);
  const auto part = [&](const Tensor& all, int i) {
    return all.narrow(3, i, 1).squeeze(3).transpose({0, 2, 1, 3});  // [batch, seq, heads, parts, size]
  };
  Projected out;
  if (query.rank() == 5) {
    out = {part(query, 0), part(query, 1), part(query, 2)};
  } else {
    const Tensor key = c.in(1);
    out.q = split_heads(c, query, heads);
    if (key.rank() == 5) {
      out.k = part(key, 0), out.v = part(key, 1);
    } else {
      out.k = split_heads(c, key, heads), out.v = split_heads(c, c.in(2), heads);
    }
  }
  if (!c.has(3)) return out;
  const auto width = [](const Tensor& t) { return t.dim(1) * t.dim(3); };
  const Tensors b = bias_pieces(c.in(3), {width(out.q), width(out.k), width(out.v)});
  const auto add = [&](Tensor& t, const Tensor& piece) { t = t + piece.reshape({1, t.dim(1), 1, t.dim(3)}); };
  add(out.q, b[0]);
  // Keys and values that come as heads were projected before, with their bias.
  if (query.rank() == 5 || c.rank(1) != 4) add(out.k, b[1]), add(out.v, b[2]);
  return out;
}

Items multi_head_attention(Call& c) {
  const int64_t heads = c.integer("num_heads", 0);
  if (heads < 1) throw c.wrong("num_heads is ", heads, "; it must be at least 1");
  if (c.has(8) || c.has(9)) c.unsupported("a cache that past and present share");
  const double blocked = c.real("mask_filter_value", -10000);
  const Projected p = multi_head_operands(c, heads);
  const Cached kv = with_past(p.k, p.v, c.in_or_empty(6), c.in_or_empty(7));
  AttendSpec spec{.scale = c.real("scale", 0), .causal = c.flag("unidirectional")};
  if (c.has(4)) spec.bias = mask_bias(c, c.in(4), p.q, kv.k.dim(2), kv.past, blocked);
  if (c.has(5)) join(spec.bias, c.in(5));
  return {joined_heads(attended(c, p.q, kv.k, kv.v, spec)), kv.k, kv.v};
}

// ---- Attention and QAttention: the projection belongs to the node.

// Behind the projection x W + b, [batch, seq, q + k + v].
Items self_attention(Call& c, const Tensor& qkv, const Dims& widths, int mask, int past, int bias) {
  const int64_t heads = c.integer("num_heads", 0);
  if (heads < 1) throw c.wrong("num_heads is ", heads, "; it must be at least 1");
  if (c.flag("do_rotary")) c.unsupported("rotary positions inside Attention");
  if (c.flag("past_present_share_buffer")) c.unsupported("a cache that past and present share");
  c.ignore("rotary_embedding_dim");
  const double blocked = c.real("mask_filter_value", -10000);
  const Tensors parts = rlx::split(qkv, widths, 2);
  const Tensor q = split_heads(c, parts[0], heads);
  Tensor past_k, past_v;
  if (c.has(past)) {
    past_k = c.in(past).narrow(0, 0, 1).squeeze(0);
    past_v = c.in(past).narrow(0, 1, 1).squeeze(0);
  }
  const Cached kv =
      with_past(split_heads(c, parts[1], heads), split_heads(c, parts[2], heads), past_k, past_v);
  AttendSpec spec{.scale = c.real("scale", 0), .causal = c.flag("unidirectional")};
  if (c.has(mask)) spec.bias = mask_bias(c, c.in(mask), q, kv.k.dim(2), kv.past, blocked);
  if (bias >= 0 && c.has(bias)) join(spec.bias, c.in(bias));
  Items out{joined_heads(attended(c, q, kv.k, kv.v, spec))};
  if (c.node().outputs.size() > 1) out.emplace_back(rlx::stack({kv.k, kv.v}, 0));
  return out;
}

Items attention(Call& c) {
  if (c.has(6)) c.unsupported("a cache that past and present share");
  Tensor qkv = product_of(c.in(0), c.in(1));
  if (c.has(2)) qkv = qkv + c.in(2);
  Dims widths;
  for (const int64_t w : c.integers("qkv_hidden_sizes")) widths.emplace_back(w);
  if (widths.empty()) widths.assign(3, floordiv(qkv.dim(2), 3));
  if (widths.size() != 3) throw c.wrong("qkv_hidden_sizes has ", widths.size(), " entries; it must have 3");
  return self_attention(c, qkv, widths, 3, 4, 5);
}

Items quantized_attention(Call& c) {
  const auto centred = [&](int value, int zero) {
    const Tensor x = c.in(value).cast(DType::f64);
    return c.has(zero) ? x - c.in(zero).cast(DType::f64) : x;
  };
  const Tensor scale = c.in(3) * c.in(4);
  const Tensor qkv = product_of(centred(0, 6), centred(1, 7)).cast(scale.dtype()) * scale + c.in(2);
  return self_attention(c, qkv, Dims(3, floordiv(qkv.dim(2), 3)), 5, 8, -1);
}

// ---- RotaryEmbedding

Items rotary(Call& c) {
  const Tensor x = c.in(0), at = c.in(1), cos = c.in(2), sin = c.in(3);
  if (c.flag("is_packed_batching")) c.unsupported("a batch of rows of different lengths");
  c.ignore("scale");  // of the attention behind it
  const bool packed = x.rank() == 3;
  const int64_t heads = c.integer("num_heads", 0), lanes = c.integer("rotary_embedding_dim", 0);
  const Dim size = !packed ? x.dim(3) : heads > 0 ? floordiv(x.dim(2), heads) : Dim(2) * cos.dim(1);
  if (!size.is_static()) throw c.wrong("heads of size ", size, "; it must be known");
  const Dim steps = x.dim(packed ? 1 : 2);
  Tensor positions = at;
  // One number is the position of the first step.
  if (at.rank() == 1) positions = c.iota(Shape(at.dtype(), {steps}), 0) + at;
  return {rlx::rope(x, cos, sin, positions,
                    {.head_dim = size.value(),
                     .n_rot = lanes,
                     .interleaved = c.flag("interleaved"),
                     .layout = packed ? ops::HeadLayout::bshd_packed : ops::HeadLayout::bhsd})};
}

// ---- GroupQueryAttention

// Lengths of a step: `steps` new tokens of each row stand behind `before` older ones.
struct Steps {
  Dim batch, steps, capacity, total;  // total: of the longest row
  bool together = false;              // every row has total - steps older tokens
  Tensor before;                      // i32 [batch, 1], where rows differ
};

Steps step_lengths(const Call& c, const Tensor& q, Dim capacity) {
  const std::vector<Size> sizes = c.sizes(6, "the total length");
  const auto total = sizes.size() == 1 ? sizes[0].dim() : std::nullopt;
  if (!total) throw c.wrong("total_sequence_length must be one number");
  Steps s{q.dim(0), q.dim(2), capacity, *total};
  // A first prompt begins at 0, also in rows that are padded at the end.
  const auto prompt = decide_equal(s.steps, s.total);
  s.together = s.batch == Dim(1) && decide_equal(s.capacity + s.steps, s.total) == true;
  if (prompt == true && s.capacity == Dim(0)) s.together = true;
  if (s.together) return s;
  const Tensor steps = c.dim_value(s.steps, DType::i32);
  s.before = c.in(5).cast(DType::i32).reshape({s.batch, 1}) + 1 - steps;
  if (prompt == true) s.before = s.before * 0;
  if (!prompt) s.before = steps.eq(c.dim_value(s.total, DType::i32)).where(0, s.before);
  return s;
}

// The cache with the new tokens in their places: row j of a sequence is of the cache below `before`, new behind.
Tensor updated_cache(const Call& c, const Tensor& past, const Tensor& fresh, const Steps& s) {
  if (s.together) return past.is_empty() ? fresh : rlx::concat({past, fresh}, {.axis = 2});
  const Dim length = max(s.capacity, s.total);
  const Tensor j = c.iota(Shape(DType::i32, {1, length}), 1);
  const Tensor first = c.dim_value(s.capacity, DType::i32);
  const Tensor fresh_at = (first + j - s.before).min(c.dim_value(s.capacity + s.steps - 1, DType::i32));
  const Tensor all = past.is_empty() ? fresh : rlx::concat({past, fresh}, {.axis = 2});
  const Tensor rows =
      rlx::batched_gather(all, (j < s.before).where(j, fresh_at), {.axis = 2, .batch_dims = 1});
  // Behind the end of a row stands nothing.
  const Tensor inside = j < s.before + c.dim_value(s.steps, DType::i32);
  return inside.reshape({s.batch, 1, length, 1}).where(rows, 0);
}

// Which keys a step sees: those up to its own place, or all of its row; of these the last `window`.
Tensor step_mask(const Call& c, const Steps& s, Dim keys, DType type, bool causal, int64_t window) {
  const Tensor j = c.iota(Shape(DType::i32, {1, 1, 1, keys}), 3);
  const Tensor before = s.before.reshape({s.batch, 1, 1, 1});
  const Tensor lengths = c.in(5).cast(DType::i32).reshape({s.batch, 1, 1, 1}) + 1;
  if (!causal) return zero_where(c, j < lengths, type, kNever);
  const Tensor own = before + c.iota(Shape(DType::i32, {1, 1, s.steps, 1}), 2);
  Tensor seen = j <= own;
  if (window > 0) seen = rlx::logical_and(seen, j > own - window);
  return zero_where(c, seen, type, kNever);
}

Projected group_query_operands(const Call& c, int64_t heads, int64_t kv_heads) {
  if (c.has(1))
    return {split_heads(c, c.in(0), heads), split_heads(c, c.in(1), kv_heads),
            split_heads(c, c.in(2), kv_heads)};
  const Tensor all = c.in(0);
  const Dim size = floordiv(all.dim(2), heads + 2 * kv_heads);
  const Tensors parts = rlx::split(all, {size * Dim(heads), size * Dim(kv_heads), size * Dim(kv_heads)}, 2);
  return {split_heads(c, parts[0], heads), split_heads(c, parts[1], kv_heads),
          split_heads(c, parts[2], kv_heads)};
}

void rotate(const Call& c, Projected& p, const Steps& s) {
  if (!c.has(7) || !c.has(8)) throw c.wrong("do_rotary needs cos_cache and sin_cache");
  Tensor at;
  if (c.has(9)) {
    at = c.in(9);
  } else {
    const Tensor step = c.iota(Shape(DType::i32, {s.steps}), 0);
    at = s.together ? step + c.dim_value(s.total - s.steps, DType::i32) : s.before + step.unsqueeze(0);
  }
  const auto turned = [&](const Tensor& x) {
    return rlx::rope(x, c.in(7), c.in(8), at,
                     {.head_dim = x.dim(3).value(),
                      .n_rot = 2 * c.in(7).dim(1).value(),
                      .interleaved = c.flag("rotary_interleaved"),
                      .layout = ops::HeadLayout::bhsd});
  };
  p.q = turned(p.q), p.k = turned(p.k);
}

Items group_query_attention(Call& c) {
  const int64_t heads = c.integer("num_heads", 0), kv_heads = c.integer("kv_num_heads", 0);
  if (heads < 1 || kv_heads < 1 || heads % kv_heads != 0)
    throw c.wrong(heads, " heads and ", kv_heads, " of keys and values; the latter must divide the former");
  if (c.text("k_quant_type", "NONE") != "NONE" || c.text("v_quant_type", "NONE") != "NONE" || c.has(12) ||
      c.has(13))
    c.unsupported("a quantised cache");
  c.ignore("kv_cache_bit_width");
  if (c.flag("sliding_window_cache")) c.unsupported("a cache of the size of the window");
  if (c.has(14) || c.has(15)) c.unsupported("a norm of queries and keys inside GroupQueryAttention");
  c.ignore("qk_norm_epsilon"), c.ignore("qk_output");
  const bool causal = c.flag("causal", true);
  const int64_t window = c.integer("local_window_size", -1);
  Projected p = group_query_operands(c, heads, kv_heads);
  const Tensor past_k = c.in_or_empty(3), past_v = c.in_or_empty(4);
  const Steps s = step_lengths(c, p.q, past_k.is_empty() ? Dim(0) : past_k.dim(2));
  if (c.flag("do_rotary")) rotate(c, p, s);
  c.ignore("rotary_interleaved");
  const Tensor k = updated_cache(c, past_k, p.k, s), v = updated_cache(c, past_v, p.v, s);
  AttendSpec spec{.scale = c.real("scale", 0), .softcap = c.real("softcap", 0)};
  if (s.together) {
    spec.causal = causal;
    if (causal && window > 0) spec.window = window;
  } else {
    spec.bias = step_mask(c, s, k.dim(2), p.q.dtype(), causal, window);
  }
  if (c.has(10)) {
    Tensor more = c.in(10);
    // A cache with room behind the sequences: nothing is added there, where nothing is seen.
    if (decide_equal(more.dim(3), k.dim(2)) == false)
      more = more.pad({0, 0, 0, 0}, {0, 0, 0, k.dim(2) - more.dim(3)});
    join(spec.bias, more);
  }
  if (c.has(11)) {
    spec.sink = c.in(11);
  } else if (c.flag("smooth_softmax")) {
    spec.sink = c.full({heads}, p.q.dtype(), 0);
  }
  c.ignore("smooth_softmax");
  return {joined_heads(attended(c, p.q, k, v, spec)), k, v};
}

}  // namespace

std::span<const Entry> contrib_attention_entries() {
  static const std::vector<Entry> kEntries{
      {"Attention", 1, attention},
      {"GroupQueryAttention", 1, group_query_attention},
      {"MultiHeadAttention", 1, multi_head_attention},
      {"QAttention", 1, quantized_attention},
      {"RotaryEmbedding", 1, rotary},
  };
  return kEntries;
}

}  // namespace rlx::onnx
