// Plan: axes are put in the order of memory and merged where they continue each other. If the contiguous axis
// is reduced, rows are folded; if it is kept, columns, a block of them at a time. With few results the
// largest reduced axis is cut into slices, whose number depends on the shape alone, so that all threads have
// work and the bits do not depend on how many there are. Variance and log_sum_exp take two passes: the mean
// or the maximum first, then the terms around it.
#include "rlx/backend/cpu/kernels/reduce.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "rlx/backend/cpu/isa_table.h"
#include "rlx/backend/cpu/kernels/axis_order.h"
#include "rlx/backend/cpu/kernels/box.h"
#include "rlx/backend/cpu/kernels/grain.h"
#include "rlx/backend/cpu/kernels/sizes.h"
#include "rlx/base/error.h"

namespace rlx::cpu {

RLX_ISA_TABLE(ReduceKernels, reduce_kernels)

namespace {

constexpr int64_t kColumnBlock = 512;  // columns folded together: their carries take 4 KiB
constexpr int64_t kSlices = 16;

struct Axis {
  int64_t size, x, y;
  bool reduced;
};

struct Plan {
  Box<1> outer;             // kept axes but the columns, by offset in x
  Box<1> rest;              // reduced axes but the run, by offset in x
  Box<1> results;           // kept axes in the order of the carries, by offset in y
  Axis run{1, 0, 0, true};  // the reduced axis the kernels go along
  Axis columns{1, 1, 0, false};
  bool rows = false;  // the run is contiguous
  int64_t count = 1;  // elements per result
  int64_t slices = 1;
  bool slice_rest = false;  // the slices cut `rest`, not the run
};

Plan make_plan(const Reduce& p) {
  RLX_CHECK(p.rank >= 0 && p.rank <= Reduce::kMaxRank, "reduction of rank ", p.rank);
  Plan plan;
  Axis axes[Reduce::kMaxRank];
  int n = 0;
  int64_t y_stride = 1;
  for (int d = p.rank - 1; d >= 0; --d) {
    if (p.reduced[d]) plan.count *= p.size[d];
    if (p.size[d] != 1) axes[n++] = {p.size[d], p.stride[d], p.reduced[d] ? 0 : y_stride, p.reduced[d]};
    if (!p.reduced[d]) y_stride *= p.size[d];
  }
  std::reverse(axes, axes + n);
  // Contiguous last; repeated elements (stride 0) before it.
  order_axes(axes, n, [](const Axis& a, const Axis& b) {
    const auto key = [](const Axis& c) { return c.x == 0 ? 2 : std::abs(c.x); };
    return key(a) > key(b);
  });
  int kept = 0;
  for (int d = 0; d < n; ++d) {
    if (kept > 0) {
      Axis& outer = axes[kept - 1];
      const Axis& inner = axes[d];
      if (outer.reduced == inner.reduced && outer.x == inner.x * inner.size &&
          outer.y == inner.y * inner.size) {
        outer = {outer.size * inner.size, inner.x, inner.y, inner.reduced};
        continue;
      }
    }
    axes[kept++] = axes[d];
  }
  n = kept;
  const bool contiguous = n > 0 && axes[n - 1].x == 1;
  int run = -1;
  for (int d = 0; d < n; ++d) {
    if (axes[d].reduced) run = d;
  }
  if (run >= 0) plan.run = axes[run];
  plan.rows = contiguous && run == n - 1;
  const bool columns = contiguous && run != n - 1;
  if (columns) plan.columns = axes[n - 1];
  for (int d = 0; d < n; ++d) {
    if (d == run) continue;
    if (axes[d].reduced) {
      plan.rest.add(axes[d].size, {axes[d].x});
    } else {
      if (!(columns && d == n - 1)) plan.outer.add(axes[d].size, {axes[d].x});
      plan.results.add(axes[d].size, {axes[d].y});
    }
  }
  const int64_t total = (p.alone ? 1 : plan.results.count()) * plan.count;
  const int64_t tasks = p.alone ? 1 : plan.outer.count() * ceil_div(plan.columns.size, kColumnBlock);
  if (tasks < kSlices && total > 4 * kLightGrain) {
    plan.slice_rest = plan.rest.count() > plan.run.size;
    const int64_t along = plan.slice_rest ? plan.rest.count() : plan.run.size;
    plan.slices = std::clamp<int64_t>(total / (2 * kLightGrain), 1, std::min(kSlices, along));
  }
  return plan;
}

bool two_passes(Reduction kind) { return kind == Reduction::variance || kind == Reduction::log_sum_exp; }

template <class T>
const FoldKernels* kernels_of() {
  const ReduceKernels& k = reduce_kernels();
  if constexpr (std::is_same_v<T, float>) return k.f32;
  if constexpr (std::is_same_v<T, double>) return k.f64;
  if constexpr (std::is_same_v<T, int32_t>) return k.i32;
  if constexpr (std::is_same_v<T, int64_t>) return k.i64;
  if constexpr (std::is_same_v<T, uint8_t>) return k.u8;
}

template <class T>
Carry neutral(Fold fold) {
  using L = std::numeric_limits<T>;
  if constexpr (std::is_floating_point_v<T>) {
    const double values[] = {0, 1, -L::infinity(), L::infinity()};
    return {.real = values[size_t(fold)]};
  } else {
    const int64_t values[] = {0, 1, L::lowest(), L::max()};
    return {.integer = values[size_t(fold)]};
  }
}

template <class T>
Carry combine(Fold fold, Carry a, Carry b) {
  const auto pick = [&](auto u, auto v) { return (fold == Fold::max ? v > u : v < u) || v != v ? v : u; };
  if constexpr (std::is_floating_point_v<T>) {
    if (fold == Fold::sum) return {.real = a.real + b.real};
    if (fold == Fold::prod) return {.real = a.real * b.real};
    return {.real = pick(a.real, b.real)};
  } else {
    const uint64_t u = uint64_t(a.integer), v = uint64_t(b.integer);
    if (fold == Fold::sum) return {.integer = int64_t(u + v)};
    if (fold == Fold::prod) return {.integer = int64_t(u * v)};
    return {.integer = pick(a.integer, b.integer)};
  }
}

/// carries[result] = fold of the terms, around centre[result] if there is one; `carries` holds all slices.
template <class T>
void pass(Team team, const Plan& plan, const Reduce& p, Fold fold, Term term, const double* centre,
          Carry* carries) {
  const FoldKernels k = kernels_of<T>()[term == Term::value ? size_t(fold) : size_t(term) + 3];
  const int64_t width = plan.columns.size, blocks = ceil_div(width, kColumnBlock),
                results = plan.results.count();
  const int64_t tasks = plan.outer.count() * blocks * plan.slices;
  if (tasks == 0) return;
  const int64_t work = std::max<int64_t>(1, results * plan.count / tasks);
  team.parallel_for(tasks, rows_worth(kLightGrain, work), [&](int64_t begin, int64_t end) {
    for (int64_t task = begin; task < end; ++task) {
      const int64_t slice = task / (plan.outer.count() * blocks),
                    place = task % (plan.outer.count() * blocks);
      const int64_t position = place / blocks, column = place % blocks * kColumnBlock;
      const int64_t n = std::min(kColumnBlock, width - column), result = position * width + column;
      Carry* carry = carries + slice * results + result;
      std::fill_n(carry, n, neutral<T>(fold));
      if (plan.count == 0) continue;
      const Range all{0, plan.rest.count()}, along{0, plan.run.size};
      const auto cut = [&](const Range& r) { return split_range(r.end, 1, int(plan.slices), int(slice)); };
      const Range rest = plan.slice_rest ? cut(all) : all, run = plan.slice_rest ? along : cut(along);
      plan.outer.walk(position, position + 1, [&](const auto& start) {
        plan.rest.walk(rest.begin, rest.end, [&](const auto& offset) {
          const T* x = static_cast<const T*>(p.x) + start[0] + offset[0] + column * plan.columns.x +
                       run.begin * plan.run.x;
          if (plan.rows) {
            k.row(x, run.end - run.begin, centre != nullptr ? centre[result] : 0, carry);
          } else {
            k.columns(x, plan.run.x, run.end - run.begin, n, centre != nullptr ? centre + result : nullptr,
                      carry);
          }
        });
      });
    }
  });
  for (int64_t s = 1; s < plan.slices; ++s) {
    for (int64_t i = 0; i < results; ++i) carries[i] = combine<T>(fold, carries[i], carries[s * results + i]);
  }
}

template <class T>
void run(Team team, const Reduce& p, std::byte* workspace) {
  const Plan plan = make_plan(p);
  const int64_t results = plan.results.count();
  Carry* carries = reinterpret_cast<Carry*>(workspace);
  double* centre = nullptr;
  const double count = double(plan.count);
  const bool variance = p.kind == Reduction::variance;
  if (two_passes(p.kind)) {
    pass<T>(team, plan, p, variance ? Fold::sum : Fold::max, Term::value, nullptr, carries);
    centre = reinterpret_cast<double*>(carries + plan.slices * results);
    // Around an infinite maximum nothing would be left of the others; it is the result itself.
    for (int64_t i = 0; i < results; ++i) {
      centre[i] = variance ? carries[i].real / count : std::isinf(carries[i].real) ? 0 : carries[i].real;
    }
  }
  constexpr Fold folds[] = {Fold::sum,  Fold::sum, Fold::max, Fold::min,
                            Fold::prod, Fold::sum, Fold::sum, Fold::sum};
  constexpr Term terms[] = {Term::value, Term::value,  Term::value,          Term::value,
                            Term::value, Term::square, Term::centred_square, Term::exponential};
  pass<T>(team, plan, p, folds[size_t(p.kind)], terms[size_t(p.kind)], centre, carries);
  const auto finished = [&](int64_t i) {
    if constexpr (std::is_floating_point_v<T>) {
      const double v = carries[i].real;
      if (p.kind == Reduction::mean) return T(v / count);
      if (variance) return T(v / std::max(count - p.correction, 0.0));
      if (p.kind == Reduction::log_sum_exp) return T(centre[i] + std::log(v));
      return T(v);
    } else {
      return p.dtype == DType::bool_ ? T(carries[i].integer != 0) : T(carries[i].integer);
    }
  };
  T* y = static_cast<T*>(p.y);
  team.parallel_for(results, kLightGrain / 4, [&](int64_t begin, int64_t end) {
    int64_t i = begin;
    plan.results.walk(begin, end, [&](const auto& at) { y[at[0]] = finished(i++); });
  });
}

}  // namespace

size_t reduce_workspace(const Reduce& p, int) {
  const Plan plan = make_plan(p);
  return size_t((plan.slices + (two_passes(p.kind) ? 1 : 0)) * plan.results.count()) * sizeof(Carry);
}

void reduce(Team team, const Reduce& p, std::byte* workspace) {
  const bool extreme = p.kind == Reduction::max || p.kind == Reduction::min;
  const bool exact = extreme || p.kind == Reduction::sum || p.kind == Reduction::prod;
  if (p.dtype == DType::f32) return run<float>(team, p, workspace);
  if (p.dtype == DType::f64) return run<double>(team, p, workspace);
  if (p.dtype == DType::i32 && exact) return run<int32_t>(team, p, workspace);
  if (p.dtype == DType::i64 && exact) return run<int64_t>(team, p, workspace);
  if ((p.dtype == DType::u8 || p.dtype == DType::bool_) && extreme) return run<uint8_t>(team, p, workspace);
  RLX_CHECK(false, "reduction ", int(p.kind), " of dtype ", p.dtype);
}

void arg_extreme(Team team, const ArgExtreme& p) {
  if (p.outer * p.inner == 0) return;
  RLX_CHECK(p.n > 0, "position of an extreme among no elements");
  constexpr DType types[] = {DType::f32, DType::f64, DType::i32, DType::i64};
  const auto* type = std::find(std::begin(types), std::end(types), p.dtype);
  RLX_CHECK(type != std::end(types), "position of an extreme of dtype ", p.dtype);
  const size_t which = size_t(type - types);
  const int64_t bytes = int64_t(dtype_size(p.dtype));
  const auto at = [&](int64_t element) { return static_cast<const std::byte*>(p.x) + element * bytes; };
  const ReduceKernels& k = reduce_kernels();
  if (p.inner == 1) {
    const auto row = k.arg_row[which][p.largest];
    team.parallel_for(p.outer, rows_worth(kLightGrain, p.n), [&](int64_t b, int64_t e) {
      for (int64_t o = b; o < e; ++o) p.y[o] = row(at(o * p.n), p.n);
    });
    return;
  }
  const auto columns = k.arg_columns[which][p.largest];
  constexpr int64_t kTogether = 64;  // columns: a cache line or more of every row
  const int64_t blocks = ceil_div(p.inner, kTogether);
  team.parallel_for(p.outer * blocks, rows_worth(kLightGrain, p.n * std::min(kTogether, p.inner)),
                    [&](int64_t begin, int64_t end) {
                      for (int64_t i = begin; i < end; ++i) {
                        const int64_t o = i / blocks, c = i % blocks * kTogether;
                        columns(at(o * p.n * p.inner + c), p.inner, p.n, std::min(kTogether, p.inner - c),
                                p.y + o * p.inner + c);
                      }
                    });
}

}  // namespace rlx::cpu
