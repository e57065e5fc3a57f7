#include "rlx/ops/attention/paged_attention.h"

#include <algorithm>
#include <cmath>

#include "rlx/base/checked.h"
#include "rlx/ops/attention/attention.h"
#include "rlx/ops/elementwise/binary.h"
#include "rlx/ops/elementwise/cast.h"
#include "rlx/ops/elementwise/compare.h"
#include "rlx/ops/elementwise/logical.h"
#include "rlx/ops/index/gather.h"
#include "rlx/ops/quant/dequantize_blocks.h"
#include "rlx/ops/require.h"
#include "rlx/ops/shape/expand.h"
#include "rlx/ops/shape/iota.h"
#include "rlx/ops/shape/narrow.h"
#include "rlx/ops/shape/reshape.h"
#include "rlx/quant/format.h"

namespace rlx::ops {
namespace {

using Attrs = PagedAttention::Attrs;

void check_attrs(Infer& c, Attrs& a) {
  if (a.num_heads < 1) c.fail("num_heads is ", a.num_heads, "; it must be 1 or more");
  if (a.num_kv_heads == 0) a.num_kv_heads = a.num_heads;
  if (a.num_kv_heads < 0 || a.num_heads % a.num_kv_heads != 0)
    c.fail("num_kv_heads ", a.num_kv_heads, " does not divide num_heads ", a.num_heads);
  const Dim width = c.in(0).dim(2);
  if (a.head_dim == 0 && width.is_static()) {
    if (width.value() % a.num_heads != 0) c.fail("q: ", c.in(0), " does not hold ", a.num_heads, " heads");
    a.head_dim = width.value() / a.num_heads;
  }
  if (a.head_dim == 0) c.fail("q: ", c.in(0), " does not tell head_dim; give it");
  if (a.head_dim < 1) c.fail("head_dim is ", a.head_dim, "; it must be 1 or more");
  if (a.value_dim == 0) a.value_dim = a.head_dim;
  if (a.value_dim < 1) c.fail("value_dim is ", a.value_dim, "; it must be 1 or more");
  if (c.count() < 5 && a.value_dim > a.head_dim)
    c.fail("value_dim ", a.value_dim, " is more than the ", a.head_dim, " lanes of a key, and there is no v");
  if (a.page < 1) c.fail("page is ", a.page, "; it must be 1 or more");
  if (a.window < 0) c.fail("window is ", a.window, "; it must be 0 (none) or more");
  if (a.attn_logit_softcap && !(*a.attn_logit_softcap >= 0))
    c.fail("attn_logit_softcap is ", *a.attn_logit_softcap, "; it must be positive, or 0 for none");
  if (a.attn_logit_softcap == 0.0) a.attn_logit_softcap.reset();
}

// Rows of `lanes` numbers, plain or as bytes of blocks.
void check_store(Infer& c, int i, Attrs& a, int64_t lanes) {
  c.require_rank(i, 2);
  const Shape& store = c.in(i);
  if (a.scheme.empty()) {
    c.require_float(i);
    require_dims(c, i, {store.dim(0), lanes}, cat("slots of ", lanes, " numbers"));
  } else {
    const quant::Scheme s = require_scheme(c, a.scheme);
    if (!s.is_gguf() || lanes % s.block != 0)
      c.fail("rows of ", lanes, " numbers are no whole blocks of ", a.scheme);
    if (store.dtype() != DType::u8)
      c.fail(c.operand_name(i), ": ", store, " must be bytes, u8, of ", a.scheme);
    require_dims(c, i, {store.dim(0), quant::encoded_bytes(*s.format, lanes)},
                 cat("slots of ", lanes, " numbers"));
  }
  if (store.dim(0).is_static() && store.dim(0).value() % a.page != 0)
    c.fail(c.operand_name(i), ": ", store, " is no whole number of pages of ", a.page);
}

// The rows of all pages of each text: [batch, keys, lanes], in the type of q.
Expr gathered(const Expr& store, const Expr& slots, const Attrs& a, int64_t lanes, DType dtype) {
  const Dims at = slots.shape().dims();
  const Expr rows = gather(store, slots, 0);
  if (a.scheme.empty()) return cast(rows, dtype);
  const Expr decoded = dequantize_blocks(rows, a.scheme, {at[0] * at[1], lanes, 1});
  return cast(reshape(decoded, {at[0], at[1], lanes}), dtype);
}

}  // namespace

double PagedAttention::Attrs::scale() const {
  return score_scale ? *score_scale : 1 / std::sqrt(double(head_dim));
}

Shapes PagedAttention::infer(Infer& c, Attrs& a) {
  c.require_rank(0, 3);
  c.require_float(0);
  check_attrs(c, a);
  const Dim batch = c.in(0).dim(0), seq = c.in(0).dim(1);
  require_dims(c, 0, {batch, seq, checked_mul(a.num_heads, a.head_dim)},
               cat(a.num_heads, " heads of ", a.head_dim));
  check_store(c, 1, a, checked_mul(a.num_kv_heads, a.head_dim));
  c.require_rank(2, 2);
  for (const int i : {2, 3}) {
    if (c.in(i).dtype() != DType::i32 && c.in(i).dtype() != DType::i64)
      c.fail(c.operand_name(i), ": ", c.in(i), " must be i32 or i64");
  }
  require_dims(c, 2, {batch, c.in(2).dim(1)}, "pages of each row of q");
  require_dims(c, 3, {batch, seq}, "a position of each query");
  if (c.count() > 4) {
    check_store(c, 4, a, checked_mul(a.num_kv_heads, a.value_dim));
    c.same_dtype({1, 4});
    c.same(c.in(4).dim(0), c.in(1).dim(0), "slots of k and v");
  }
  return {c.in(0).with_dims({batch, seq, checked_mul(a.num_heads, a.value_dim)})};
}

Exprs PagedAttention::decompose(const Lower& c, const Attrs& a) {
  Graph& g = c.graph;
  const Expr q = c.in(0), pages = cast(c.in(2), DType::i64), positions = cast(c.in(3), DType::i64);
  const Dim batch = q.dim(0), seq = q.dim(1), count = pages.dim(1), keys = count * Dim(a.page);
  const Expr inside = iota(g, Shape(DType::i64, {1, 1, a.page}), 2);
  const Expr slots = reshape(unsqueeze(pages, 2) * double(a.page) + inside, {batch, keys});
  const Expr k = gathered(c.in(1), slots, a, a.num_kv_heads * a.head_dim, q.dtype());
  Expr v;
  if (c.has(4)) {
    v = gathered(c.in(4), slots, a, a.num_kv_heads * a.value_dim, q.dtype());
  } else {
    const Expr heads = reshape(k, {batch, keys, a.num_kv_heads, a.head_dim});
    v = reshape(narrow(heads, 3, 0, a.value_dim), {batch, keys, a.num_kv_heads * a.value_dim});
  }
  const Expr key = iota(g, Shape(DType::i64, {1, 1, 1, keys}), 3);
  const Expr at = reshape(positions, {batch, 1, seq, 1});
  Expr seen = compare(CompareOp::le, key, at);
  if (a.window > 0)
    seen = logical_and(seen, compare(CompareOp::lt, at - key, scalar_like(at, double(a.window))));
  return {attention_with(q, k, v, seen, {},
                         {.num_heads = a.num_heads,
                          .num_kv_heads = a.num_kv_heads,
                          .head_dim = a.head_dim,
                          .score_scale = a.score_scale,
                          .attn_logit_softcap = a.attn_logit_softcap})
              .output};
}

// As if every page were full: how many keys there are is known when it runs.
double PagedAttention::operations(std::span<const Shape> in, std::span<const Shape> out, const Attrs& a) {
  const double keys = double(in[2].dim(-1).value() * a.page);
  return 2 * (a.window > 0 ? std::min(keys, double(a.window)) : keys) *
         double(in[0].elements() + out[0].elements());
}

std::vector<OpSample<Attrs>> PagedAttention::samples() {
  return {{{.num_heads = 2, .page = 2}, {"f32[2,3,4]", "f32[8,4]", "i32[2,3] <4", "i32[2,3] <6", "f32[8,4]"}},
          {{.num_heads = 4, .num_kv_heads = 2, .page = 4, .window = 3, .score_scale = 0.3},
           {"f64[1,2,8]", "f64[8,4]", "i64[1,2] <2", "i32[1,2] <8", "f64[8,4]"}},
          {{.num_heads = 3,
            .num_kv_heads = 1,
            .head_dim = 4,
            .value_dim = 2,
            .page = 1,
            .attn_logit_softcap = 2.0},
           {"f32[2,1,12]", "f32[6,4]", "i32[2,4] <6", "i64[2,1] <4"}},
          {{.num_heads = 2, .num_kv_heads = 1, .value_dim = 3, .page = 2},
           {"f32[1,1,4]", "f16[4,2]", "i32[1,2] <2", "i32[1,1] <4", "f16[4,3]"}},
          {{.num_heads = 1, .page = 2}, {"f32[0,2,4]", "f32[4,4]", "i32[0,2]", "i32[0,2]", "f32[4,4]"}},
          {{.num_heads = 1, .head_dim = 32, .page = 1, .scheme = "gguf_q8_0"},
           {"f32[1,1,32]", "u8[2,34] <60", "i32[1,2] <2", "i32[1,1] <2", "u8[2,34] <60"}}};
}

}  // namespace rlx::ops
