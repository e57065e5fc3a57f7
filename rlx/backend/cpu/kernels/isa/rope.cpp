// Plan: a row of the tables is read once and serves all heads of its position from L1. Half-split pairs are
// two vectors a head apart; interleaved pairs are two neighbouring vectors, separated into members by one
// shuffle each and joined by another. A pair is read before it is written, so y may be x. A large result goes
// past the caches: each line would be read before it is written otherwise. Bound: one read and one write of
// memory per element.
#include "rlx/backend/cpu/kernels/rope.h"

#include "rlx/backend/cpu/kernels/isa/panels.h"

namespace rlx::cpu::RLX_ISA {
namespace {

RLX_INLINE int clamp(int64_t lanes) { return lanes < 0 ? 0 : (lanes < kLanes ? int(lanes) : kLanes); }

struct Members {
  F32 first, second;
};
RLX_INLINE Members rotate(Members x, F32 c, F32 s) {
  return {fma(x.first, c, -(x.second * s)), fma(x.second, c, x.first * s)};
}

RLX_INLINE Members separate(F32 a, F32 b) { return {every_second(a, b, false), every_second(a, b, true)}; }

template <bool streaming, class T>
RLX_INLINE void put_result(T* y, F32 v, int lanes) {
  if constexpr (streaming) {
    stream(y, v);  // whole vectors only, see may_stream_rows
  } else {
    put(y, v, lanes);
  }
}

template <bool streaming, class T>
RLX_INLINE void rotate_head(const Rope& p, const T* x, T* y, const T* cos, const T* sin) {
  const int64_t pairs = p.rotated / 2;
  const float sign = p.inverse ? -1.0f : 1.0f;
  for (int64_t i = 0; i < pairs; i += kLanes) {
    const int lanes = clamp(pairs - i);
    const F32 c = fetch(cos + i, lanes), s = fetch(sin + i, lanes) * set1(sign);
    if (p.interleaved) {
      const int low = clamp(2 * lanes), high = clamp(2 * lanes - kLanes);
      const Members m = rotate(separate(fetch(x + 2 * i, low), fetch(x + 2 * i + kLanes, high)), c, s);
      put_result<streaming>(y + 2 * i, interleave(m.first, m.second, false), low);
      put_result<streaming>(y + 2 * i + kLanes, interleave(m.first, m.second, true), high);
    } else {
      const Members m = rotate({fetch(x + i, lanes), fetch(x + pairs + i, lanes)}, c, s);
      put_result<streaming>(y + i, m.first, lanes);
      put_result<streaming>(y + pairs + i, m.second, lanes);
    }
  }
  for (int64_t i = p.rotated; i < p.head_dim && x != y; ++i) y[i] = x[i];
}

template <bool streaming, class T>
RLX_INLINE void rows_of(const Rope& p, int64_t begin, int64_t end) {
  for (int64_t row = begin; row < end; ++row) {
    const int64_t b = row / p.length, i = row % p.length;
    const int64_t at = (p.positions == nullptr ? i : p.positions[b * p.position_stride + i]) * p.table_stride;
    const T* cos = static_cast<const T*>(p.cos) + at;
    const T* sin = static_cast<const T*>(p.sin) + at;
    const T* x = static_cast<const T*>(p.x) + b * p.x_strides.batch + i * p.x_strides.row;
    T* y = static_cast<T*>(p.y) + b * p.y_strides.batch + i * p.y_strides.row;
    for (int64_t h = 0; h < p.heads; ++h) {
      rotate_head<streaming>(p, x + h * p.x_strides.head, y + h * p.y_strides.head, cos, sin);
    }
  }
  if (streaming) stream_fence();
}

void rows(const Rope& p, int64_t begin, int64_t end, bool streaming) {
  if (streaming) return rows_of<true, float>(p, begin, end);
  switch (p.dtype) {
    case DType::f16:
      return rows_of<false, F16>(p, begin, end);
    case DType::bf16:
      return rows_of<false, Bf16>(p, begin, end);
    default:
      return rows_of<false, float>(p, begin, end);
  }
}

}  // namespace

RopeKernels rope_kernels() { return {.rows = rows}; }

}  // namespace rlx::cpu::RLX_ISA
