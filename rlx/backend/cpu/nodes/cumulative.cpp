// Running sums, products and extremes along an axis.
#include "rlx/backend/cpu/kernels/cumulative.h"

#include "rlx/backend/cpu/kernels/recurrence.h"
#include "rlx/backend/cpu/nodes/wide.h"
#include "rlx/ops/reduce/cumulative.h"
#include "rlx/ops/reduce/extreme.h"

namespace rlx::cpu {
namespace {

Support accepts(const Request& r) {
  const DType t = r.in[0].dtype();
  if (t != DType::f32 && t != DType::f64 && t != DType::i32 && t != DType::i64)
    return Support::no("nothing runs along ", t);
  return all_row_major(r);
}

Cumulative describe(const Request& r, Running kind, int axis) {
  const AxisView view = axis_view(r.in[0].shape, axis);
  return {.kind = kind, .dtype = r.in[0].dtype(), .outer = view.outer, .n = view.length, .inner = view.inner};
}

std::unique_ptr<Step> prepare_step(const Request& r, const Cumulative& p) {
  auto step = make_step([p, places = r.out.size() > 1](const Launch& l) {
    Cumulative now = p;
    now.x = l.in[0];
    now.y = l.out[0];
    if (places) now.indices = reinterpret_cast<int32_t*>(l.out[1]);
    cumulative(l.team, now);
  });
  step->in_place = {0};
  return step;
}

template <class Op, Running Kind>
std::unique_ptr<Step> prepare_sum(const Request& r) {
  const ops::CumulativeAttrs& a = r.node.as<Op>();
  Cumulative p = describe(r, Kind, a.axis);
  p.exclusive = a.exclusive;
  p.reverse = a.reverse;
  return prepare_step(r, p);
}

template <class Op, Running Kind>
std::unique_ptr<Step> prepare_extreme(const Request& r) {
  const ops::RunningExtremeAttrs& a = r.node.as<Op>();
  Cumulative p = describe(r, Kind, a.axis);
  p.reverse = a.reverse;
  return prepare_step(r, p);
}

// Running sums of complex numbers are those of their parts, which lie side by side.
Support accepts_complex(const Request& r) {
  if (r.in[0].dtype() != DType::c64) return Support::no("x is ", r.in[0].dtype());
  return all_row_major(r);
}

std::unique_ptr<Step> prepare_complex(const Request& r) {
  const auto& a = r.node.as<ops::Cumsum>();
  Cumulative p = describe(r, Running::sum, a.axis);
  p.dtype = DType::f32;
  p.inner *= 2;
  p.exclusive = a.exclusive;
  p.reverse = a.reverse;
  return prepare_step(r, p);
}

std::unique_ptr<Step> prepare_gradient(const Request& r) {
  const auto& a = r.node.as<ops::CumsumBackward>();
  Cumulative p = describe(r, Running::sum, a.axis);
  p.exclusive = a.exclusive;
  p.reverse = true;
  return prepare_step(r, p);
}

// ---- y[i] = a[i] y[i-1] + b[i] ----

Support accepts_recurrence(const Request& r) {
  const DType t = r.in[0].dtype();
  if (t != DType::f32 && t != DType::f64) return Support::no("no recurrence in ", t);
  return all_row_major(r);
}

std::unique_ptr<Step> prepare_recurrence(const Request& r) {
  const auto& a = r.node.as<ops::LinearRecurrence>();
  const AxisView view = axis_view(r.in[0].shape, a.axis);
  LinearRecurrence p{.dtype = r.in[0].dtype(), .outer = view.outer, .n = view.length, .inner = view.inner};
  p.reverse = a.reverse;
  auto step = make_step([p](const Launch& l) {
    LinearRecurrence now = p;
    now.a = l.in[0];
    now.b = l.in[1];
    now.y = l.out[0];
    linear_recurrence(l.team, now);
  });
  step->in_place = {1, 0};
  return step;
}

}  // namespace

void add_cumulative(KernelTable& table) {
  table.add<ops::Cumsum>({"cumulative_sum", accepts, prepare_sum<ops::Cumsum, Running::sum>});
  table.add<ops::Cumprod>({"cumulative_product", accepts, prepare_sum<ops::Cumprod, Running::prod>});
  table.add<ops::CumsumBackward>({"cumulative_sum", accepts, prepare_gradient});
  table.add<ops::Cumsum>(wide_kernel<accepts, prepare_sum<ops::Cumsum, Running::sum>>("cumulative_sum_wide"));
  table.add<ops::Cumsum>({"cumulative_sum_c64", accepts_complex, prepare_complex});
  table.add<ops::Cumprod>(
      wide_kernel<accepts, prepare_sum<ops::Cumprod, Running::prod>>("cumulative_product_wide"));
  table.add<ops::LinearRecurrence>({"linear_recurrence_runs", accepts_recurrence, prepare_recurrence});
  table.add<ops::LinearRecurrence>(
      wide_kernel<accepts_recurrence, prepare_recurrence>("linear_recurrence_wide"));
  table.add<ops::Cummax>({"cumulative_max", accepts, prepare_extreme<ops::Cummax, Running::max>});
  table.add<ops::Cummin>({"cumulative_min", accepts, prepare_extreme<ops::Cummin, Running::min>});
  table.add<ops::Cummax>(
      wide_kernel<accepts, prepare_extreme<ops::Cummax, Running::max>>("cumulative_max_wide"));
  table.add<ops::Cummin>(
      wide_kernel<accepts, prepare_extreme<ops::Cummin, Running::min>>("cumulative_min_wide"));
}

}  // namespace rlx::cpu
