// Sorting, the k largest, and where the largest and the smallest are.
#include "rlx/backend/cpu/kernels/order.h"

#include "rlx/backend/cpu/kernels/reduce.h"
#include "rlx/backend/cpu/kernels/sizes.h"
#include "rlx/backend/cpu/nodes/wide.h"
#include "rlx/ops/reduce/extreme.h"
#include "rlx/ops/reduce/sort.h"

namespace rlx::cpu {
namespace {

int32_t* places(const Launch& l, size_t i) { return reinterpret_cast<int32_t*>(l.out[i]); }

Support accepts_order(const Request& r) {
  const DType t = r.in[0].dtype();
  const bool real = t == DType::f16 || t == DType::bf16 || t == DType::f32 || t == DType::f64;
  if (!real && t != DType::bool_ && !is_integer(t)) return Support::no("no order of ", t);
  return all_row_major(r);
}

template <class Op, bool Values>
std::unique_ptr<Step> prepare_sort(const Request& r) {
  const ops::SortAttrs& a = r.node.as<Op>();
  const AxisView view = axis_view(r.in[0].shape, a.axis);
  Sort p{.dtype = r.in[0].dtype(), .outer = view.outer, .n = view.length, .inner = view.inner};
  p.descending = a.descending;
  return make_step(
      [p](const Launch& l) {
        Sort now = p;
        now.x = l.in[0];
        now.values = Values ? l.out[0] : nullptr;
        now.indices = places(l, Values ? 1 : 0);
        sort(l.team, now, l.workspace);
      },
      sort_workspace(p, r.threads));
}

TopK top_of(const Arg& x, int axis, int64_t k) {
  const AxisView view = axis_view(x.shape, axis);
  return {.dtype = x.dtype(), .outer = view.outer, .n = view.length, .inner = view.inner, .k = k};
}

std::unique_ptr<Step> prepare_top_k(const Request& r) {
  if (r.out[0].shape.elements() == 0) return make_step([](const Launch&) {});
  const auto& a = r.node.as<ops::TopK>();
  const TopK p = top_of(r.in[0], a.axis, a.k);
  return make_step(
      [p](const Launch& l) {
        TopK now = p;
        now.x = l.in[0];
        now.values = l.out[0];
        now.indices = places(l, 1);
        top_k(l.team, now, l.workspace);
      },
      top_k_workspace(p, r.threads));
}

// The largest of a long row is the first of the one largest.
Support accepts_rows(const Request& r) {
  const AxisView view = axis_view(r.in[0].shape, r.node.as<ops::Argmax>().axis);
  if (r.in[0].dtype() != DType::f32) return Support::no("x is ", r.in[0].dtype());
  if (r.out[0].dtype() != DType::i32) return Support::no("positions are ", r.out[0].dtype());
  if (view.inner != 1) return Support::no("elements of a row lie ", view.inner, " apart");
  if (r.out[0].shape.elements() == 0) return Support::no("x is empty");
  return all_row_major(r);
}

std::unique_ptr<Step> prepare_rows(const Request& r) {
  const TopK p = top_of(r.in[0], r.node.as<ops::Argmax>().axis, 1);
  const size_t values = round_up(size_t(p.outer) * sizeof(float));
  return make_step(
      [p, values](const Launch& l) {
        TopK now = p;
        now.x = l.in[0];
        now.values = l.workspace;
        now.indices = places(l, 0);
        top_k(l.team, now, l.workspace + values);
      },
      values + top_k_workspace(p, r.threads));
}

Support accepts_extreme(const Request& r) {
  const DType x = r.in[0].dtype();
  if (x != DType::f32 && x != DType::f64 && x != DType::i32 && x != DType::i64)
    return Support::no("no extreme of ", x);
  if (const Support s = none_empty(r); !s) return s;
  return all_row_major(r);
}

template <class T>
void store_places(const int64_t* from, std::byte* to, int64_t count) {
  std::copy_n(from, count, reinterpret_cast<T*>(to));
}
using StorePlaces = void (*)(const int64_t*, std::byte*, int64_t);
StorePlaces store_as(DType t) {
  switch (t) {
    case DType::u8:
      return store_places<uint8_t>;
    case DType::i8:
      return store_places<int8_t>;
    case DType::i16:
      return store_places<int16_t>;
    case DType::i32:
      return store_places<int32_t>;
    case DType::u32:
      return store_places<uint32_t>;
    case DType::f32:
      return store_places<float>;
    case DType::f64:
      return store_places<double>;
    default:
      return nullptr;
  }
}

// The kernel counts in 64 bits; positions of another type are converted.
template <class Op, bool Largest>
std::unique_ptr<Step> prepare_extreme(const Request& r) {
  const ops::ArgExtremeAttrs& a = r.node.as<Op>();
  const AxisView view = axis_view(r.in[0].shape, a.axis);
  ArgExtreme p{.largest = Largest, .dtype = r.in[0].dtype()};
  p.outer = view.outer, p.n = view.length, p.inner = view.inner;
  const int64_t count = r.out[0].shape.elements();
  const StorePlaces store = store_as(r.out[0].dtype());
  return make_step(
      [p, count, store](const Launch& l) {
        ArgExtreme now = p;
        now.x = l.in[0];
        now.y = reinterpret_cast<int64_t*>(store != nullptr ? l.workspace : l.out[0]);
        arg_extreme(l.team, now);
        if (store != nullptr) store(now.y, l.out[0], count);
      },
      store != nullptr ? size_t(count) * sizeof(int64_t) : 0);
}

}  // namespace

void add_order(KernelTable& table) {
  table.add<ops::Sort>({"sort_keys", accepts_order, prepare_sort<ops::Sort, true>});
  table.add<ops::Argsort>({"argsort_keys", accepts_order, prepare_sort<ops::Argsort, false>});
  table.add<ops::TopK>({"top_k_rows", accepts_order, prepare_top_k});
  table.add<ops::Argmax>({"argmax_rows_f32", accepts_rows, prepare_rows});
  table.add<ops::Argmax>({"argmax_axis", accepts_extreme, prepare_extreme<ops::Argmax, true>});
  table.add<ops::Argmin>({"argmin_axis", accepts_extreme, prepare_extreme<ops::Argmin, false>});
  table.add<ops::Argmax>(wide_kernel<accepts_extreme, prepare_extreme<ops::Argmax, true>>("argmax_wide"));
  table.add<ops::Argmin>(wide_kernel<accepts_extreme, prepare_extreme<ops::Argmin, false>>("argmin_wide"));
}

}  // namespace rlx::cpu
