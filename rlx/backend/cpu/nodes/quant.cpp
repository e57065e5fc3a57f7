// Products with quantised weights, which stay packed.
//
// Activations as the node says: exact in f32 with decoded weights, or rounded to 8 bits, where codes meet codes.
#include <cstring>

#include "rlx/backend/cpu/isa.h"
#include "rlx/backend/cpu/kernels/quant/quant_product.h"
#include "rlx/backend/cpu/kernels/quant/quant_transposed.h"
#include "rlx/backend/cpu/kernels/sizes.h"
#include "rlx/backend/cpu/nodes/packed.h"
#include "rlx/backend/cpu/nodes/quant_blocks.h"
#include "rlx/backend/cpu/nodes/requantize.h"
#include "rlx/ops/quant/dequant_matmul.h"

namespace rlx::cpu {
namespace {

std::string_view packed_note(const Request& r) {
  return r.in[1].fixed ? "packed blocks" : "blocks packed in each run";
}

QuantProduct product_of(const Request& r, ops::Activations activations) {
  return block_product(r.in[0].shape, r.out[0].shape, activations);
}

QuantProduct product_of(const Request& r) {
  return product_of(r, r.node.as<ops::DequantMatmul>().activations);
}

Support accepts_matmul(const Request& r) { return accepts_blocks(r, r.node.as<ops::DequantMatmul>().scheme); }

// Weights that every run gives anew, as in the body of a loop, are packed when it runs.
std::unique_ptr<Step> prepare_matmul(const Request& r) {
  const QuantProduct p = product_of(r);
  const Blocks blocks(r.node.as<ops::DequantMatmul>().scheme, 1, p.y_stride, p.x_stride);
  auto step = with_packed(r, blocks.packing(), blocks.now(), workspace_of(p),
                          [p](const Launch& l, const void* packed) {
                            QuantProduct now = p;
                            now.x = f32(l, 0);
                            now.w = static_cast<const QuantMatrix*>(packed);
                            now.y = reinterpret_cast<float*>(l.out[0]);
                            quant_product(l.team, now, l.workspace);
                          });
  step->note = cat(packed_note(r), activations_note(p));
  return step;
}

// ---- the gradient's product, from the form that the forward one keeps ----

Support accepts_transposed(const Request& r) {
  return accepts_blocks(r, r.node.as<ops::DequantMatmulTransposed>().scheme);
}

std::unique_ptr<Step> prepare_transposed(const Request& r) {
  QuantTransposed p{.n = r.in[0].shape.dim(-1).value(), .k = r.out[0].shape.dim(-1).value()};
  p.m = r.in[0].shape.elements() / p.n;
  p.x_stride = p.n;
  p.y_stride = p.k;
  const Blocks blocks(r.node.as<ops::DequantMatmulTransposed>().scheme, 1, p.n, p.k);
  auto step = with_packed(r, blocks.packing(), blocks.now(), quant_transposed_workspace(p, r.threads),
                          [p](const Launch& l, const void* packed) {
                            QuantTransposed now = p;
                            now.x = f32(l, 0);
                            now.w = static_cast<const QuantMatrix*>(packed);
                            now.y = reinterpret_cast<float*>(l.out[0]);
                            quant_transposed(l.team, now, l.workspace);
                          });
  step->note = "packed blocks, decoded in parts";
  return step;
}

// ---- rows with an expert each ----

Support accepts_grouped(const Request& r) {
  const DType t = r.in[2].dtype();
  if (t != DType::i32 && t != DType::i64) return Support::no("experts are ", t);
  return accepts_blocks(r, r.node.as<ops::DequantGroupedMatmul>().scheme);
}

// Rows are brought together by expert, so that the blocks of an expert are read once for all its rows.
struct GroupedRows {
  QuantProduct product;
  int64_t experts = 0;
  bool wide = false;

  size_t starts_bytes() const { return round_up(size_t(experts + 1) * sizeof(int64_t)); }
  size_t order_bytes() const { return round_up(size_t(product.m) * sizeof(int64_t)); }
  size_t x_bytes() const { return round_up(size_t(product.m * product.x_stride) * sizeof(float)); }
  size_t y_bytes() const { return round_up(size_t(product.m * product.y_stride) * sizeof(float)); }

  size_t before_codes() const { return starts_bytes() + order_bytes() + x_bytes() + y_bytes(); }
  size_t workspace() const { return before_codes() + workspace_of(product); }

  int64_t expert(const std::byte* data, int64_t i) const {
    const int64_t e =
        wide ? reinterpret_cast<const int64_t*>(data)[i] : int64_t(reinterpret_cast<const int32_t*>(data)[i]);
    if (e < 0 || e >= experts) {
      throw invalid("dequant_grouped_matmul: element ", i, " of experts is ", e,
                    "; it must be at least 0 and below ", experts);
    }
    return e;
  }

  /// order = rows sorted by expert, those of expert e from starts[e] on.
  void sort_rows(const std::byte* ids, int64_t* starts, int64_t* order) const {
    std::fill_n(starts, experts + 1, int64_t(0));
    for (int64_t i = 0; i < product.m; ++i) ++starts[expert(ids, i) + 1];
    for (int64_t e = 0; e < experts; ++e) starts[e + 1] += starts[e];
    for (int64_t i = 0; i < product.m; ++i) order[starts[expert(ids, i)]++] = i;
    for (int64_t e = experts; e > 0; --e) starts[e] = starts[e - 1];
    starts[0] = 0;
  }

