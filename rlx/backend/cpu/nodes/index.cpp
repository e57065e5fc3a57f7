// Rows and elements picked and written by index.
#include "rlx/backend/cpu/kernels/index.h"

#include "rlx/backend/cpu/kernels/sizes.h"
#include "rlx/backend/cpu/nodes/whole_numbers.h"
#include "rlx/ops/index/gather.h"
#include "rlx/ops/index/scatter.h"
#include "rlx/ops/index/take_along.h"

namespace rlx::cpu {
namespace {

IndexMode mode_of(ops::IndexMode mode) {
  return mode == ops::IndexMode::clamp ? IndexMode::clamp : IndexMode::error;
}

// The product of extents [from, to).
int64_t volume(const Arg& x, int from, int to) {
  int64_t out = 1;
  for (int i = from; i < to; ++i) out *= x.shape.dim(i).value();
  return out;
}

std::unique_ptr<Step> nothing() {
  return make_step([](const Launch&) {});
}

// Operand 1 holds the indices.
Support accepts(const Request& r) {
  for (size_t i = 0; i < r.in.size(); ++i) {
    if (i != 1 && !r.in[i].is_row_major()) return Support::no("operand ", i, " is strided");
  }
  return accepts_whole_numbers(r, 1);
}

// ---- picking ----

std::unique_ptr<Step> prepare_gather_of(const Request& r, int axis, int batch_dims, IndexMode mode) {
  const Arg& table = r.in[0];
  Gather p{.dtype = table.dtype(), .batch = volume(table, 0, batch_dims)};
  if (p.batch == 0) return nothing();
  p.outer = volume(table, batch_dims, axis);
  p.size = table.shape.dim(axis).value();
  p.inner = volume(table, axis + 1, table.shape.rank());
  p.count = r.in[1].shape.elements() / p.batch;
  const WholeNumbers indices(r, 1);
  return make_step(
      [p, indices, mode](const Launch& l) {
        Gather now = p;
        now.table = l.in[0];
        now.indices = indices.indices(l, l.workspace, mode);
        now.y = l.out[0];
        gather(l.team, now);
      },
      indices.workspace());
}

std::unique_ptr<Step> prepare_gather(const Request& r) {
  const auto& a = r.node.as<ops::Gather>();
  return prepare_gather_of(r, a.axis, 0, mode_of(a.mode));
}

std::unique_ptr<Step> prepare_batched_gather(const Request& r) {
  const auto& a = r.node.as<ops::BatchedGather>();
  return prepare_gather_of(r, a.axis, a.batch_dims, mode_of(a.mode));
}

std::unique_ptr<Step> prepare_take_along(const Request& r) {
  const auto& a = r.node.as<ops::TakeAlong>();
  const AxisView x = axis_view(r.in[0].shape, a.axis);
  TakeAlong p{.dtype = r.in[0].dtype(), .outer = x.outer, .size = x.length, .inner = x.inner};
  p.count = r.in[1].shape.dim(a.axis).value();
  const WholeNumbers indices(r, 1);
  return make_step(
      [p, indices, mode = mode_of(a.mode)](const Launch& l) {
        TakeAlong now = p;
        now.x = l.in[0];
        now.indices = indices.indices(l, l.workspace, mode);
        now.y = l.out[0];
        take_along(l.team, now);
      },
      indices.workspace());
}

// ---- writing ----

constexpr ScatterKind kKinds[] = {ScatterKind::set, ScatterKind::add, ScatterKind::max, ScatterKind::min};

// The batch of scatters that lie one behind the other, or the same indices for `repeats` slices of updates.
std::unique_ptr<Step> prepare_scatter_step(const Scatter& p, int64_t repeats, const WholeNumbers& indices,
                                           IndexMode mode, int base, int updates, int threads) {
  const size_t numbers = indices.workspace(), element = dtype_size(p.dtype);
  const int64_t from = p.batch * p.count * p.inner * int64_t(element);
  const int64_t to = p.batch * p.rows * p.inner * int64_t(element);
  return make_step(
      [=](const Launch& l) {
        Scatter now = p;
        now.indices = indices.indices(l, l.workspace, mode);
        for (int64_t i = 0; i < repeats; ++i) {
          now.base = base < 0 ? nullptr : l.in[base] + i * to;
          now.updates = l.in[updates] + i * from;
          now.y = l.out[0] + i * to;
          scatter(l.team, now, l.workspace + numbers);
        }
      },
      numbers + scatter_workspace(p, threads));
}

Scatter describe_scatter(const Arg& y, const Arg& indices, ScatterKind kind, int batch_dims) {
  Scatter p{.kind = kind, .dtype = y.dtype(), .batch = volume(y, 0, batch_dims)};
  p.rows = y.shape.dim(batch_dims).value();
  p.inner = volume(y, batch_dims + 1, y.shape.rank());
  p.count = p.batch == 0 ? 0 : indices.shape.elements() / p.batch;
  return p;
}

std::unique_ptr<Step> prepare_scatter(const Request& r) {
  const auto& a = r.node.as<ops::Scatter>();
  const Scatter p = describe_scatter(r.out[0], r.in[1], kKinds[size_t(a.kind)], a.batch_dims);
  if (p.batch == 0) return nothing();
  auto step = prepare_scatter_step(p, 1, WholeNumbers(r, 1), mode_of(a.mode), 0, 2, r.threads);
  step->in_place = {0};
  return step;
}

std::unique_ptr<Step> prepare_scatter_add(const Request& r) {
  const auto& a = r.node.as<ops::ScatterAdd>();
  const Scatter p = describe_scatter(r.out[0], r.in[1], ScatterKind::add, a.batch_dims);
  if (p.batch == 0) return nothing();
  return prepare_scatter_step(p, 1, WholeNumbers(r, 1), mode_of(a.mode), -1, 0, r.threads);
}

std::unique_ptr<Step> prepare_gather_backward(const Request& r) {
  const auto& a = r.node.as<ops::GatherBackward>();
  const AxisView table = axis_view(r.out[0].shape, a.axis);
  Scatter p{.kind = ScatterKind::add, .dtype = r.out[0].dtype(), .rows = table.length, .inner = table.inner};
  p.count = r.in[1].shape.elements();
  return prepare_scatter_step(p, table.outer, WholeNumbers(r, 1), mode_of(a.mode), -1, 0, r.threads);
}

Support accepts_sums(const Request& r) {
  if (r.out[0].dtype() == DType::bool_ || is_storage_only(r.out[0].dtype()))
    return Support::no("no sum of ", r.out[0].dtype());
  return accepts(r);
}

}  // namespace

void add_index(KernelTable& table) {
  table.add<ops::Gather>({"gather_rows", accepts, prepare_gather});
  table.add<ops::BatchedGather>({"batched_gather_rows", accepts, prepare_batched_gather});
  table.add<ops::TakeAlong>({"take_along_elements", accepts, prepare_take_along});
  table.add<ops::Scatter>({"scatter_rows", accepts, prepare_scatter});
  table.add<ops::ScatterAdd>({"scatter_add_rows", accepts_sums, prepare_scatter_add});
  table.add<ops::GatherBackward>({"gather_backward_rows", accepts_sums, prepare_gather_backward});
}

}  // namespace rlx::cpu
