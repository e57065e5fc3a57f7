// Resampling of the last one to three axes and its transpose, in f32.
#include "rlx/backend/cpu/kernels/resize.h"

#include "rlx/backend/cpu/nodes/wide.h"
#include "rlx/ops/conv/resize.h"

namespace rlx::cpu {
namespace {

Support accepts_axes(const Request& r, size_t axes) {
  if (axes > 3) return Support::no(axes, " axes");
  return plain_f32(r);
}

template <class Op>
Support accepts(const Request& r) {
  return accepts_axes(r, r.node.as<Op>().size.size());
}

// From the axes of `small` to those of `large`, whichever of them is computed.
template <class Attrs>
Resize describe(const Arg& from, const Arg& to, const Attrs& a) {
  Resize p{.mode = a.mode == ops::ResizeMode::nearest ? ResizeMode::nearest : ResizeMode::linear};
  p.align_corners = a.align_corners;
  const int rank = from.shape.rank(), axes = int(a.size.size());
  for (int i = 0; i < rank - axes; ++i) p.planes *= from.shape.dim(i).value();
  for (int i = 0; i < axes; ++i) {
    p.size[size_t(3 - axes + i)] = from.shape.dim(rank - axes + i).value();
    p.to[size_t(3 - axes + i)] = to.shape.dim(rank - axes + i).value();
  }
  return p;
}

template <class Run>
std::unique_ptr<Step> prepare_run(const Resize& p, int threads, Run run) {
  return make_step(
      [p, run](const Launch& l) {
        Resize now = p;
        now.x = reinterpret_cast<const float*>(l.in[0]);
        now.y = reinterpret_cast<float*>(l.out[0]);
        run(l.team, now, l.workspace);
      },
      resize_workspace(p, threads));
}

std::unique_ptr<Step> prepare(const Request& r) {
  return prepare_run(describe(r.in[0], r.out[0], r.node.as<ops::Resize>()), r.threads, resize);
}

std::unique_ptr<Step> prepare_backward(const Request& r) {
  return prepare_run(describe(r.out[0], r.in[0], r.node.as<ops::ResizeBackward>()), r.threads,
                     resize_backward);
}

}  // namespace

void add_resize(KernelTable& table) {
  table.add<ops::Resize>({"resize_axes_f32", accepts<ops::Resize>, prepare});
  table.add<ops::Resize>(wide_kernel<accepts<ops::Resize>, prepare>("resize_axes_wide"));
  table.add<ops::ResizeBackward>(
      {"resize_backward_axes_f32", accepts<ops::ResizeBackward>, prepare_backward});
  table.add<ops::ResizeBackward>(
      wide_kernel<accepts<ops::ResizeBackward>, prepare_backward>("resize_backward_axes_wide"));
}

}  // namespace rlx::cpu
