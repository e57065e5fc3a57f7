#include "rlx/backend/cpu/kernels/pool.h"

#include <cmath>

#include "rlx/backend/cpu/isa_table.h"
#include "rlx/backend/cpu/kernels/conv/conv_geometry.h"
#include "rlx/backend/cpu/kernels/grain.h"
#include "rlx/backend/cpu/kernels/sizes.h"
#include "rlx/base/error.h"

namespace rlx::cpu {

RLX_ISA_TABLE(PoolKernels, pool_kernels)

namespace {

float neutral(Reduction kind) {
  switch (kind) {
    case Reduction::max:
      return -INFINITY;
    case Reduction::min:
      return INFINITY;
    case Reduction::prod:
      return 1;
    default:
      return 0;
  }
}

void check(const Pooling& p) {
  RLX_CHECK(p.kind <= Reduction::prod, "pooling by reduction ", int(p.kind));
  for (size_t a = 0; a < 3; ++a) {
    RLX_CHECK(p.kernel[a] >= 1 && p.stride[a] >= 1 && p.padding[a] >= 0 && p.padding[a] < p.kernel[a] &&
                  p.size[a] + 2 * p.padding[a] >= p.kernel[a],
              "pooling axis ", a, " of size ", p.size[a], " with kernel ", p.kernel[a], ", stride ",
              p.stride[a], ", padding ", p.padding[a]);
  }
}

/// The part [begin, end) of the window of output o that lies inside x.
Range inside(const Pooling& p, size_t axis, int64_t o) {
  const int64_t first = o * p.stride[axis] - p.padding[axis];
  return {std::max<int64_t>(0, first), std::min(p.size[axis], first + p.kernel[axis])};
}
int64_t length(const Range& r) { return r.end - r.begin; }

int64_t padded_row(const Pooling& p) { return p.size[2] + 2 * p.padding[2]; }

int64_t planes_per_part(const Pooling& p) { return rows_worth(kGrain, volume(p.size)); }

float divisor(const Pooling& p, const Range& r0, const Range& r1, const Range& r2) {
  return float(p.count_padding ? volume(p.kernel) : length(r0) * length(r1) * length(r2));
}

/// Where the rows of a window begin in the plane, as many as fit: false if there are more.
constexpr int64_t kMaxRows = 64;
struct WindowRows {
  int64_t offsets[kMaxRows];
  int64_t count = 0;

