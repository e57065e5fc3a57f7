#include "rlx/backend/cpu/kernels/splat.h"

#include <algorithm>
#include <atomic>
#include <cmath>

#include "rlx/backend/cpu/isa_table.h"
#include "rlx/backend/cpu/kernels/sizes.h"
#include "rlx/backend/cpu/kernels/splat_geometry.h"
#include "rlx/base/error.h"

namespace rlx::cpu {

RLX_ISA_TABLE(SplatKernels, splat_kernels)

namespace {

using namespace splat;

constexpr int64_t kLanes = 16;  // pixels of a tile are padded to the longest vectors
constexpr int kPlanes = 16;     // arrays of one value for each pixel of a tile

int64_t padded_pixels(const SplatPicture& p) { return ceil_div(p.tile_size * p.tile_size, kLanes) * kLanes; }

size_t tile_bytes(const SplatPicture& p) { return size_t(padded_pixels(p)) * kPlanes * sizeof(float); }

size_t terms_bytes(int64_t count) { return round_up(size_t(count) * sizeof(SplatTerms)); }

void check_lists(const SplatPicture& p, const SplatBlend& b) {
  for (int64_t t = 0; t < p.tiles(); ++t) {
    const int32_t begin = b.in.ranges[2 * t], end = b.in.ranges[2 * t + 1];
    if (begin < 0 || end < 0 || begin > p.max_list_entries || end > p.max_list_entries) {
      throw invalid("splat_blend: the list of tile ", t, " is [", begin, ", ", end, "); ids have ",
                    p.max_list_entries, " entries");
    }
    for (int32_t e = begin; e < end; ++e) {
      if (b.in.ids[e] < 0 || b.in.ids[e] >= b.count) {
        throw invalid("splat_blend: entry ", e, " of ids is ", b.in.ids[e], "; there are ", b.count,
                      " splats");
      }
    }
  }
}

SplatTerms terms_of(const SplatPicture& p, const SplatBlend& b, int64_t i) {
  SplatTerms t;
  const Vec o = read(b.in.origin + 3 * i);
  Mat m;
  Vec q{};
  for (size_t a = 0; a < 3; ++a) {
    m[a] = read(b.in.transform + 9 * i + 3 * int64_t(a));
    q = plus(q, scaled(m[a], o[a]));
    write(t.m + 3 * a, m[a]);
  }
  for (size_t a = 0; a < 3; ++a) {  // row a of [o]x M
    const size_t next = (a + 1) % 3, other = (a + 2) % 3;
    write(t.k + 3 * a, minus(scaled(m[other], o[next]), scaled(m[next], o[other])));
  }
  write(t.q, q);
  std::copy_n(b.in.origin + 3 * i, 3, t.o);
  std::copy_n(b.in.color + 3 * i, 3, t.color);
  t.opacity = b.in.opacity[i];
  const double reach = -2 * std::log(p.alpha_cutoff / double(t.opacity));
  t.reach = float(reach * 1.001 + 1e-3);
  return t;
}

// The pixels of a tile in the planes of a thread's work area.
struct TileWork {
  SplatTile tile;
  float* base;
  int64_t stride;

