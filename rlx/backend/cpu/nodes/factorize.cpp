// Factorisations of matrices: QR, symmetric eigenvalues, singular values.
#include "rlx/backend/cpu/kernels/factorize.h"

#include "rlx/backend/cpu/nodes/wide.h"
#include "rlx/ops/linalg/eigh.h"
#include "rlx/ops/linalg/qr.h"
#include "rlx/ops/linalg/svd.h"

namespace rlx::cpu {
namespace {

Support accepts(const Request& r) {
  const DType t = r.in[0].dtype();
  if (t != DType::f32 && t != DType::f64) return Support::no("no factors of ", t);
  if (const Support s = none_empty(r); !s) return s;
  return all_row_major(r);
}

template <class Factors>
Factors of_rectangles(const Arg& a) {
  Factors p;
  p.dtype = a.dtype();
  p.m = a.shape.dim(-2).value();
  p.n = a.shape.dim(-1).value();
  p.batch = a.shape.elements() / (p.m * p.n);
  return p;
}

std::unique_ptr<Step> prepare_qr(const Request& r) {
  const auto p = of_rectangles<Qr>(r.in[0]);
  return make_step(
      [p](const Launch& l) {
        Qr now = p;
        now.a = l.in[0];
        now.q = l.out[0];
        now.r = l.out[1];
        qr(l.team, now, l.workspace);
      },
      qr_workspace(p, r.threads));
}

std::unique_ptr<Step> prepare_svd(const Request& r) {
  const auto p = of_rectangles<Svd>(r.in[0]);
  return make_step(
      [p](const Launch& l) {
        Svd now = p;
        now.a = l.in[0];
        now.u = l.out[0];
        now.s = l.out[1];
        now.vt = l.out[2];
        svd(l.team, now, l.workspace);
      },
      svd_workspace(p, r.threads));
}

std::unique_ptr<Step> prepare_eigh(const Request& r) {
  const Arg& a = r.in[0];
  Eigh p{.dtype = a.dtype(), .n = a.shape.dim(-1).value()};
  p.batch = a.shape.elements() / (p.n * p.n);
  return make_step(
      [p](const Launch& l) {
        Eigh now = p;
        now.a = l.in[0];
        now.w = l.out[0];
        now.v = l.out[1];
        eigh(l.team, now, l.workspace);
      },
      eigh_workspace(p, r.threads));
}

}  // namespace

void add_factorize(KernelTable& table) {
  table.add<ops::Qr>({"qr_reflections", accepts, prepare_qr});
  table.add<ops::Svd>({"svd_matrices", accepts, prepare_svd});
  table.add<ops::Eigh>({"eigh_matrices", accepts, prepare_eigh});
  table.add<ops::Qr>(wide_kernel<accepts, prepare_qr>("qr_wide"));
  table.add<ops::Svd>(wide_kernel<accepts, prepare_svd>("svd_wide"));
  table.add<ops::Eigh>(wide_kernel<accepts, prepare_eigh>("eigh_wide"));
}

}  // namespace rlx::cpu