  WindowRows(const Pooling& p, const Range& r0, const Range& r1) {
    if (length(r0) * length(r1) > kMaxRows) return;
    for (int64_t i0 = r0.begin; i0 < r0.end; ++i0) {
      for (int64_t i1 = r1.begin; i1 < r1.end; ++i1) offsets[count++] = (i0 * p.size[1] + i1) * p.size[2];
    }
  }
};

/// The outputs along the last axis whose windows lie inside x altogether.
Range whole_windows(const Pooling& p, int64_t n) {
  const int64_t begin = std::min(n, ceil_div(p.padding[2], p.stride[2]));
  const int64_t last = p.size[2] + p.padding[2] - p.kernel[2];
  return {begin, last < 0 ? begin : std::clamp(last / p.stride[2] + 1, begin, n)};
}

/// Asks for the rows that the windows after some more need first. Windows go through x in its order, but from row to row and
/// back, and no machine foresees that: a large x would come at the speed of single lines.
void ask_ahead(const Pooling& p, const float* at) {
  constexpr int64_t kAhead = 4096 / int64_t(sizeof(float)), kLine = 64 / int64_t(sizeof(float)), kMost = 64;
  const float* const end = p.x + p.planes * volume(p.size);
  if (end - at <= kAhead) return;
  const float* line = at + kAhead;
  const float* const stop = line + std::min({end - line, p.stride[1] * p.size[2], kMost * kLine});
  for (; line < stop; line += kLine) __builtin_prefetch(line);
  asm volatile("");  // GCC 12 takes a function that only prefetches for one without effect, and drops it
}

void pool_row(const Pooling& p, const PoolKernels& k, const float* plane, int64_t o0, int64_t o1, float* row,
              float* y, int64_t n) {
  const Range r0 = inside(p, 0, o0), r1 = inside(p, 1, o1);
  const WindowRows rows(p, r0, r1);
  if (p.padding[2] == 0 && p.kernel[2] <= p.stride[2] && rows.count > 0) {
    k.combine_windows(p.kind, {plane, rows.offsets, rows.count, p.kernel[2], p.stride[2], n}, y);
  } else if (p.kernel[2] == 3 && p.stride[2] == 2 && p.padding[2] <= 1 && rows.count > 0) {
    k.combine_threes(p.kind, {plane, rows.offsets, rows.count, p.size[2], p.padding[2], n, neutral(p.kind)},
                     y);
  } else {
    bool first = true;
    for (int64_t i0 = r0.begin; i0 < r0.end; ++i0) {
      for (int64_t i1 = r1.begin; i1 < r1.end; ++i1) {
        const float* from = plane + (i0 * p.size[1] + i1) * p.size[2];
        if (first) {
          std::copy_n(from, p.size[2], row + p.padding[2]);
        } else {
          k.combine(p.kind, from, row + p.padding[2], p.size[2]);
        }
        first = false;
      }
    }
    const int64_t start = 0;
    k.combine_windows(p.kind, {row, &start, 1, p.kernel[2], p.stride[2], n}, y);
  }
  if (p.kind != Reduction::mean) return;
  const Range whole = whole_windows(p, n);
  const auto divide = [&](int64_t begin, int64_t end) {
    for (int64_t o = begin; o < end; ++o) y[o] /= divisor(p, r0, r1, inside(p, 2, o));
  };
  divide(0, whole.begin);
  const float by = divisor(p, r0, r1, {0, p.kernel[2]});
  for (int64_t o = whole.begin; o < whole.end; ++o) y[o] /= by;
  divide(whole.end, n);
}

// f(offset in the plane) for every element of a window, in row-major order.
template <class F>
void each_element(const Pooling& p, const Range& r0, const Range& r1, const Range& r2, F f) {
  for (int64_t i0 = r0.begin; i0 < r0.end; ++i0) {
    for (int64_t i1 = r1.begin; i1 < r1.end; ++i1) {
      for (int64_t i2 = r2.begin; i2 < r2.end; ++i2) f((i0 * p.size[1] + i1) * p.size[2] + i2);
    }
  }
}

void spread_window(const Pooling& p, const Range& r0, const Range& r1, const Range& r2, const float* x,
                   float dy, float* dx) {
  const auto each = [&](auto f) { each_element(p, r0, r1, r2, f); };
  switch (p.kind) {
    case Reduction::max:
    case Reduction::min: {
      int64_t best = -1;
      bool number = true;
      each([&](int64_t i) {
        number = number && !std::isnan(x[i]);
        if (best < 0 || (p.kind == Reduction::max ? x[i] > x[best] : x[i] < x[best])) best = i;
      });
      if (number) dx[best] += dy;
      return;
    }
    case Reduction::prod:
      each([&](int64_t i) {
        float others = 1;
        each([&](int64_t j) { others *= j == i ? 1.0f : x[j]; });
        dx[i] += dy * others;
      });
      return;
    default: {
      const float share = p.kind == Reduction::mean ? dy / divisor(p, r0, r1, r2) : dy;
      each([&](int64_t i) { dx[i] += share; });
    }
  }
}

// dx of the outputs [begin, end) of a row, whose windows lie inside x, in pieces whose places fit the stack.
void spread_extremes(const Pooling& p, const PoolKernels& k, const WindowRows& rows, const Range& outputs,
                     const float* x, const float* dy, float* dx) {
  constexpr int64_t kPiece = 256;
  float place[kPiece];
  for (int64_t o = outputs.begin; o < outputs.end; o += kPiece) {
    const int64_t n = std::min(kPiece, outputs.end - o), first = o * p.stride[2] - p.padding[2];
    k.find_extremes(p.kind, {x + first, rows.offsets, rows.count, p.kernel[2], p.stride[2], n}, place);
    for (int64_t j = 0; j < n; ++j) {
      const auto at = int64_t(place[j]);
      if (at < 0) continue;
      const int64_t r = p.kernel[2] == 2 ? at >> 1 : at / p.kernel[2];
      dx[first + j * p.stride[2] + rows.offsets[r] + (at - r * p.kernel[2])] += dy[o + j];
    }
  }
}

// The same for sums and means: dy, divided by the number of elements, goes to all of them.
void spread_shares(const Pooling& p, const PoolKernels& k, const WindowRows& rows, const Range& outputs,
                   float by, const float* dy, float* dx) {
  constexpr int64_t kPiece = 256;
  float share[kPiece];
  for (int64_t o = outputs.begin; o < outputs.end; o += kPiece) {
    const int64_t n = std::min(kPiece, outputs.end - o), first = o * p.stride[2] - p.padding[2];
    for (int64_t j = 0; j < n; ++j) share[j] = dy[o + j] / by;
    for (int64_t r = 0; r < rows.count; ++r) {
      for (int64_t i = 0; i < p.kernel[2]; ++i) {
        float* to = dx + first + rows.offsets[r] + i;
        if (p.stride[2] == 1) {
          k.combine(Reduction::sum, share, to, n);
        } else {
          for (int64_t j = 0; j < n; ++j) to[j * p.stride[2]] += share[j];
        }
      }
    }
  }
}

void spread_row(const Pooling& p, const PoolKernels& k, int64_t o0, int64_t o1, const float* x,
                const float* dy, float* dx, int64_t n) {
  const Range r0 = inside(p, 0, o0), r1 = inside(p, 1, o1);
  const WindowRows rows(p, r0, r1);
  const bool known = p.kind != Reduction::prod && rows.count > 0 && volume(p.kernel) < int64_t(1) << 24;
  const Range whole = known ? whole_windows(p, n) : Range{0, 0};
  const auto one_by_one = [&](int64_t begin, int64_t end) {
    for (int64_t o = begin; o < end; ++o) spread_window(p, r0, r1, inside(p, 2, o), x, dy[o], dx);
  };
  one_by_one(0, whole.begin);
  if (p.kind == Reduction::max || p.kind == Reduction::min) {
    spread_extremes(p, k, rows, whole, x, dy, dx);
  } else {
    const float by = p.kind == Reduction::mean ? divisor(p, r0, r1, {0, p.kernel[2]}) : 1.0f;
    spread_shares(p, k, rows, whole, by, dy, dx);
  }
  one_by_one(whole.end, n);
}

}  // namespace

Extents Pooling::out() const {
  Extents o{};
  for (size_t a = 0; a < 3; ++a) o[a] = (size[a] + 2 * padding[a] - kernel[a]) / stride[a] + 1;
  return o;
}

size_t pooling_workspace(const Pooling& p, int threads) {
  return size_t(threads) * round_up(size_t(padded_row(p)) * sizeof(float));
}

void pooling(Team team, const Pooling& p, std::byte* workspace) {
  check(p);
  const PoolKernels& k = pool_kernels();
  const Extents out = p.out();
  const int64_t rows = p.planes * out[0] * out[1];
  if (rows == 0) return;
  const int parts = int(std::min<int64_t>(team.threads(), ceil_div(rows, rows_worth(kGrain, out[2]))));
  team.run(parts, [&](int part) {
    float* row =
        reinterpret_cast<float*>(workspace + size_t(part) * round_up(size_t(padded_row(p)) * sizeof(float)));
    std::fill_n(row, padded_row(p), neutral(p.kind));
    const Range r = split_range(rows, 1, parts, part);
    for (int64_t i = r.begin; i < r.end; ++i) {
      const int64_t plane = i / (out[0] * out[1]), o = i % (out[0] * out[1]);
      const float* const from = p.x + plane * volume(p.size);
      ask_ahead(p, from + (inside(p, 0, o / out[1]).begin * p.size[1] + inside(p, 1, o % out[1]).begin) *
                              p.size[2]);
      pool_row(p, k, from, o / out[1], o % out[1], row, p.y + i * out[2], out[2]);
    }
  });
}

void pooling_backward(Team team, const PoolingBackward& b) {
  const Pooling& p = b.forward;
  check(p);
  const Extents out = p.out();
  const PoolKernels& k = pool_kernels();
  team.parallel_for(p.planes, planes_per_part(p), [&](int64_t begin, int64_t end) {
    for (int64_t plane = begin; plane < end; ++plane) {
      const float* x = p.x + plane * volume(p.size);
      const float* dy = b.dy + plane * volume(out);
      float* dx = b.dx + plane * volume(p.size);
      std::fill_n(dx, volume(p.size), 0.0f);
      for (int64_t o = 0; o < out[0] * out[1]; ++o)
        spread_row(p, k, o / out[1], o % out[1], x, dy + o * out[2], dx, out[2]);
    }
  });
}

}  // namespace rlx::cpu
