// Fourier transforms of the last axis.
#include "rlx/backend/cpu/kernels/fft.h"

#include <cmath>

#include "rlx/backend/builder.h"
#include "rlx/backend/cpu/nodes/wide.h"
#include "rlx/ops/fft/fft.h"

namespace rlx::cpu {
namespace {

Support accepts(const Request& r) {
  const DType t = r.in[0].dtype();
  if (t != DType::c64 && t != DType::f32 && t != DType::f64) return Support::no("no transform of ", t);
  if (const Support s = none_empty(r); !s) return s;
  return all_row_major(r);
}

double scale_of(int64_t n, const ops::Fft::Attrs& a) {
  if (a.norm == ops::FftNorm::ortho) return 1 / std::sqrt(double(n));
  return a.norm == ops::FftNorm::forward && a.inverse ? 1 / double(n) : 1;
}

// Complex numbers are pairs; a real row holds its real parts, then its imaginary parts.
std::unique_ptr<Step> prepare(const Request& r) {
  const auto& a = r.node.as<ops::Fft>();
  const Arg& x = r.in[0];
  const bool pairs = x.dtype() == DType::c64;
  const int64_t length = x.shape.dim(-1).value(), n = pairs ? length : length / 2;
  const DType part = pairs ? DType::f32 : x.dtype();
  const auto plan = std::make_shared<const FftPlan>(n, part);
  Fft p{.plan = plan.get(), .inverse = a.inverse, .scale = scale_of(n, a)};
  p.alone = backend::batch_independent(r);
  p.rows = x.shape.elements() / length;
  p.x_stride = p.y_stride = pairs ? 2 : 1;
  p.x_row_stride = p.y_row_stride = 2 * n;
  const int64_t imaginary = (pairs ? 1 : n) * int64_t(dtype_size(part));  // bytes behind the real parts
  auto step = make_step(
      [plan, p, imaginary](const Launch& l) {
        Fft now = p;
        now.x_re = l.in[0];
        now.x_im = l.in[0] + imaginary;
        now.y_re = l.out[0];
        now.y_im = l.out[0] + imaginary;
        fft(l.team, now, l.workspace);
      },
      fft_workspace(p, r.threads));
  step->in_place = {0};
  step->note = cat(p.rows, " transforms of ", n);
  return step;
}

}  // namespace

void add_fft(KernelTable& table) {
  table.add<ops::Fft>({"fft_rows", accepts, prepare});
  table.add<ops::Fft>(wide_kernel<accepts, prepare>("fft_wide"));
}

}  // namespace rlx::cpu
