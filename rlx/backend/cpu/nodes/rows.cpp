// Operations on rows: softmax and norms over the last axis, in f32.
#include "rlx/backend/cpu/kernels/rows.h"

#include "rlx/backend/cpu/nodes/families.h"
#include "rlx/ops/norm/axis_norm.h"
#include "rlx/ops/reduce/softmax.h"

namespace rlx::cpu {
namespace {

// Rows of x as a matrix whose last axis is contiguous: all axes but the last must be one run.
struct Rows {
  int64_t count = 0, n = 0, stride = 0;
};
std::optional<Rows> rows_of(const Arg& x) {
  const int rank = x.shape.rank();
  if (rank == 0) return std::nullopt;
  Rows r{1, x.shape.dim(-1).value(), 0};
  if (r.n > 1 && x.layout.strides.back() != 1) return std::nullopt;
  for (int i = rank - 2; i >= 0; --i) {
    const int64_t size = x.shape.dim(i).value(), stride = x.layout.strides[size_t(i)];
    if (size == 1) continue;
    if (stride < r.n || stride == 0) return std::nullopt;  // rows that share numbers, or are all the same
    if (r.stride == 0) {
      r.stride = stride;
    } else if (stride != r.stride * r.count) {
      return std::nullopt;
    }
    r.count *= size;
  }
  if (r.stride == 0) r.stride = r.n;
  return r;
}

Support last_axis_rows(const Request& r, int axis) {
  if (const Support s = all_of(r, DType::f32); !s) return s;
  if (axis != r.in[0].shape.rank() - 1) return Support::no("axis ", axis, " is not the last");
  if (!rows_of(r.in[0])) return Support::no("the rows of operand 0 are not evenly apart");
  return Support::yes();
}

template <class Op>
Support accepts_softmax(const Request& r) {
  return last_axis_rows(r, r.node.as<Op>().axis);
}

template <class Op, bool Logarithm>
std::unique_ptr<Step> prepare_softmax(const Request& r) {
  const Rows x = *rows_of(r.in[0]);
  Softmax p{.rows = x.count, .n = x.n, .x_stride = x.stride, .y_stride = x.n, .logarithm = Logarithm};
  auto step = make_step([p](const Launch& l) {
    Softmax now = p;
    now.x = f32(l, 0);
    now.y = reinterpret_cast<float*>(l.out[0]);
    softmax(l.team, now);
  });
  step->in_place = {0};
  return step;
}

template <class Op>
Support accepts_norm(const Request& r) {
  if (const Support s = last_axis_rows(r, r.node.as<Op>().axis); !s) return s;
  for (size_t i = 1; i < r.in.size(); ++i) {
    if (!r.in[i].is_row_major()) return Support::no("operand ", i, " is strided");
  }
  return Support::yes();
}

template <class Op, NormKind Kind>
std::unique_ptr<Step> prepare_norm(const Request& r) {
  const Rows x = *rows_of(r.in[0]);
  Norm p{.kind = Kind, .rows = x.count, .n = x.n, .epsilon = float(r.node.as<Op>().eps)};
  p.x_stride = x.stride;
  p.y_stride = x.n;
  auto step = make_step([p, count = r.in.size()](const Launch& l) {
    Norm now = p;
    now.x = f32(l, 0);
    if (count > 1) now.gamma = f32(l, 1);
    if (count > 2) now.beta = f32(l, 2);
    now.y = reinterpret_cast<float*>(l.out[0]);
    norm(l.team, now);
  });
  step->in_place = {0};
  return step;
}

}  // namespace

void add_rows(KernelTable& table) {
  table.add<ops::Softmax>(
      {"softmax_rows_f32", accepts_softmax<ops::Softmax>, prepare_softmax<ops::Softmax, false>});
  table.add<ops::LogSoftmax>(
      {"log_softmax_rows_f32", accepts_softmax<ops::LogSoftmax>, prepare_softmax<ops::LogSoftmax, true>});
  table.add<ops::LayerNorm>(
      {"layer_norm_rows_f32", accepts_norm<ops::LayerNorm>, prepare_norm<ops::LayerNorm, NormKind::layer>});
  table.add<ops::RmsNorm>(
      {"rms_norm_rows_f32", accepts_norm<ops::RmsNorm>, prepare_norm<ops::RmsNorm, NormKind::rms>});
}

}  // namespace rlx::cpu