  void run(const Launch& l, const QuantMatrix* w) const {
    auto* starts = reinterpret_cast<int64_t*>(l.workspace);
    auto* order = reinterpret_cast<int64_t*>(l.workspace + starts_bytes());
    auto* x = reinterpret_cast<float*>(l.workspace + starts_bytes() + order_bytes());
    auto* y = reinterpret_cast<float*>(l.workspace + starts_bytes() + order_bytes() + x_bytes());
    sort_rows(l.in[2], starts, order);
    const int64_t k = product.x_stride, n = product.y_stride;
    const auto* from = reinterpret_cast<const float*>(l.in[0]);
    auto* to = reinterpret_cast<float*>(l.out[0]);
    for (int64_t i = 0; i < product.m; ++i)
      std::memcpy(x + i * k, from + order[i] * k, size_t(k) * sizeof(float));
    for (int64_t e = 0; e < experts; ++e) {
      QuantProduct now = product;
      now.m = starts[e + 1] - starts[e];
      now.x = x + starts[e] * k;
      now.w = w + e;
      now.y = y + starts[e] * n;
      quant_product(l.team, now, l.workspace + before_codes());
    }
    for (int64_t i = 0; i < product.m; ++i)
      std::memcpy(to + order[i] * n, y + i * n, size_t(n) * sizeof(float));
  }
};

GroupedRows grouped_rows(const Request& r) {
  const auto& a = r.node.as<ops::DequantGroupedMatmul>();
  return {product_of(r, a.activations), a.num_experts.value(), r.in[2].dtype() == DType::i64};
}

std::unique_ptr<Step> prepare_grouped(const Request& r) {
  const GroupedRows rows = grouped_rows(r);
  const Blocks blocks(r.node.as<ops::DequantGroupedMatmul>().scheme, rows.experts, rows.product.y_stride,
                      rows.product.x_stride);
  auto step = with_packed(
      r, blocks.packing(), blocks.now(), rows.workspace(),
      [rows](const Launch& l, const void* packed) { rows.run(l, static_cast<const QuantMatrix*>(packed)); });
  step->note = cat(rows.experts, " experts, ", packed_note(r));
  return step;
}

// ---- codes of 8 bits ----

Support accepts_codes(const Request& r) {
  if (const Support s = none_empty(r); !s) return s;
  return all_row_major(r);
}

std::unique_ptr<Step> prepare_codes(const Request& r) {
  const auto& a = r.node.as<ops::QMatmul>();
  GemmInt8 g;
  g.k = r.in[0].shape.dim(-1).value();
  g.n = r.out[0].shape.dim(-1).value();
  g.m = r.in[0].shape.elements() / g.k;
  g.a = {nullptr, r.in[0].shape.dtype(), g.k, 1};
  g.a_zero = int32_t(a.x_zp);
  g.c_dtype = r.out[0].shape.dtype();
  g.c_row_stride = g.n;
  g.requantize = requantize_of(a);
  const auto zero = int32_t(a.w_zp);
  Packing packing{.operand = 1};
  packing.form = cat("codes ", PackedInt8::kLayoutVersion, " ", isa_name(current_isa()), " ", g.k, "x", g.n,
                     " zero ", zero);
  packing.bytes = int64_t(PackedInt8::bytes_of(g.k, g.n, zero != 0));
  const PackedNow anew = add_makers<PackedInt8>(
      packing, size_t(packing.bytes),
      [k = g.k, n = g.n, zero](Team team, const std::byte* data, std::byte* lent) {
        return PackedInt8::pack(team, {data, DType::i8, n, 1}, k, n, zero, nullptr, lent);
      });
  packing.bytes_of = [](const void* form) {
    const auto* codes = static_cast<const PackedInt8*>(form);
    return std::span(codes->data(), codes->bytes());
  };
  packing.restore = [k = g.k, n = g.n, zero](
                        Team, std::span<const std::byte> bytes) -> std::shared_ptr<const void> {
    return std::make_shared<const PackedInt8>(PackedInt8::from_bytes(k, n, zero != 0, bytes));
  };
  // One code with this zero point: whether there is one decides what the product needs.
  const int8_t code = 0;
  const PackedInt8 like = PackedInt8::pack(Team(default_pool(), 1), {&code, DType::i8, 1, 1}, 1, 1, zero);
  GemmInt8 sized = g;
  sized.b = &like;
  auto step = with_packed(r, packing, anew, gemm_int8_workspace(sized, r.threads),
                          [g, mults = a.mults](const Launch& l, const void* codes) {
                            GemmInt8 now = g;
                            if (!mults.empty()) now.requantize.multipliers = mults.data();
                            now.a.data = l.in[0];
                            now.b = static_cast<const PackedInt8*>(codes);
                            now.bias = reinterpret_cast<const int32_t*>(l.in[2]);
                            now.c = l.out[0];
                            gemm_int8(l.team, now, l.workspace);
                          });
  step->note = "packed codes";
  return step;
}

}  // namespace

void add_quant(KernelTable& table) {
  table.add<ops::DequantMatmul>({"dequant_matmul_blocks_f32", accepts_matmul, prepare_matmul});
  table.add<ops::DequantMatmulTransposed>(
      {"dequant_matmul_transposed_blocks_f32", accepts_transposed, prepare_transposed});
  table.add<ops::DequantGroupedMatmul>(
      {"dequant_grouped_matmul_blocks_f32", accepts_grouped, prepare_grouped});
  table.add<ops::QMatmul>({"q_matmul_codes_i8", accepts_codes, prepare_codes});
}

}  // namespace rlx::cpu