  TileWork(std::byte* area, const SplatPicture& p)
      : base(reinterpret_cast<float*>(area)), stride(padded_pixels(p)) {
    tile.pixels = stride;
    tile.cutoff = float(p.alpha_cutoff);
    tile.threshold = float(p.transmittance_threshold);
    tile.max_steps = int32_t(std::min<int64_t>(p.max_splat_steps, INT32_MAX));
  }
  float* plane(int i) const { return base + i * stride; }
  int32_t* integers(int i) const { return reinterpret_cast<int32_t*>(plane(i)); }
};

/// body(slot, pixel): place in the tile's planes and pixel of the picture, row by row.
template <class Body>
void each_pixel(const SplatPicture& p, int64_t tile, Body body) {
  const int64_t y0 = tile / p.tiles_x() * p.tile_size, x0 = tile % p.tiles_x() * p.tile_size;
  int64_t slot = 0;
  for (int64_t y = y0; y < std::min(p.height, y0 + p.tile_size); ++y) {
    for (int64_t x = x0; x < std::min(p.width, x0 + p.tile_size); ++x) body(slot++, y * p.width + x);
  }
}

void load_list(TileWork& w, const SplatBlend& b, const SplatTerms* terms, int64_t tile) {
  const int32_t begin = b.in.ranges[2 * tile];
  w.tile.terms = terms;
  w.tile.ids = b.in.ids + begin;
  w.tile.length = std::max<int64_t>(0, b.in.ranges[2 * tile + 1] - begin);
  for (int c = 0; c < 3; ++c) w.tile.ray[c] = w.plane(c);
}

int64_t blend_tile(const SplatPicture& p, const SplatBlend& b, const SplatTerms* terms, int64_t tile,
                   std::byte* area) {
  TileWork w(area, p);
  load_list(w, b, terms, tile);
  w.tile.light = w.plane(3);
  for (int c = 0; c < 3; ++c) w.tile.sum[c] = w.plane(4 + c);
  w.tile.before = w.plane(7);
  w.tile.steps = w.integers(8);
  w.tile.active = w.integers(9);
  w.tile.last = w.integers(10);
  std::fill_n(w.base, 11 * w.stride, 0.0f);
  std::fill_n(w.tile.light, w.stride, 1.0f);
  each_pixel(p, tile, [&](int64_t slot, int64_t pixel) {
    for (int c = 0; c < 3; ++c) w.plane(c)[slot] = b.in.rays[3 * pixel + c];
    w.tile.active[slot] = -1;
  });
  const int64_t stopped = splat_kernels().blend(w.tile);
  each_pixel(p, tile, [&](int64_t slot, int64_t pixel) {
    const float light = w.tile.light[slot];
    for (int c = 0; c < 3; ++c) {
      b.rgba[4 * pixel + c] = std::max(w.tile.sum[c][slot] + light * b.background[c], 0.0f);
    }
    b.rgba[4 * pixel + 3] = 1 - light;
    if (b.last != nullptr) b.last[pixel] = w.tile.last[slot];
    if (b.before != nullptr) b.before[pixel] = w.tile.before[slot];
  });
  return stopped;
}

void make_terms(Team team, const SplatPicture& p, const SplatBlend& b, SplatTerms* terms) {
  team.parallel_for(b.count, 512, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) terms[i] = terms_of(p, b, i);
  });
}

/// body(tile, area of the thread) for all tiles, on demand: lists differ in length.
template <class Body>
void each_tile(Team team, const SplatPicture& p, std::byte* areas, Body body) {
  std::atomic<int64_t> next{0};
  const int64_t tiles = p.tiles();
  team.run(int(std::min<int64_t>(team.threads(), tiles)), [&](int part) {
    for (int64_t t; (t = next.fetch_add(1, std::memory_order_relaxed)) < tiles;)
      body(t, areas + size_t(part) * tile_bytes(p));
  });
}

}  // namespace

size_t splat_blend_workspace(const SplatPicture& p, const SplatBlend& b, int threads) {
  return terms_bytes(b.count) + size_t(threads) * tile_bytes(p);
}

void splat_blend(Team team, const SplatPicture& p, const SplatBlend& b, std::byte* workspace) {
  check_lists(p, b);
  auto* terms = reinterpret_cast<SplatTerms*>(workspace);
  make_terms(team, p, b, terms);
  std::atomic<int64_t> stopped{0};
  each_tile(team, p, workspace + terms_bytes(b.count),
            [&](int64_t tile, std::byte* area) { stopped += blend_tile(p, b, terms, tile, area); });
  *b.stopped = int32_t(stopped.load());
}

namespace {

// Behind the terms and the areas of the threads: gradients of list entries, of the background by tile, and
// the chains of entries of each splat.
struct GradientWork {
  SplatTerms* terms;
  std::byte* areas;
  float* entries;
  float* background;
  int32_t *head, *next;

