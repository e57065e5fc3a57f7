// Matrix products of integers, exact modulo the width of the result.
#include "rlx/backend/cpu/nodes/integer_products.h"

#include "rlx/backend/cpu/isa.h"
#include "rlx/backend/cpu/kernels/gemm_int8.h"
#include "rlx/backend/cpu/kernels/integer_product.h"
#include "rlx/backend/cpu/nodes/products.h"
#include "rlx/backend/cpu/nodes/wide.h"
#include "rlx/ops/linalg/matmul.h"

namespace rlx::cpu {
namespace {

// ---- codes of 8 bits with fixed weights ----

bool is_byte(DType t) { return t == DType::i8 || t == DType::u8; }

Support accepts_codes(const Request& r) {
  const Arg &a = r.in[0], &b = r.in[1];
  if (!is_byte(a.dtype()) || b.dtype() != DType::i8)
    return Support::no("codes are ", a.dtype(), " and ", b.dtype(), ", not u8 or i8 and i8");
  if (!b.fixed || b.shape.rank() != 2) return Support::no("the second operand is no fixed matrix");
  if (const Support s = none_empty(r); !s) return s;
  return all_row_major(r);
}

std::unique_ptr<Step> prepare_codes(const Request& r) {
  GemmInt8 g;
  g.k = r.in[0].shape.dim(-1).value();
  g.n = r.out[0].shape.dim(-1).value();
  g.m = r.in[0].shape.elements() / g.k;
  g.a = {nullptr, r.in[0].dtype(), g.k, 1};
  g.c_dtype = DType::i32;
  g.c_row_stride = g.n;
  Packing packing{.operand = 1};
  packing.form =
      cat("codes ", PackedInt8::kLayoutVersion, " ", isa_name(current_isa()), " ", g.k, "x", g.n, " zero 0");
  packing.bytes = int64_t(PackedInt8::bytes_of(g.k, g.n, false));
  packing.make = [k = g.k, n = g.n](Team team, const std::byte* data) -> std::shared_ptr<const void> {
    return std::make_shared<const PackedInt8>(PackedInt8::pack(team, {data, DType::i8, n, 1}, k, n));
  };
  packing.bytes_of = [](const void* form) {
    const auto* codes = static_cast<const PackedInt8*>(form);
    return std::span(codes->data(), codes->bytes());
  };
  packing.restore = [k = g.k, n = g.n](Team,
                                       std::span<const std::byte> bytes) -> std::shared_ptr<const void> {
    return std::make_shared<const PackedInt8>(PackedInt8::from_bytes(k, n, false, bytes));
  };
  const int8_t code = 0;
  const PackedInt8 like = PackedInt8::pack(Team(default_pool(), 1), {&code, DType::i8, 1, 1}, 1, 1);
  GemmInt8 sized = g;
  sized.b = &like;
  auto step = make_step(
      [g](const Launch& l) {
        GemmInt8 now = g;
        now.a.data = l.in[0];
        now.b = static_cast<const PackedInt8*>(l.packed[0]);
        now.c = l.out[0];
        gemm_int8(l.team, now, l.workspace);
      },
      gemm_int8_workspace(sized, r.threads), {packing});
  step->note = "packed codes";
  return step;
}

}  // namespace

// ---- i32 and i64, any strides ----

Support accepts_integers(const Request& r) {
  const DType t = r.out[0].dtype();
  if (t != DType::i32 && t != DType::i64) return Support::no("no sums of ", t);
  return all_of(r, t);
}

std::unique_ptr<Step> prepare_integers(const Request& r) {
  if (r.out[0].shape.elements() == 0) return make_step([](const Launch&) {});
  const Product p = describe_product(r.in[0], r.in[1], r.out[0]);
  IntegerProduct q{.dtype = r.out[0].dtype(), .m = p.gemm.m, .n = p.gemm.n, .k = p.gemm.k};
  q.a_row = p.gemm.a.row_stride, q.a_column = p.gemm.a.column_stride;
  q.b_row = p.gemm.b.row_stride, q.b_column = p.gemm.b.column_stride;
  q.c_row = q.n;
  std::vector<BatchAxis> axes = p.outer;
  if (p.gemm.batch > 1)
    axes.insert(axes.begin(),
                {p.gemm.batch, p.gemm.a_batch_stride, p.gemm.b_batch_stride, p.gemm.c_batch_stride});
  return make_step([q, axes, element = p.element](const Launch& l) {
    int64_t count = 1;
    for (const BatchAxis& x : axes) count *= x.size;
    for (int64_t i = 0; i < count; ++i) {
      int64_t rest = i, a = 0, b = 0, c = 0;
      for (const BatchAxis& x : axes) {
        a += rest % x.size * x.a;
        b += rest % x.size * x.b;
        c += rest % x.size * x.c;
        rest /= x.size;
      }
      IntegerProduct now = q;
      now.a = l.in[0] + a * element;
      now.b = l.in[1] + b * element;
      now.c = l.out[0] + c * element;
      integer_product(l.team, now);
    }
  });
}

void add_integer_products(KernelTable& table) {
  table.add<ops::Matmul>({"matmul_codes_i8", accepts_codes, prepare_codes});
  table.add<ops::Matmul>({"matmul_integers", accepts_integers, prepare_integers});
  table.add<ops::Matmul>(wide_kernel<accepts_integers, prepare_integers>("matmul_integers_wide"));
}

}  // namespace rlx::cpu
