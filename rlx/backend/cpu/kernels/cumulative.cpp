// Plan: with inner > 1, blocks of neighbouring runs are independent; they are as wide as the threads allow, since
// memory foresees what lies side by side, not the same columns a row further. Otherwise rows are, eight at a time; a
// few long rows are cut into kSlices equal slices each, which are folded first and run through again from the
// carries of those before. The cut depends on the shape alone, so that bits do not depend on the threads.
#include "rlx/backend/cpu/kernels/cumulative.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "rlx/backend/cpu/isa_table.h"
#include "rlx/backend/cpu/kernels/grain.h"
#include "rlx/backend/cpu/kernels/sizes.h"
#include "rlx/base/error.h"

namespace rlx::cpu {

RLX_ISA_TABLE(CumulativeKernels, cumulative_kernels)

namespace {

constexpr int64_t kSlices = 32;
constexpr int64_t kSlicedRow = 65536;  // rows from this length on are cut
constexpr int64_t kTogether = 8;       // rows that the kernels advance in turn
constexpr int64_t kLeastWidth = 512;   // runs of a block, where there are so many

bool is_real(DType t) { return t == DType::f32 || t == DType::f64; }

RunningCarry start_of(const Cumulative& p, int64_t index) {
  RunningCarry c;
  c.index = index;
  if (is_real(p.dtype)) {
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    constexpr double values[] = {0, 1, -kInfinity, kInfinity};
    c.real = values[size_t(p.kind)];
  } else {
    constexpr int64_t values[] = {0, 1, INT64_MIN, INT64_MAX};
    c.integer = values[size_t(p.kind)];
  }
  return c;
}

// The carry of two stretches one after the other; on a tie the first keeps its place.
template <class A>
bool takes(Running kind, A v, A carry) {
  return (kind == Running::max ? v > carry : v < carry) || (v != v && carry == carry);
}
RunningCarry join(const Cumulative& p, RunningCarry a, const RunningCarry& b) {
  const bool real = is_real(p.dtype);
  if (p.kind == Running::sum) {
    if (real) a.real += b.real;
    if (!real) a.integer = int64_t(uint64_t(a.integer) + uint64_t(b.integer));
    return a;
  }
  if (p.kind == Running::prod) {
    if (real) a.real *= b.real;
    if (!real) a.integer = int64_t(uint64_t(a.integer) * uint64_t(b.integer));
    return a;
  }
  return (real ? takes(p.kind, b.real, a.real) : takes(p.kind, b.integer, a.integer)) ? b : a;
}

struct Place {
  const std::byte* x;
  std::byte* y;
  int32_t* indices;
};

// One long row from its first element on, in the direction of the run.
void run_sliced(Team team, const Cumulative& p, const RunningKernels& k, const Place& row, int64_t bytes,
                int64_t step, int64_t first) {
  const int64_t length = p.n / kSlices, stride = length * step;
  RunningCarry carry[kSlices];
  for (int64_t s = 0; s < kSlices; ++s) carry[s] = start_of(p, first + s * stride);
  const auto slices = [&](bool write) {
    team.parallel_for(kSlices, kTogether, [&](int64_t b, int64_t e) {
      k.rows(row.x + b * stride * bytes, write ? row.y + b * stride * bytes : nullptr,
             row.indices != nullptr ? row.indices + b * stride : nullptr, stride, e - b, length, step,
             p.exclusive, first + b * stride, stride, carry + b);
    });
  };
  slices(false);
  RunningCarry before = start_of(p, first);
  for (int64_t s = 0; s < kSlices; ++s) {
    const RunningCarry total = std::exchange(carry[s], before);
    before = join(p, before, total);
  }
  slices(true);
  const int64_t done = kSlices * length;  // what no slice holds
  k.rows(row.x + done * step * bytes, row.y + done * step * bytes,
         row.indices != nullptr ? row.indices + done * step : nullptr, 0, 1, p.n - done, step, p.exclusive,
         first + done * step, 0, carry + kSlices - 1);
}

// Runs of a block: enough blocks for all threads.
int64_t block_width(const Cumulative& p, int threads) {
  const int64_t even = ceil_div(p.inner, ceil_div(threads, p.outer));
  return std::clamp(ceil_div(even, 16) * 16, kLeastWidth, kRunningWidth);
}

}  // namespace

void cumulative(Team team, const Cumulative& p) {
  if (p.outer * p.n * p.inner == 0) return;
  const bool extreme = p.kind == Running::max || p.kind == Running::min;
  RLX_CHECK(!(extreme && p.exclusive), "running extreme without the element itself");
  RLX_CHECK(extreme || p.indices == nullptr, "indices of a running sum or product");
  RLX_CHECK(p.n <= INT32_MAX || p.indices == nullptr, "indices of ", p.n, " elements in i32");
  const CumulativeKernels& all = cumulative_kernels();
  const RunningKernels* family = p.dtype == DType::f32   ? all.f32
                                 : p.dtype == DType::f64 ? all.f64
                                 : p.dtype == DType::i32 ? all.i32
                                 : p.dtype == DType::i64 ? all.i64
                                                         : nullptr;
  RLX_CHECK(family != nullptr, "running operation of dtype ", p.dtype);
  const RunningKernels& k = family[size_t(p.kind)];
  const int64_t bytes = int64_t(dtype_size(p.dtype)), first = p.reverse ? p.n - 1 : 0;
  const int64_t step = p.reverse ? -p.inner : p.inner;
  const auto at = [&](int64_t element) {
    return Place{static_cast<const std::byte*>(p.x) + element * bytes,
                 static_cast<std::byte*>(p.y) + element * bytes,
                 p.indices != nullptr ? p.indices + element : nullptr};
  };
  if (p.inner > 1) {
    const int64_t width = block_width(p, team.threads()), blocks = ceil_div(p.inner, width);
    const int64_t work = p.n * std::min(width, p.inner);
    team.parallel_for(p.outer * blocks, rows_worth(kGrain, work), [&](int64_t b, int64_t e) {
      for (int64_t i = b; i < e; ++i) {
        const int64_t column = i % blocks * width;
        const Place place = at((i / blocks * p.n + first) * p.inner + column);
        k.columns(place.x, place.y, place.indices, std::min(width, p.inner - column), p.n, step, p.exclusive,
                  first);
      }
    });
  } else if (p.outer < kTogether && p.n >= kSlicedRow) {
    for (int64_t o = 0; o < p.outer; ++o) run_sliced(team, p, k, at(o * p.n + first), bytes, step, first);
  } else {
    const int64_t groups = ceil_div(p.outer, kTogether);
    team.parallel_for(groups, rows_worth(kGrain, p.n * kTogether), [&](int64_t b, int64_t e) {
      for (int64_t g = b; g < e; ++g) {
        RunningCarry carry[kTogether];
        std::fill_n(carry, kTogether, start_of(p, first));
        const Place place = at(g * kTogether * p.n + first);
        k.rows(place.x, place.y, place.indices, p.n, std::min(kTogether, p.outer - g * kTogether), p.n, step,
               p.exclusive, first, 0, carry);
      }
    });
  }
}

}  // namespace rlx::cpu
