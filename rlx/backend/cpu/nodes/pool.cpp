// Pooling over windows of the last axes, in f32.
#include "rlx/backend/cpu/kernels/pool.h"

#include "rlx/backend/cpu/nodes/wide.h"
#include "rlx/ops/conv/pool.h"

namespace rlx::cpu {
namespace {

constexpr Reduction kKinds[] = {Reduction::sum, Reduction::mean, Reduction::max, Reduction::min,
                                Reduction::prod};

template <class Attrs>
Pooling describe(const Arg& x, const Attrs& a) {
  Pooling p;
  const int rank = x.shape.rank(), axes = int(a.kernel_size.size());
  for (int i = 0; i < rank - axes; ++i) p.planes *= x.shape.dim(i).value();
  for (int i = 0; i < axes; ++i) {
    const auto to = size_t(3 - axes + i), from = size_t(i);
    p.size[to] = x.shape.dim(rank - axes + i).value();
    p.kernel[to] = a.kernel_size[from];
    p.stride[to] = a.stride[from];
    p.padding[to] = a.padding[from];
  }
  return p;
}

std::unique_ptr<Step> prepare(const Request& r) {
  const auto& a = r.node.as<ops::Pool>();
  Pooling p = describe(r.in[0], a);
  p.kind = kKinds[size_t(a.kind)];
  p.count_padding = a.count_include_pad;
  return make_step(
      [p](const Launch& l) {
        Pooling now = p;
        now.x = f32(l, 0);
        now.y = reinterpret_cast<float*>(l.out[0]);
        pooling(l.team, now, l.workspace);
      },
      pooling_workspace(p, r.threads));
}

std::unique_ptr<Step> prepare_gradient(const Request& r) {
  const Pooling p = describe(r.in[0], r.node.as<ops::MaxPool2dBackward>());
  return make_step([p](const Launch& l) {
    PoolingBackward now{.forward = p, .dy = f32(l, 1), .dx = reinterpret_cast<float*>(l.out[0])};
    now.forward.x = f32(l, 0);
    pooling_backward(l.team, now);
  });
}

}  // namespace

void add_pool(KernelTable& table) {
  table.add<ops::Pool>({"pool_windows_f32", plain_f32, prepare});
  table.add<ops::Pool>(wide_kernel<plain_f32, prepare>("pool_windows_wide"));
  table.add<ops::MaxPool2dBackward>({"maxpool2d_backward_windows_f32", plain_f32, prepare_gradient});
}

}  // namespace rlx::cpu
