#include "rlx/backend/cpu/nodes/products.h"

#include <cstring>

#include "rlx/backend/cpu/isa.h"

namespace rlx::cpu {
namespace {

Matrix matrix(const Arg& x) {
  const size_t rank = x.layout.strides.size();
  return {nullptr, x.dtype(), x.layout.strides[rank - 2], x.layout.strides[rank - 1]};
}

// run(a, offset of b, c) at every place of the outer axes.
template <class Run>
void for_each(const Product& p, std::byte* a0, std::byte* c0, Run run) {
  int64_t count = 1;
  for (const BatchAxis& x : p.outer) count *= x.size;
  for (int64_t i = 0; i < count; ++i) {
    int64_t rest = i, a = 0, b = 0, c = 0;
    for (const BatchAxis& x : p.outer) {
      const int64_t k = rest % x.size;
      rest /= x.size;
      a += k * x.a;
      b += k * x.b;
      c += k * x.c;
    }
    run(a0 + a * p.element, b * p.element, c0 + c * p.element);
  }
}

Packing packing_of(const Product& p, const Arg& w, int operand) {
  const Gemm& g = p.gemm;
  Packing packing{.operand = operand};
  packing.form = cat("gemm ", PackedMatrix::kLayoutVersion, " ", isa_name(current_isa()), " ", w.dtype(), " ",
                     g.k, "x", g.n, " ", w.layout);
  packing.make = [b = g.b, k = g.k, n = g.n](Team team,
                                             const std::byte* data) -> std::shared_ptr<const void> {
    Matrix from = b;
    from.data = data;
    return std::make_shared<const PackedMatrix>(PackedMatrix::pack(team, from, k, n, from.dtype));
  };
  packing.bytes = int64_t(PackedMatrix::described(g.k, g.n, w.dtype()).bytes());
  packing.bytes_of = [](const void* form) {
    const auto* m = static_cast<const PackedMatrix*>(form);
    return std::span(m->data(), m->bytes());
  };
  packing.restore = [k = g.k, n = g.n, dtype = w.dtype()](
                        Team team, std::span<const std::byte> bytes) -> std::shared_ptr<const void> {
    return std::make_shared<const PackedMatrix>(PackedMatrix::from_bytes(team, k, n, dtype, bytes));
  };
  return packing;
}

}  // namespace

bool Product::one_matrix() const {
  for (const BatchAxis& x : outer) {
    if (x.b != 0) return false;
  }
  return gemm.b_batch_stride == 0;
}

Product describe_product(const Arg& a, const Arg& b, const Arg& c) {
  Product p;
  Gemm& g = p.gemm;
  g.m = c.shape.dim(-2).value();
  g.n = c.shape.dim(-1).value();
  g.k = a.shape.dim(-1).value();
  g.a = matrix(a);
  g.b = matrix(b);
  g.c_dtype = c.dtype();
  g.c_row_stride = g.n;
  p.element = int64_t(dtype_size(a.dtype()));
  p.outer = batch_axes(a, b, c);
  if (p.outer.empty()) return p;
  const BatchAxis in = p.outer.front();
  p.outer.erase(p.outer.begin());
  if (in.b == 0 && in.a == g.m * g.a.row_stride) {
    g.m *= in.size;  // the same matrix for all: more rows
  } else {
    g.batch = in.size;
    g.a_batch_stride = in.a;
    g.b_batch_stride = in.b;
    g.c_batch_stride = in.c;
  }
  return p;
}

Support accepts_product(const Arg& a, const Arg& b, const Arg& c) {
  const DType t = a.dtype();
  if (t != DType::f32 && t != DType::f16 && t != DType::bf16 && t != DType::f64 && t != DType::c64)
    return Support::no("no product of ", t);
  if (b.dtype() != t || c.dtype() != t) return Support::no("dtypes are mixed");
  return Support::yes();
}

std::unique_ptr<Step> prepare_product(const Request& r, const Product& described,
                                      const ProductOperands& which) {
  Product p = described;
  for (const EpilogueOperand& e : which.epilogue) p.gemm.epilogue.then(e.step);
  std::vector<int> data;
  for (const EpilogueOperand& e : which.epilogue) data.push_back(e.operand);
  const Arg& w = r.in[size_t(which.b)];
  const bool packed = w.fixed && p.one_matrix();
  std::vector<Packing> packings;
  Gemm sized = p.gemm;
  const PackedMatrix later = PackedMatrix::described(p.gemm.k, p.gemm.n, w.dtype());
  if (packed) {
    packings.push_back(packing_of(p, w, which.b));
    sized.packed_b = &later;
  }
  auto step = make_step(
      [p, data, packed, a = which.a, b = which.b](const Launch& l) {
        for_each(p, l.in[a], l.out[0], [&](std::byte* at_a, int64_t at_b, std::byte* at_c) {
          Gemm g = p.gemm;
          g.a.data = at_a;
          if (packed) {
            g.packed_b = static_cast<const PackedMatrix*>(l.packed[0]);
          } else {
            g.b.data = l.in[b] + at_b;
          }
          g.c = at_c;
          for (size_t i = 0; i < data.size(); ++i) {
            if (data[i] >= 0) g.epilogue.steps[i].data = l.in[data[i]];
          }
          gemm(l.team, g, l.workspace);
        });
      },
      gemm_workspace(sized, r.threads), std::move(packings));
  if (packed) step->note = "packed weights";
  return step;
}

}  // namespace rlx::cpu
