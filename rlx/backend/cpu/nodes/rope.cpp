// Rotary position encoding and its gradient.
#include "rlx/backend/cpu/kernels/rope.h"

#include "rlx/backend/cpu/nodes/heads.h"
#include "rlx/ops/attention/rope.h"

namespace rlx::cpu {
namespace {

Support accepts(const Request& r) {
  const DType t = r.in[0].dtype();
  if (t != DType::f32 && t != DType::f16 && t != DType::bf16) return Support::no("no rotation of ", t);
  if (const Support s = none_empty(r); !s) return s;
  if (r.in[0].layout.strides.back() != 1) return Support::no("the lanes of x are not neighbours");
  for (size_t i = 1; i < r.in.size(); ++i) {
    if (!r.in[i].is_row_major()) return Support::no("operand ", i, " is strided");
  }
  if (r.in.size() > 3 && r.in[3].dtype() != DType::i32 && r.in[3].dtype() != DType::i64)
    return Support::no("positions are ", r.in[3].dtype());
  return Support::yes();
}

Rope describe(const Request& r, const ops::RopeAttrs& a) {
  const Arg &x = r.in[0], &table = r.in[1];
  const HeadAxes axes = head_axes(a.layout, x.shape.rank());
  Rope p{.batch = size_at(x, axes.batch), .length = size_at(x, axes.row), .head_dim = a.head_dim};
  p.heads = axes.head < 0 ? x.shape.dim(-1).value() / a.head_dim : size_at(x, axes.head);
  p.rotated = a.n_rot;
  p.interleaved = a.interleaved;
  p.dtype = x.dtype();
  p.x_strides = head_strides(x, a.layout, a.head_dim);
  p.y_strides = head_strides(r.out[0], a.layout, a.head_dim);
  p.table_rows = table.shape.dim(0).value();
  p.table_stride = table.shape.dim(1).value();
  if (r.in.size() > 3 && r.in[3].shape.rank() == 2) p.position_stride = p.length;
  return p;
}

// Positions of 32 bits are widened first.
template <class Op, bool Inverse>
std::unique_ptr<Step> prepare(const Request& r) {
  Rope p = describe(r, r.node.as<Op>());
  p.inverse = Inverse;
  const int64_t positions = r.in.size() > 3 ? r.in[3].shape.elements() : 0;
  const bool narrow = positions > 0 && r.in[3].dtype() == DType::i32;
  auto step = make_step(
      [p, positions, narrow](const Launch& l) {
        Rope now = p;
        now.x = l.in[0];
        now.cos = l.in[1];
        now.sin = l.in[2];
        now.y = l.out[0];
        if (narrow) {
          auto* wide = reinterpret_cast<int64_t*>(l.workspace);
          std::copy_n(reinterpret_cast<const int32_t*>(l.in[3]), positions, wide);
          now.positions = wide;
        } else if (positions > 0) {
          now.positions = reinterpret_cast<const int64_t*>(l.in[3]);
        }
        rope(l.team, now);
      },
      narrow ? size_t(positions) * sizeof(int64_t) : 0);
  step->in_place = {0};
  return step;
}

}  // namespace

void add_rope(KernelTable& table) {
  table.add<ops::Rope>({"rope_tables", accepts, prepare<ops::Rope, false>});
  table.add<ops::RopeBackward>({"rope_tables", accepts, prepare<ops::RopeBackward, true>});
}

}  // namespace rlx::cpu
