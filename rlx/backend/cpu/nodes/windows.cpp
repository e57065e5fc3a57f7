// Sliding windows as axes of their own, and the sum that takes them back.
#include "rlx/ops/conv/windows.h"

#include "rlx/backend/cpu/kernels/windows.h"
#include "rlx/backend/cpu/nodes/wide.h"

namespace rlx::cpu {
namespace {

constexpr int kAxes = int(std::tuple_size_v<Extents>);

Support accepts_axes(const Request& r, size_t axes) {
  if (axes > kAxes) return Support::no(axes, " axes");
  if (const Support s = none_empty(r); !s) return s;
  return all_row_major(r);
}

// `x` is the tensor that the windows slide along, `windows` holds them.
template <class Attrs>
Windows describe(const Arg& x, const Arg& windows, const Attrs& a) {
  Windows p{.dtype = x.dtype()};
  const int axes = int(a.stride.size()), lead = x.shape.rank() - axes;
  for (int i = 0; i < lead; ++i) p.planes *= x.shape.dim(i).value();
  for (int i = 0; i < axes; ++i) {
    const auto to = size_t(kAxes - axes + i);
    p.size[to] = x.shape.dim(lead + i).value();
    p.out[to] = windows.shape.dim(lead + i).value();
    p.kernel[to] = windows.shape.dim(lead + axes + i).value();
    p.stride[to] = a.stride[size_t(i)];
    p.padding[to] = a.padding[size_t(i)];
  }
  return p;
}

template <class Run>
std::unique_ptr<Step> prepare_run(const Windows& p, Run run) {
  return make_step([p, run](const Launch& l) {
    Windows now = p;
    now.from = l.in[0];
    now.to = l.out[0];
    run(l.team, now);
  });
}

Support accepts(const Request& r) { return accepts_axes(r, r.node.as<ops::Windows>().stride.size()); }

std::unique_ptr<Step> prepare(const Request& r) {
  return prepare_run(describe(r.in[0], r.out[0], r.node.as<ops::Windows>()), windows);
}

Support accepts_sum(const Request& r) {
  const DType t = r.in[0].dtype();
  if (t != DType::f32 && t != DType::f64 && t != DType::i32 && t != DType::i64)
    return Support::no("no sums of ", t);
  return accepts_axes(r, r.node.as<ops::WindowsSum>().stride.size());
}

std::unique_ptr<Step> prepare_sum(const Request& r) {
  return prepare_run(describe(r.out[0], r.in[0], r.node.as<ops::WindowsSum>()), windows_sum);
}

}  // namespace

void add_windows(KernelTable& table) {
  table.add<ops::Windows>({"windows_copy", accepts, prepare});
  table.add<ops::WindowsSum>({"windows_sum_planes", accepts_sum, prepare_sum});
  table.add<ops::WindowsSum>(wide_kernel<accepts_sum, prepare_sum>("windows_sum_wide"));
}

}  // namespace rlx::cpu
