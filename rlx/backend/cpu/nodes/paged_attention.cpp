#include "rlx/backend/cpu/nodes/paged_attention.h"

#include "rlx/backend/cpu/kernels/grain.h"
#include "rlx/backend/cpu/kernels/paged_attention.h"
#include "rlx/ops/attention/paged_attention.h"
#include "rlx/ops/quant/encode_blocks.h"
#include "rlx/quant/scheme.h"

namespace rlx::cpu {
namespace {

using Attrs = ops::PagedAttention::Attrs;
constexpr int64_t kQ8Elements = 32;

std::optional<KvFormat> format_of(const Arg& store, const Attrs& a) {
  if (a.scheme == "gguf_q8_0") return KvFormat::q8_0;
  if (!a.scheme.empty()) return std::nullopt;
  switch (store.dtype()) {
    case DType::f32:
      return KvFormat::f32;
    case DType::f16:
      return KvFormat::f16;
    case DType::bf16:
      return KvFormat::bf16;
    default:
      return std::nullopt;
  }
}

Support accepts(const Request& r) {
  const auto& a = r.node.as<ops::PagedAttention>();
  if (const Support s = all_row_major(r); !s) return s;
  if (const Support s = none_empty(r); !s) return s;
  if (r.in[0].dtype() != DType::f32) return Support::no("queries of ", r.in[0].dtype());
  const auto format = format_of(r.in[1], a);
  if (!format) return Support::no("keys of ", r.in[1].dtype(), " ", a.scheme);
  if (format == KvFormat::q8_0 && (a.head_dim % kQ8Elements != 0 || a.value_dim % kQ8Elements != 0))
    return Support::no("heads of ", a.head_dim, " and ", a.value_dim, " lanes are no whole blocks");
  if (r.in[2].dtype() != DType::i32 || r.in[3].dtype() != DType::i32)
    return Support::no("pages of ", r.in[2].dtype(), ", positions of ", r.in[3].dtype());
  return Support::yes();
}

PagedAttention describe(const Request& r, const Attrs& a) {
  PagedAttention p;
  p.rows = r.in[0].shape.dim(0).value();
  p.slots = r.in[1].shape.dim(0).value();
  p.page = a.page;
  p.pages_of_row = r.in[2].shape.dim(1).value();
  Attention& f = p.form;
  f.q_len = r.in[0].shape.dim(1).value();
  f.q_heads = a.num_heads;
  f.kv_heads = a.num_kv_heads;
  f.head_dim = a.head_dim;
  f.value_dim = a.value_dim;
  f.scale = float(a.scale());
  f.softcap = float(a.attn_logit_softcap.value_or(0));
  f.window = a.window > 0 ? a.window - 1 : -1;
  f.kv_format = *format_of(r.in[1], a);
  const auto packed = [&](int64_t heads, int64_t lanes) {
    return HeadStrides{f.q_len * heads * lanes, lanes, heads * lanes};
  };
  f.q_strides = packed(a.num_heads, a.head_dim);
  f.o_strides = packed(a.num_heads, a.value_dim);
  f.k_strides = packed(a.num_kv_heads, a.head_dim);
  f.v_strides = r.in.size() > 4 ? packed(a.num_kv_heads, a.value_dim) : f.k_strides;
  return p;
}

std::unique_ptr<Step> prepare(const Request& r) {
  const PagedAttention p = describe(r, r.node.as<ops::PagedAttention>());
  const size_t values = r.in.size() > 4 ? 4 : 1;
  auto step = make_step(
      [p, values](const Launch& l) {
        PagedAttention now = p;
        now.form.q = f32(l, 0);
        now.form.k = l.in[1];
        now.form.v = l.in[values];
        now.form.o = reinterpret_cast<float*>(l.out[0]);
        now.pages = reinterpret_cast<const int32_t*>(l.in[2]);
        now.positions = reinterpret_cast<const int32_t*>(l.in[3]);
        paged_attention(l.team, now, l.workspace);
      },
      paged_attention_workspace(p, r.threads));
  step->note = cat(p.form.q_heads, " heads on ", p.form.kv_heads, ", ", p.rows, " rows, pages of ", p.page);
  return step;
}

// ---- numbers to blocks ----

Support accepts_encode(const Request& r) {
  if (r.in[0].dtype() != DType::f32) return Support::no("numbers of ", r.in[0].dtype());
  if (const Support s = none_empty(r); !s) return s;
  return all_row_major(r);
}

std::unique_ptr<Step> prepare_encode(const Request& r) {
  const quant::BlockFormat format = *quant::scheme_from_text(r.node.as<ops::EncodeBlocks>().scheme)->format;
  const int64_t row = r.in[0].shape.dim(-1).value(), rows = r.in[0].shape.elements() / row;
  const int64_t bytes = quant::encoded_bytes(format, row);
  const int64_t grain = rows_worth(kHeavyGrain, row);
  return make_step([=](const Launch& l) {
    l.team.parallel_for(rows, grain, [&](int64_t begin, int64_t end) {
      quant::encode(format, {f32(l, 0) + begin * row, size_t((end - begin) * row)},
                    {l.out[0] + begin * bytes, size_t((end - begin) * bytes)});
    });
  });
}

}  // namespace

void add_paged_attention(KernelTable& table) {
  table.add<ops::PagedAttention>({"paged_attention_f32", accepts, prepare});
  table.add<ops::EncodeBlocks>({"encode_blocks_rows", accepts_encode, prepare_encode});
}

}  // namespace rlx::cpu
