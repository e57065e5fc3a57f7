#include "rlx/backend/cpu/kernels/resize.h"

#include <cmath>

#include "rlx/backend/cpu/isa_table.h"
#include "rlx/backend/cpu/kernels/conv_geometry.h"
#include "rlx/backend/cpu/kernels/sizes.h"
#include "rlx/base/error.h"

namespace rlx::cpu {

RLX_ISA_TABLE(ResizeKernels, resize_kernels)

namespace {

// Elements below which a second thread costs more than it brings.
constexpr int64_t kSerialElements = 8192;

// Output o is (1 - part) x[low] + part x[high].
struct Tap {
  int64_t low, high;
  float part;
};

Tap tap(const Resize& p, int64_t in, int64_t out, int64_t o) {
  if (p.mode == ResizeMode::nearest) return {o * in / out, o * in / out, 0};
  double at = 0;
  if (!p.align_corners) {
    at = std::max(0.0, (double(o) + 0.5) * double(in) / double(out) - 0.5);
  } else if (out > 1) {
    at = double(o) * double(in - 1) / double(out - 1);
  }
  const int64_t low = std::min(int64_t(std::floor(at)), in - 1);
  return {low, std::min(low + 1, in - 1), float(at - double(low))};
}

/// One axis: x is [outer, from, inner], y is [outer, to, inner].
struct Step {
  int64_t outer, from, to, inner;
  const float* x;
  float* y;
};

void run_step(Team team, const Step& s, const Tap* taps, bool backward) {
  const ResizeKernels& k = resize_kernels();
  const int64_t larger = std::max(s.from, s.to) * s.inner;
  team.parallel_for(s.outer, std::max<int64_t>(1, kSerialElements / larger), [&](int64_t begin, int64_t end) {
    for (int64_t b = begin; b < end; ++b) {
      const float* x = s.x + b * s.from * s.inner;
      float* y = s.y + b * s.to * s.inner;
      if (backward) {
        std::fill_n(y, s.to * s.inner, 0.0f);
        for (int64_t o = 0; o < s.from; ++o) {
          const Tap t = taps[o];
          if (s.inner == 1) {
            y[t.low] += x[o] * (1 - t.part);
            y[t.high] += x[o] * t.part;
            continue;
          }
          k.add_scaled(x + o * s.inner, 1 - t.part, y + t.low * s.inner, s.inner);
          k.add_scaled(x + o * s.inner, t.part, y + t.high * s.inner, s.inner);
        }
        continue;
      }
      for (int64_t o = 0; o < s.to; ++o) {
        const Tap t = taps[o];
        if (s.inner == 1) {
          y[o] = t.part == 0 ? x[t.low] : x[t.low] * (1 - t.part) + x[t.high] * t.part;
        } else if (t.part == 0) {
          std::copy_n(x + t.low * s.inner, s.inner, y + o * s.inner);
        } else {
          k.blend(x + t.low * s.inner, x + t.high * s.inner, t.part, y + o * s.inner, s.inner);
        }
      }
    }
  });
}

int64_t longest(const Resize& p) { return std::max({p.to[0], p.to[1], p.to[2], int64_t(1)}); }

size_t half_bytes(const Resize& p) {
  int64_t most = 0;
  for (size_t a = 0; a < 3; ++a) {  // extents after axis a, forwards and backwards
    int64_t forward = p.planes, backward = p.planes;
    for (size_t i = 0; i < 3; ++i) {
      forward *= i <= a ? p.to[i] : p.size[i];
      backward *= i <= a ? p.size[i] : p.to[i];
    }
    most = std::max({most, forward, backward});
  }
  return round_up(size_t(most) * sizeof(float));
}

void run(Team team, const Resize& p, std::byte* workspace, bool backward) {
  const Extents& from = backward ? p.to : p.size;
  const Extents& to = backward ? p.size : p.to;
  if (p.planes * volume(to) == 0) return;
  RLX_CHECK(volume(p.size) > 0 || backward, "an empty axis cannot be resized");
  if (volume(from) == 0) {
    std::fill_n(p.y, p.planes * volume(to), 0.0f);
    return;
  }
  Tap* taps = reinterpret_cast<Tap*>(workspace);
  std::byte* half = workspace + round_up(size_t(longest(p)) * sizeof(Tap));
  size_t last = 0;
  for (size_t a = 0; a < 3; ++a) last = from[a] != to[a] ? a : last;
  Extents at = from;
  const float* x = p.x;
  int turn = 0;
  for (size_t a = 0; a <= last; ++a) {
    if (from[a] == to[a] && a != last) continue;
    for (int64_t o = 0; o < p.to[a]; ++o) taps[o] = tap(p, p.size[a], p.to[a], o);
    float* y = a == last ? p.y : reinterpret_cast<float*>(half + size_t(turn++ % 2) * half_bytes(p));
    int64_t outer = p.planes, inner = 1;
    for (size_t i = 0; i < a; ++i) outer *= at[i];
    for (size_t i = a + 1; i < 3; ++i) inner *= at[i];
    run_step(team, {outer, from[a], to[a], inner, x, y}, taps, backward);
    at[a] = to[a];
    x = y;
  }
}

}  // namespace

size_t resize_workspace(const Resize& p) {
  return round_up(size_t(longest(p)) * sizeof(Tap)) + 2 * half_bytes(p);
}

void resize(Team team, const Resize& p, std::byte* workspace) { run(team, p, workspace, false); }

void resize_backward(Team team, const Resize& p, std::byte* workspace) { run(team, p, workspace, true); }

}  // namespace rlx::cpu
