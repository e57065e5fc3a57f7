// Matrix products of two operands.
#include <cstring>

#include "rlx/backend/cpu/isa.h"
#include "rlx/backend/cpu/kernels/gemm.h"
#include "rlx/backend/cpu/nodes/families.h"
#include "rlx/ops/linalg/matmul.h"

namespace rlx::cpu {
namespace {

struct BatchAxis {
  int64_t size, a, b, c;  // strides in elements
};

// The leading axes of a product, broadcast to those of the result and joined where the strides allow it; the innermost
// comes first.
std::vector<BatchAxis> batch_axes(const Arg& a, const Arg& b, const Arg& c) {
  std::vector<BatchAxis> out;
  const int rank = c.shape.rank();
  const auto stride = [&](const Arg& x, int axis) -> int64_t {
    const int own = axis - (rank - x.shape.rank());
    if (own < 0 || x.shape.dim(own) == Dim(1)) return 0;
    return x.layout.strides[size_t(own)];
  };
  for (int axis = rank - 3; axis >= 0; --axis) {
    const BatchAxis x{c.shape.dim(axis).value(), stride(a, axis), stride(b, axis), stride(c, axis)};
    if (x.size == 1) continue;
    if (!out.empty()) {
      BatchAxis& in = out.back();
      if (x.a == in.size * in.a && x.b == in.size * in.b && x.c == in.size * in.c) {
        in.size *= x.size;
        continue;
      }
    }
    out.push_back(x);
  }
  return out;
}

Matrix matrix(const Arg& x) {
  const size_t rank = x.layout.strides.size();
  return {nullptr, x.dtype(), x.layout.strides[rank - 2], x.layout.strides[rank - 1]};
}

struct Product {
  Gemm gemm;
  std::vector<BatchAxis> outer;  // axes that remain beside the batch of the gemm
  int64_t element = 4;

  bool one_matrix() const {
    for (const BatchAxis& x : outer) {
      if (x.b != 0) return false;
    }
    return gemm.b_batch_stride == 0;
  }
};

Product describe(const Arg& a, const Arg& b, const Arg& c) {
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

Support accepts(const Request& r) {
  const DType t = r.in[0].dtype();
  if (t != DType::f32 && t != DType::f16 && t != DType::bf16 && t != DType::f64 && t != DType::c64)
    return Support::no("no product of ", t);
  if (r.in[1].dtype() != t || r.out[0].dtype() != t) return Support::no("dtypes are mixed");
  return Support::yes();
}

// run(a, offset of b, c) at every place of the outer axes.
template <class Run>
void for_each(const Product& p, const Launch& l, Run run) {
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
    run(l.in[0] + a * p.element, b * p.element, l.out[0] + c * p.element);
  }
}

std::unique_ptr<Step> two_activations(const Product& p, int threads) {
  return make_step(
      [p](const Launch& l) {
        for_each(p, l, [&](std::byte* a, int64_t b, std::byte* c) {
          Gemm g = p.gemm;
          g.a.data = a;
          g.b.data = l.in[1] + b;
          g.c = c;
          gemm(l.team, g, l.workspace);
        });
      },
      gemm_workspace(p.gemm, threads));
}

std::unique_ptr<Step> packed_weights(const Product& p, const Arg& w, int threads) {
  const Gemm& g = p.gemm;
  Packing packing{.operand = 1};
  packing.form = cat("gemm ", isa_name(current_isa()), " ", w.dtype(), " ", g.k, "x", g.n, " ", w.layout);
  packing.make = [b = g.b, k = g.k, n = g.n](Team team,
                                             const std::byte* data) -> std::shared_ptr<const void> {
    Matrix from = b;
    from.data = data;
    return std::make_shared<const PackedMatrix>(PackedMatrix::pack(team, from, k, n, from.dtype));
  };
  const PackedMatrix later = PackedMatrix::described(g.k, g.n, w.dtype());
  packing.bytes = int64_t(later.bytes());
  Gemm sized = g;
  sized.packed_b = &later;
  auto step = make_step(
      [p](const Launch& l) {
        for_each(p, l, [&](std::byte* a, int64_t, std::byte* c) {
          Gemm product = p.gemm;
          product.a.data = a;
          product.packed_b = static_cast<const PackedMatrix*>(l.packed[0]);
          product.c = c;
          gemm(l.team, product, l.workspace);
        });
      },
      gemm_workspace(sized, threads), {packing});
  step->note = "packed weights";
  return step;
}

std::unique_ptr<Step> prepare(const Request& r) {
  const Arg& c = r.out[0];
  if (c.shape.elements() == 0) return make_step([](const Launch&) {});
  const Product p = describe(r.in[0], r.in[1], c);
  if (p.gemm.k == 0) {
    return make_step(
        [bytes = size_t(c.shape.size_bytes())](const Launch& l) { std::memset(l.out[0], 0, bytes); });
  }
  return r.in[1].fixed && p.one_matrix() ? packed_weights(p, r.in[1], r.threads)
                                         : two_activations(p, r.threads);
}

}  // namespace

void add_matmul(KernelTable& table) { table.add<ops::Matmul>({"matmul_gemm", accepts, prepare}); }

}  // namespace rlx::cpu
