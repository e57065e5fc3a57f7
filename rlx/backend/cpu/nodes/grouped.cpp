// Rows with an expert each: products with the expert's matrix, and sums of outer products by expert.
//
// Rows are brought together by expert first, so that every matrix is read once for all its rows.
#include <cstring>

#include "rlx/backend/cpu/isa.h"
#include "rlx/backend/cpu/kernels/gemm.h"
#include "rlx/backend/cpu/kernels/sizes.h"
#include "rlx/backend/cpu/nodes/packed.h"
#include "rlx/backend/cpu/nodes/whole_numbers.h"
#include "rlx/ops/linear/grouped_matmul.h"

namespace rlx::cpu {
namespace {

Support accepts(const Request& r) {
  const DType t = r.in[0].dtype();
  if (t != DType::f32 && t != DType::f16 && t != DType::bf16 && t != DType::f64 && t != DType::c64)
    return Support::no("no product of ", t);
  if (const Support s = none_empty(r); !s) return s;
  if (const Support s = accepts_whole_numbers(r, 2); !s) return s;
  return all_row_major(r);
}

// The order of rows by expert and copies of rows in it.
struct Experts {
  WholeNumbers ids;
  int64_t rows, experts;

  size_t offsets_bytes() const { return round_up(size_t(experts + 1) * sizeof(int64_t)); }
  size_t order_bytes() const { return round_up(size_t(rows) * sizeof(int64_t)); }
  size_t workspace() const { return ids.wide_workspace() + offsets_bytes() + order_bytes(); }
  size_t rows_bytes(int64_t row_bytes) const { return round_up(size_t(rows * row_bytes)); }

  struct Sorted {
    const int64_t *offsets, *order;
  };
  Sorted sort(const Launch& l) const {
    const int64_t* numbers = ids.wide_below(experts, l, l.workspace);
    auto* offsets = reinterpret_cast<int64_t*>(l.workspace + ids.wide_workspace());
    auto* order = reinterpret_cast<int64_t*>(l.workspace + ids.wide_workspace() + offsets_bytes());
    group_rows(numbers, rows, experts, offsets, order);
    return {offsets, order};
  }
  void bring(Team team, const Sorted& s, const std::byte* from, int64_t bytes, std::byte* to) const {
    team.parallel_for(rows, grain(bytes), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        std::memcpy(to + i * bytes, from + s.order[i] * bytes, size_t(bytes));
    });
  }
  void bring_back(Team team, const Sorted& s, const std::byte* from, int64_t bytes, std::byte* to) const {
    team.parallel_for(rows, grain(bytes), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        std::memcpy(to + s.order[i] * bytes, from + i * bytes, size_t(bytes));
    });
  }
  // Rows below which a second thread costs more than it brings.
  static int64_t grain(int64_t bytes) { return std::max<int64_t>(1, 65536 / std::max<int64_t>(1, bytes)); }
};

Packing packing_of(const Arg& w) {
  const int64_t experts = w.shape.dim(0).value(), k = w.shape.dim(1).value(), n = w.shape.dim(2).value();
  Packing packing{.operand = 1};
  packing.form = cat("experts ", PackedMatrix::kLayoutVersion, " ", isa_name(current_isa()), " ", w.dtype(),
                     " ", experts, "x", k, "x", n);
  packing.bytes = int64_t(PackedMatrix::bytes_in_a_row(experts, k, n, w.dtype()));
  packing.make = [experts, k, n, t = w.dtype()](Team team,
                                                const std::byte* data) -> std::shared_ptr<const void> {
    auto made = std::make_shared<std::vector<PackedMatrix>>(PackedMatrix::in_a_row(experts, k, n, t));
    for (int64_t e = 0; e < experts; ++e)
      (*made)[size_t(e)].fill(team, {data + e * k * n * int64_t(dtype_size(t)), t, n, 1});
    return {made, made->data()};
  };
  packing.bytes_of = [experts](const void* form) -> std::span<const std::byte> {
    return PackedMatrix::contents({static_cast<const PackedMatrix*>(form), size_t(experts)});
  };
  packing.restore = [experts, k, n, t = w.dtype()](
                        Team team, std::span<const std::byte> bytes) -> std::shared_ptr<const void> {
    auto made = std::make_shared<std::vector<PackedMatrix>>(PackedMatrix::in_a_row(experts, k, n, t));
    copy_bytes(team, bytes, PackedMatrix::contents(*made));
    return {made, made->data()};
  };
  return packing;
}

