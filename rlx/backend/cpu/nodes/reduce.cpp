// Reductions over any axes.
#include "rlx/ops/reduce/reduce.h"

#include "rlx/backend/cpu/kernels/reduce.h"
#include "rlx/backend/cpu/nodes/families.h"

namespace rlx::cpu {
namespace {

constexpr Reduction kKinds[] = {Reduction::sum, Reduction::mean, Reduction::max, Reduction::min,
                                Reduction::prod};

Support accepts(const Request& r) {
  const DType t = r.in[0].dtype();
  const ops::ReduceOp kind = r.node.as<ops::Reduce>().kind;
  if (t != DType::f32 && t != DType::f64 && t != DType::i32 && t != DType::i64)
    return Support::no("no sums of ", t);
  if (kind == ops::ReduceOp::mean && !is_float(t)) return Support::no("no mean of ", t);
  if (r.in[0].shape.rank() > Reduce::kMaxRank) return Support::no("more than ", Reduce::kMaxRank, " axes");
  return Support::yes();
}

std::unique_ptr<Step> prepare(const Request& r) {
  const auto& attrs = r.node.as<ops::Reduce>();
  const Arg& x = r.in[0];
  Reduce p;
  p.kind = kKinds[size_t(attrs.kind)];
  p.dtype = x.dtype();
  p.rank = x.shape.rank();
  for (int i = 0; i < p.rank; ++i) {
    p.size[i] = x.shape.dim(i).value();
    p.stride[i] = x.layout.strides[size_t(i)];
  }
  for (const int axis : attrs.axes) p.reduced[axis] = true;
  return make_step(
      [p](const Launch& l) {
        Reduce now = p;
        now.x = l.in[0];
        now.y = l.out[0];
        reduce(l.team, now, l.workspace);
      },
      reduce_workspace(p));
}

}  // namespace

void add_reduce(KernelTable& table) { table.add<ops::Reduce>({"reduce_strided", accepts, prepare}); }

}  // namespace rlx::cpu