  static size_t entry_bytes(const SplatPicture& p) {
    return round_up(size_t(p.max_list_entries) * kSplatGradients * sizeof(float));
  }
  static size_t bytes(const SplatPicture& p, const SplatBlend& b, int threads) {
    return splat_blend_workspace(p, b, threads) + entry_bytes(p) + round_up(size_t(p.tiles()) * 12) +
           round_up(size_t(b.count + p.max_list_entries) * 4);
  }
  GradientWork(std::byte* area, Team team, const SplatPicture& p, const SplatBlend& b) {
    terms = reinterpret_cast<SplatTerms*>(area);
    areas = area + terms_bytes(b.count);
    entries = reinterpret_cast<float*>(area += splat_blend_workspace(p, b, team.threads()));
    background = reinterpret_cast<float*>(area += entry_bytes(p));
    head = reinterpret_cast<int32_t*>(area + round_up(size_t(p.tiles()) * 12));
    next = head + b.count;
  }
};

void blend_tile_backward(const SplatPicture& p, const SplatBlendGradient& g, const GradientWork& work,
                         int64_t tile, std::byte* area) {
  const SplatBlend& b = g.forward;
  TileWork w(area, p);
  load_list(w, b, work.terms, tile);
  w.tile.light = w.plane(3);
  w.tile.before = w.plane(4);
  w.tile.last = w.integers(5);
  w.tile.dlight = w.plane(6);
  w.tile.behind = w.plane(7);
  for (int c = 0; c < 3; ++c) w.tile.gradient[c] = w.plane(8 + c), w.tile.dray[c] = w.plane(11 + c);
  w.tile.entries = work.entries + int64_t(b.in.ranges[2 * tile]) * kSplatGradients;
  std::fill_n(w.base, 14 * w.stride, 0.0f);
  double background[3] = {};
  each_pixel(p, tile, [&](int64_t slot, int64_t pixel) {
    const float *rgba = b.rgba + 4 * pixel, *drgba = g.drgba + 4 * pixel;
    const float light = 1 - rgba[3];
    float dlight = -drgba[3];
    for (int c = 0; c < 3; ++c) {
      w.plane(c)[slot] = b.in.rays[3 * pixel + c];
      const float gradient = rgba[c] > 0 ? drgba[c] : 0.0f;
      w.plane(8 + c)[slot] = gradient;
      dlight += gradient * b.background[c];
      background[c] += double(gradient) * double(light);
    }
    w.plane(6)[slot] = dlight;
    w.tile.before[slot] = b.before[pixel];
    w.tile.last[slot] = b.last[pixel];
  });
  splat_kernels().blend_backward(w.tile);
  for (int c = 0; c < 3; ++c) work.background[3 * tile + c] = float(background[c]);
  each_pixel(p, tile, [&](int64_t slot, int64_t pixel) {
    for (int c = 0; c < 3; ++c) g.drays[3 * pixel + c] = w.tile.dray[c][slot];
  });
}

// The entries of a splat, summed in the order of the lists.
void sum_entries(const SplatBlendGradient& g, const GradientWork& work, int64_t i) {
  double sum[kSplatGradients] = {};
  for (int32_t e = work.head[i]; e >= 0; e = work.next[e]) {
    for (int c = 0; c < kSplatGradients; ++c) sum[c] += double(work.entries[e * kSplatGradients + c]);
  }
  for (int64_t c = 0; c < 3; ++c) g.dcolor[3 * i + c] = float(sum[c]);
  g.dopacity[i] = float(sum[3]);
  for (int64_t c = 0; c < 3; ++c) g.dorigin[3 * i + c] = float(sum[4 + c]);
  for (int64_t c = 0; c < 9; ++c) g.dtransform[9 * i + c] = float(sum[7 + c]);
}

}  // namespace

size_t splat_blend_backward_workspace(const SplatPicture& p, const SplatBlendGradient& g, int threads) {
  return GradientWork::bytes(p, g.forward, threads);
}

void splat_blend_backward(Team team, const SplatPicture& p, const SplatBlendGradient& g,
                          std::byte* workspace) {
  const SplatBlend& b = g.forward;
  check_lists(p, b);
  const GradientWork work(workspace, team, p, b);
  make_terms(team, p, b, work.terms);
  each_tile(team, p, work.areas,
            [&](int64_t tile, std::byte* area) { blend_tile_backward(p, g, work, tile, area); });
  std::fill_n(work.head, b.count, -1);
  for (int64_t t = p.tiles(); t-- > 0;) {  // backwards, so that chains run forwards
    for (int32_t e = b.in.ranges[2 * t + 1]; e-- > b.in.ranges[2 * t];) {
      work.next[e] = work.head[b.in.ids[e]];
      work.head[b.in.ids[e]] = e;
    }
  }
  team.parallel_for(b.count, 256, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) sum_entries(g, work, i);
  });
  double background[3] = {};
  for (int64_t t = 0; t < p.tiles(); ++t) {
    for (int c = 0; c < 3; ++c) background[c] += double(work.background[3 * t + c]);
  }
  for (int c = 0; c < 3; ++c) g.dbackground[c] = float(background[c]);
}

}  // namespace rlx::cpu