std::unique_ptr<Step> prepare_matmul(const Request& r) {
  const Arg &x = r.in[0], &w = r.in[1];
  const Experts experts{WholeNumbers(r, 2), x.shape.dim(0).value(), w.shape.dim(0).value()};
  Gemm g{.m = experts.rows, .n = w.shape.dim(2).value(), .k = w.shape.dim(1).value()};
  g.a = {nullptr, x.dtype(), g.k, 1};
  g.b = {nullptr, w.dtype(), g.n, 1};
  g.b_batch_stride = g.k * g.n;
  g.groups.count = experts.experts;
  g.c_dtype = x.dtype();
  g.c_row_stride = g.n;
  const auto element = int64_t(dtype_size(x.dtype()));
  const size_t sorted = experts.workspace(), x_bytes = experts.rows_bytes(g.k * element);
  const size_t y_bytes = experts.rows_bytes(g.n * element);
  const bool packed = w.fixed;
  const PackedMatrix later = PackedMatrix::described(g.k, g.n, w.dtype());
  Gemm sized = g;
  if (packed) sized.packed_b = &later;
  std::vector<Packing> packings;
  if (packed) packings.push_back(packing_of(w));
  auto step = make_step(
      [=](const Launch& l) {
        const Experts::Sorted s = experts.sort(l);
        std::byte *a = l.workspace + sorted, *c = a + x_bytes;
        experts.bring(l.team, s, l.in[0], g.k * element, a);
        Gemm now = g;
        now.groups.offsets = s.offsets;
        now.a.data = a;
        now.c = c;
        if (packed) {
          now.packed_b = static_cast<const PackedMatrix*>(l.packed[0]);
        } else {
          now.b.data = l.in[1];
        }
        gemm(l.team, now, c + y_bytes);
        experts.bring_back(l.team, s, c, g.n * element, l.out[0]);
      },
      sorted + x_bytes + y_bytes + gemm_workspace(sized, r.threads), std::move(packings));
  step->note = cat(experts.experts, packed ? " experts, packed weights" : " experts");
  return step;
}

// The sum over the rows of an expert is the inner size of its product.
std::unique_ptr<Step> prepare_outer(const Request& r) {
  const Arg &x = r.in[0], &y = r.in[1], &w = r.out[0];
  const Experts experts{WholeNumbers(r, 2), x.shape.dim(0).value(), w.shape.dim(0).value()};
  Gemm g{.m = w.shape.dim(1).value(), .n = w.shape.dim(2).value(), .k = experts.rows};
  g.a = {nullptr, x.dtype(), 1, g.m};
  g.b = {nullptr, y.dtype(), g.n, 1};
  g.c_dtype = x.dtype();
  g.c_row_stride = g.n;
  const auto element = int64_t(dtype_size(x.dtype()));
  const size_t sorted = experts.workspace(), x_bytes = experts.rows_bytes(g.m * element);
  const size_t y_bytes = experts.rows_bytes(g.n * element);
  return make_step(
      [=](const Launch& l) {
        const Experts::Sorted s = experts.sort(l);
        std::byte *a = l.workspace + sorted, *b = a + x_bytes;
        experts.bring(l.team, s, l.in[0], g.m * element, a);
        experts.bring(l.team, s, l.in[1], g.n * element, b);
        const int64_t matrix = g.m * g.n * element;
        for (int64_t e = 0; e < experts.experts; ++e) {
          Gemm now = g;
          now.k = s.offsets[e + 1] - s.offsets[e];
          now.a.data = a + s.offsets[e] * g.m * element;
          now.b.data = b + s.offsets[e] * g.n * element;
          now.c = l.out[0] + e * matrix;
          if (now.k == 0) {
            std::memset(now.c, 0, size_t(matrix));
          } else {
            gemm(l.team, now, b + y_bytes);
          }
        }
      },
      sorted + x_bytes + y_bytes + gemm_workspace(g, r.threads));
}

}  // namespace

void add_grouped(KernelTable& table) {
  table.add<ops::GroupedMatmul>({"grouped_matmul_gemm", accepts, prepare_matmul});
  table.add<ops::GroupedOuter>({"grouped_outer_gemm", accepts, prepare_outer});
}

}  // namespace rlx::cpu
