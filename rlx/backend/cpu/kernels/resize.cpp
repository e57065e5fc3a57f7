#include "rlx/backend/cpu/kernels/resize.h"

#include <cmath>

#include "rlx/backend/cpu/isa_table.h"
#include "rlx/backend/cpu/kernels/conv/conv_geometry.h"
#include "rlx/backend/cpu/kernels/grain.h"
#include "rlx/backend/cpu/kernels/sizes.h"
#include "rlx/base/error.h"

namespace rlx::cpu {

RLX_ISA_TABLE(ResizeKernels, resize_kernels)

namespace {

ResizeTap tap(const Resize& p, int64_t in, int64_t out, int64_t o) {
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

int64_t longest(const Extents& e) { return std::max({e[0], e[1], e[2], int64_t(1)}); }

// A workspace: the taps of one axis, two arrays between axes, and one strip of rows for each thread.
struct Areas {
  ResizeTap* taps;
  float *half[2], *strip;
};
struct Sizes {
  size_t taps, half, strip;  // bytes
  Sizes(const Resize& p, int64_t planes) {
    taps = round_up(size_t(longest(p.to)) * sizeof(ResizeTap));
    int64_t most = 0;
    for (size_t a = 0; a < 3; ++a) {  // extents after axis a, forwards and backwards
      int64_t forward = planes, backward = planes;
      for (size_t i = 0; i < 3; ++i) {
        forward *= i <= a ? p.to[i] : p.size[i];
        backward *= i <= a ? p.size[i] : p.to[i];
      }
      most = std::max({most, forward, backward});
    }
    half = round_up(size_t(most) * sizeof(float));
    strip = round_up(size_t(kResizeRows * (longest(p.size) + longest(p.to))) * sizeof(float));
  }
  size_t all(int threads) const { return taps + 2 * half + size_t(threads) * strip; }
  Areas cut(std::byte* area) const {
    float* first = reinterpret_cast<float*>(area + taps);
    return {reinterpret_cast<ResizeTap*>(area),
            {first, first + half / sizeof(float)},
            first + 2 * half / sizeof(float)};
  }
};

/// One axis: x is [outer, from, inner], y is [outer, to, inner].
void run_axis(Team team, const ResizeAxis& axis, int64_t outer, int64_t inner, const float* x, float* y,
              float* strips, size_t strip_floats) {
  const ResizeKernels& k = resize_kernels();
  const int64_t larger = std::max(axis.from, axis.to) * inner;
  const int64_t grain = ceil_div(rows_worth(kGrain, larger), kResizeRows) * kResizeRows;
  const int parts = int(std::min<int64_t>(team.threads(), ceil_div(outer, inner == 1 ? grain : 1)));
  team.run(parts, [&](int part) {
    const Range r = split_range(outer, inner == 1 ? kResizeRows : 1, parts, part);
    const auto from = [&](int64_t b) { return x + b * axis.from * inner; };
    const auto to = [&](int64_t b) { return y + b * axis.to * inner; };
    if (inner > 1) {
      for (int64_t b = r.begin; b < r.end; ++b) k.along(axis, from(b), to(b), inner);
      return;
    }
    for (int64_t b = r.begin; b < r.end; b += kResizeRows) {
      k.last(axis, from(b), to(b), std::min(kResizeRows, r.end - b), strips + size_t(part) * strip_floats);
    }
  });
}

void run_axes(Team team, const Resize& p, std::byte* workspace, bool backward) {
  const Sizes sizes(p, p.planes);
  const Areas areas = sizes.cut(workspace);
  const Extents& from = backward ? p.to : p.size;
  const Extents& to = backward ? p.size : p.to;
  size_t last = 0;
  for (size_t a = 0; a < 3; ++a) last = from[a] != to[a] ? a : last;
  Extents at = from;
  const float* x = p.x;
  int turn = 0;
  for (size_t a = 0; a <= last; ++a) {
    if (from[a] == to[a] && a != last) continue;
    for (int64_t o = 0; o < p.to[a]; ++o) areas.taps[o] = tap(p, p.size[a], p.to[a], o);
    float* y = a == last ? p.y : areas.half[turn++ % 2];
    int64_t outer = p.planes, inner = 1;
    for (size_t i = 0; i < a; ++i) outer *= at[i];
    for (size_t i = a + 1; i < 3; ++i) inner *= at[i];
    run_axis(team, {areas.taps, from[a], to[a], backward}, outer, inner, x, y, areas.strip,
             sizes.strip / sizeof(float));
    at[a] = to[a];
    x = y;
  }
}

// With a plane or more for each thread, a plane goes through all axes before the next one: what lies between
// two axes stays in cache.
bool by_planes(const Resize& p, int threads) { return p.planes >= threads; }

void run(Team team, const Resize& p, std::byte* workspace, bool backward) {
  const int64_t from = volume(backward ? p.to : p.size), to = volume(backward ? p.size : p.to);
  if (p.planes * to == 0) return;
  RLX_CHECK(volume(p.size) > 0 || backward, "an empty axis cannot be resized");
  if (from == 0) {
    std::fill_n(p.y, p.planes * to, 0.0f);
    return;
  }
  if (!by_planes(p, team.threads())) return run_axes(team, p, workspace, backward);
  const int parts = int(std::min<int64_t>(team.threads(), ceil_div(p.planes * std::max(from, to), kGrain)));
  team.run(parts, [&](int part) {
    const Range r = split_range(p.planes, 1, parts, part);
    for (int64_t i = r.begin; i < r.end; ++i) {
      Resize one = p;
      one.planes = 1, one.x += i * from, one.y += i * to;
      run_axes(team.limited(1), one, workspace + size_t(part) * Sizes(p, 1).all(1), backward);
    }
  });
}

}  // namespace

size_t resize_workspace(const Resize& p, int threads) {
  // A smaller team may have a plane for each thread where this one has not.
  const size_t planes = size_t(std::min<int64_t>(threads, p.planes)) * Sizes(p, 1).all(1);
  return by_planes(p, threads) ? planes : std::max(planes, Sizes(p, p.planes).all(threads));
}

void resize(Team team, const Resize& p, std::byte* workspace) { run(team, p, workspace, false); }

void resize_backward(Team team, const Resize& p, std::byte* workspace) { run(team, p, workspace, true); }

}  // namespace rlx::cpu
