#include "rlx/backend/cpu/kernels/pool.h"

#include <cmath>

#include "rlx/backend/cpu/isa_table.h"
#include "rlx/backend/cpu/kernels/conv_geometry.h"
#include "rlx/backend/cpu/kernels/sizes.h"
#include "rlx/base/error.h"

namespace rlx::cpu {

RLX_ISA_TABLE(PoolKernels, pool_kernels)

namespace {

// Elements below which a second thread costs more than it brings.
constexpr int64_t kSerialElements = 8192;

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

int64_t planes_per_part(const Pooling& p) {
  return std::max<int64_t>(1, kSerialElements / std::max<int64_t>(1, volume(p.size)));
}

float divisor(const Pooling& p, const Range& r0, const Range& r1, const Range& r2) {
  return float(p.count_padding ? volume(p.kernel) : length(r0) * length(r1) * length(r2));
}

void pool_row(const Pooling& p, const PoolKernels& k, const float* plane, int64_t o0, int64_t o1, float* row,
              float* y, int64_t n) {
  const Range r0 = inside(p, 0, o0), r1 = inside(p, 1, o1);
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
  k.combine_windows(p.kind, row, p.kernel[2], p.stride[2], y, n);
  if (p.kind != Reduction::mean) return;
  for (int64_t o = 0; o < n; ++o) y[o] /= divisor(p, r0, r1, inside(p, 2, o));
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
  const int parts = int(std::min<int64_t>(
      team.threads(), ceil_div(rows, std::max<int64_t>(1, kSerialElements / std::max<int64_t>(1, out[2])))));
  team.run(parts, [&](int part) {
    float* row =
        reinterpret_cast<float*>(workspace + size_t(part) * round_up(size_t(padded_row(p)) * sizeof(float)));
    std::fill_n(row, padded_row(p), neutral(p.kind));
    const Range r = split_range(rows, 1, parts, part);
    for (int64_t i = r.begin; i < r.end; ++i) {
      const int64_t plane = i / (out[0] * out[1]), o = i % (out[0] * out[1]);
      pool_row(p, k, p.x + plane * volume(p.size), o / out[1], o % out[1], row, p.y + i * out[2], out[2]);
    }
  });
}

void pooling_backward(Team team, const PoolingBackward& b) {
  const Pooling& p = b.forward;
  check(p);
  const Extents out = p.out();
  team.parallel_for(p.planes, planes_per_part(p), [&](int64_t begin, int64_t end) {
    for (int64_t plane = begin; plane < end; ++plane) {
      const float* x = p.x + plane * volume(p.size);
      const float* dy = b.dy + plane * volume(out);
      float* dx = b.dx + plane * volume(p.size);
      std::fill_n(dx, volume(p.size), 0.0f);
      for (int64_t o = 0; o < volume(out); ++o) {
        spread_window(p, inside(p, 0, o / (out[1] * out[2])), inside(p, 1, o / out[2] % out[1]),
                      inside(p, 2, o % out[2]), x, dy[o], dx);
      }
    }
  });
}

}  // namespace rlx::cpu
