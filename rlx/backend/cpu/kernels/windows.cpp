#include "rlx/backend/cpu/kernels/windows.h"

#include <cstring>

#include "rlx/backend/cpu/kernels/conv/conv_geometry.h"
#include "rlx/backend/cpu/kernels/grain.h"
#include "rlx/backend/cpu/kernels/sizes.h"
#include "rlx/base/error.h"

namespace rlx::cpu {
namespace {

// The positions o for which o stride + k - padding lies in [0, size).
struct Run {
  int64_t begin, end;
};
Run inside(const Windows& p, size_t axis, int64_t k) {
  const int64_t shift = p.padding[axis] - k, stride = p.stride[axis];
  const int64_t begin = shift <= 0 ? 0 : ceil_div(shift, stride);
  const int64_t last = p.size[axis] - 1 + shift;
  const int64_t end = last < 0 ? 0 : std::min(p.out[axis], last / stride + 1);
  return {std::min(begin, end), end};
}

// line(source, step, window, pitch, count): `count` elements of the last axis inside x, `step` apart there
// and `pitch` apart among the windows; positions are those of one plane.
template <class Line>
void each_line(const Windows& p, Line line) {
  const int64_t taps = volume(p.kernel);
  for (int64_t tap = 0; tap < taps; ++tap) {
    const int64_t k2 = tap % p.kernel[2], k1 = tap / p.kernel[2] % p.kernel[1];
    const int64_t k0 = tap / (p.kernel[2] * p.kernel[1]);
    const Run r0 = inside(p, 0, k0), r1 = inside(p, 1, k1), r2 = inside(p, 2, k2);
    if (r2.begin == r2.end) continue;
    for (int64_t o0 = r0.begin; o0 < r0.end; ++o0) {
      for (int64_t o1 = r1.begin; o1 < r1.end; ++o1) {
        const int64_t i0 = o0 * p.stride[0] + k0 - p.padding[0], i1 = o1 * p.stride[1] + k1 - p.padding[1];
        const int64_t i2 = r2.begin * p.stride[2] + k2 - p.padding[2];
        const int64_t o = (o0 * p.out[1] + o1) * p.out[2] + r2.begin;
        line((i0 * p.size[1] + i1) * p.size[2] + i2, p.stride[2], o * taps + tap, taps, r2.end - r2.begin);
      }
    }
  }
}

int64_t planes_per_part(const Windows& p) {
  return rows_worth(kLightGrain, volume(p.out) * volume(p.kernel));
}

template <class T>
void copy_planes(Team team, const Windows& p) {
  const int64_t source = volume(p.size), result = volume(p.out) * volume(p.kernel);
  team.parallel_for(p.planes, planes_per_part(p), [&](int64_t begin, int64_t end) {
    std::memset(static_cast<T*>(p.to) + begin * result, 0, size_t((end - begin) * result) * sizeof(T));
    for (int64_t plane = begin; plane < end; ++plane) {
      const T* x = static_cast<const T*>(p.from) + plane * source;
      T* y = static_cast<T*>(p.to) + plane * result;
      each_line(p, [&](int64_t from, int64_t step, int64_t to, int64_t pitch, int64_t count) {
        for (int64_t i = 0; i < count; ++i) y[to + i * pitch] = x[from + i * step];
      });
    }
  });
}

template <class T>
void sum_planes(Team team, const Windows& p) {
  const int64_t result = volume(p.size), source = volume(p.out) * volume(p.kernel);
  team.parallel_for(p.planes, planes_per_part(p), [&](int64_t begin, int64_t end) {
    std::memset(static_cast<T*>(p.to) + begin * result, 0, size_t((end - begin) * result) * sizeof(T));
    for (int64_t plane = begin; plane < end; ++plane) {
      const T* x = static_cast<const T*>(p.from) + plane * source;
      T* y = static_cast<T*>(p.to) + plane * result;
      each_line(p, [&](int64_t at, int64_t step, int64_t from, int64_t pitch, int64_t count) {
        for (int64_t i = 0; i < count; ++i) y[at + i * step] += x[from + i * pitch];
      });
    }
  });
}

}  // namespace

void windows(Team team, const Windows& p) {
  switch (dtype_size(p.dtype)) {
    case 1:
      return copy_planes<uint8_t>(team, p);
    case 2:
      return copy_planes<uint16_t>(team, p);
    case 4:
      return copy_planes<uint32_t>(team, p);
    default:
      return copy_planes<uint64_t>(team, p);
  }
}

// Integers wrap: they are summed as unsigned numbers.
void windows_sum(Team team, const Windows& p) {
  if (p.dtype == DType::f32) return sum_planes<float>(team, p);
  if (p.dtype == DType::f64) return sum_planes<double>(team, p);
  if (p.dtype == DType::i32) return sum_planes<uint32_t>(team, p);
  if (p.dtype == DType::i64) return sum_planes<uint64_t>(team, p);
  throw invalid("windows_sum: dtype is ", p.dtype, "; it must be f32, f64, i32 or i64");
}

}  // namespace rlx::cpu
