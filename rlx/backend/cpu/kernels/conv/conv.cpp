// Plan. Kernels of 3 x 3 at stride 1 are multiplied as transformed squares (conv_winograd.cpp), most other
// products go by rows (conv_rows.cpp), most gradients of weights have input channels in the lanes
// (conv_weights.cpp), depthwise planes with square kernels at stride 1 are read in place
// (conv_depthwise.cpp). For the rest, few channels and gradients at a stride, the source is copied into a
// frame of zeros (unless nothing reaches outside it), then
//   product    tasks are panels of output positions of an image and group; a panel runs through all tiles of
//              output channels, whose packed weights stay in L2 while the inputs of the panel stay in L1. At
//              stride 1 outputs are counted by padded places: a tap is then a shift of one flat array and
//              nothing is copied; sums at places that are no outputs are dropped. Other panels are gathered.
//   depthwise  tasks are planes, framed in the thread's own memory; an output row is a weighted sum of input
//              rows, shifted.
//   weights    image after image, dy is turned to [position][channel], then tasks are tiles of
//              (tap, channel) rows and output channels; each sum is one chain in the order of images and
//              positions.
#include "rlx/backend/cpu/kernels/conv/conv.h"

#include <cstring>

#include "rlx/backend/cpu/isa_table.h"
#include "rlx/backend/cpu/kernels/conv/conv_depthwise.h"
#include "rlx/backend/cpu/kernels/conv/conv_geometry.h"
#include "rlx/backend/cpu/kernels/conv/conv_rows.h"
#include "rlx/backend/cpu/kernels/conv/conv_weights.h"
#include "rlx/backend/cpu/kernels/conv/conv_winograd.h"
#include "rlx/backend/cpu/kernels/sizes.h"
#include "rlx/base/error.h"

namespace rlx::cpu {

RLX_ISA_TABLE(ConvKernels, conv_kernels)

namespace {

// Elements a loose read or write may reach beyond its end: two vectors of 64 bytes and more.
constexpr int64_t kSlack = 64;

size_t floats(int64_t n) { return round_up(size_t(n) * sizeof(float)); }

/// The outputs in places [begin, end) of a phase, as runs of neighbours.
int64_t segments_of(const ConvGeometry& g, const ConvPhase& phase, int64_t begin, int64_t end,
                    ConvSegment* out) {
  const Extents& count = phase.count;
  const int64_t width = g.flat ? g.padded[2] : count[2], height = g.flat ? g.padded[1] : count[1];
  int64_t n = 0;
  for (int64_t p = begin; p < end;) {
    const Extents o{p / (height * width), p / width % height, p % width};
    if (o[1] >= count[1]) {
      p = (o[0] + 1) * height * width;
    } else if (o[2] >= count[2]) {
      p += width - o[2];
    } else {
      const int64_t length = std::min(count[2] - o[2], end - p);
      const int64_t i0 = phase.first[0] + o[0] * g.spread[0], i1 = phase.first[1] + o[1] * g.spread[1],
                    i2 = phase.first[2] + o[2] * g.spread[2];
      out[n++] = {g.position(o), p - begin, length, (i0 * g.result[1] + i1) * g.result[2] + i2};
      p += length;
    }
  }
  return n;
}

/// Bytes of the parts of the workspace: once, and for each thread.
struct Layout {
  int64_t planes = 0;   // of the source
  int64_t columns = 0;  // weights: (tap, channel) pairs
  int64_t panels = 0;   // weights: panels of output channels
  size_t frame = 0, turned = 0, result = 0, runs = 0;
  size_t gathered = 0, sums = 0, segments = 0, thread = 0;
};

Layout layout(const Conv& p) {
  const ConvGeometry& g = p.plan->geometry();
  const ConvShape& s = p.plan->shape();
  Layout l;
  l.planes = s.batch * s.groups * g.source_channels;
  if (p.plan->pass() == ConvPass::backward_weights)
    l.runs = round_up(size_t(g.result[0] * g.result[1]) * sizeof(int64_t));
  if (g.depthwise) {
    l.thread = floats(g.padded_volume() + kSlack) + floats(g.result[2]);
    return l;
  }
  if (g.framed) l.frame = floats(l.planes * g.padded_volume() + kSlack);
  l.sums = floats(g.rows * g.columns);
  if (p.plan->pass() == ConvPass::backward_weights) {
    l.columns = volume(s.kernel) * g.source_channels;
    l.panels = ceil_div(g.result_channels, g.columns);
    l.turned = floats(s.groups * l.panels * volume(g.result) * g.columns);
    l.result = floats(s.groups * l.panels * l.columns * g.columns);
    return l;
  }
  int64_t depth = 0;
  for (const ConvPhase& phase : g.phases)
    depth = std::max(depth, int64_t(phase.taps.size()) * g.source_channels);
  if (!g.flat || !g.framed) l.gathered = floats(depth * g.columns + kSlack);
  l.segments = round_up(size_t(g.columns) * sizeof(ConvSegment));
  l.thread = l.gathered + l.sums + l.segments;
  return l;
}

/// What of a plane lies inside its frame, whose border is zero already.
void copy_inside(const ConvGeometry& g, const float* source, float* frame) {
  Extents from, to;
  for (size_t a = 0; a < 3; ++a) {
    from[a] = std::max<int64_t>(0, g.lowest[a]);
    to[a] = std::min(g.source[a], g.lowest[a] + g.padded[a]);
  }
  if (to[2] <= from[2]) return;
  for (int64_t i0 = from[0]; i0 < to[0]; ++i0) {
    for (int64_t i1 = from[1]; i1 < to[1]; ++i1) {
      float* row = frame + ((i0 - g.lowest[0]) * g.padded[1] + i1 - g.lowest[1]) * g.padded[2];
      std::memcpy(row + from[2] - g.lowest[2], source + (i0 * g.source[1] + i1) * g.source[2] + from[2],
                  size_t(to[2] - from[2]) * sizeof(float));
    }
  }
}

const float* framed(Team team, const ConvGeometry& g, int64_t planes, const float* source, float* frame) {
  if (!g.framed) return source;
  const int64_t size = g.padded_volume();
  team.parallel_for(planes, std::max<int64_t>(1, 8192 / std::max<int64_t>(1, size)),
                    [&](int64_t b, int64_t e) {
                      for (int64_t i = b; i < e; ++i) {
                        std::fill_n(frame + i * size, size, 0.0f);
                        copy_inside(g, source + i * volume(g.source), frame + i * size);
                      }
                    });
  return frame;
}

/// Where the input rows of the output rows begin.
void input_runs(const ConvGeometry& g, int64_t* runs) {
  for (int64_t r = 0; r < g.result[0] * g.result[1]; ++r)
    runs[r] = g.position({r / g.result[1], r % g.result[1], 0});
}

void copy_out(const ConvGeometry& g, const ConvSegment& s, const float* sums, float* plane) {
  if (g.spread[2] == 1) {
    std::memcpy(plane + s.target, sums + s.column, size_t(s.length) * sizeof(float));
    return;
  }
  for (int64_t i = 0; i < s.length; ++i) plane[s.target + i * g.spread[2]] = sums[s.column + i];
}

void run_product(Team team, const Conv& p, const Layout& l, const float* source, std::byte* workspace) {
  const ConvGeometry& g = p.plan->geometry();
  const ConvShape& s = p.plan->shape();
  const ConvKernels& k = conv_kernels();
  const int64_t items = s.batch * s.groups, size = volume(g.result);
  // Few positions and many channels: the tiles of a panel are shared out as well.
  const int64_t wanted = ceil_div(2 * team.threads(), std::max<int64_t>(1, items * g.panels));
  const int64_t shares = team.threads() == 1 ? 1 : std::clamp<int64_t>(wanted, 1, g.tiles());
  const int64_t tasks = items * g.panels * shares;
  std::atomic<int64_t> next{0};
  team.run(int(std::min<int64_t>(team.threads(), tasks)), [&](int thread) {
    std::byte* mine = workspace + size_t(thread) * l.thread;
    float* gathered = reinterpret_cast<float*>(mine);
    float* sums = reinterpret_cast<float*>(mine + l.gathered);
    auto* segments = reinterpret_cast<ConvSegment*>(mine + l.gathered + l.sums);
    for (int64_t task; (task = next.fetch_add(1, std::memory_order_relaxed)) < tasks;) {
      const int64_t share = task % shares, item = task / shares / g.panels, panel = task / shares % g.panels;
      size_t which = 0;
      while (g.phases[which].last_panel <= panel) ++which;
      const ConvPhase& phase = g.phases[which];
      const int64_t first = (panel - (which == 0 ? 0 : g.phases[which - 1].last_panel)) * g.columns;
      const int64_t count = segments_of(g, phase, first, std::min(phase.span, first + g.columns), segments);
      if (count == 0) continue;
      const int64_t group = item % s.groups;
      ConvTile tile{.sums = sums};
      tile.source = source + item * g.source_channels * g.padded_volume();
      tile.plane = g.padded_volume(), tile.channels = g.source_channels;
      tile.taps = phase.taps.data(), tile.tap_count = int64_t(phase.taps.size());
      if (g.flat && (g.framed || first + g.columns <= phase.span)) {
        tile.source += first;
      } else {
        k.gather(tile, segments, count, g.step[2], g.framed && g.step[2] <= 2, gathered);
        tile.source = gathered, tile.plane = g.columns, tile.taps = phase.gathered.data();
      }
      // A whole panel of neighbours: the sums need no buffer.
      const bool direct = count == 1 && segments[0].length == g.columns && g.spread[2] == 1;
      tile.sums_stride = direct ? size : g.columns;
      const Range tiles = split_range(g.tiles(), 1, int(shares), int(share));
      for (int64_t i = tiles.begin; i < tiles.end; ++i) {
        const int64_t row = i * g.rows, channel = group * g.result_channels + row;
        tile.rows = int(std::min<int64_t>(g.rows, g.result_channels - row));
        tile.weights = p.weights->data() + phase.weights + channel * tile.tap_count * g.source_channels;
        tile.start = p.bias != nullptr ? p.bias + channel : nullptr;
        float* plane = p.out + (item * g.result_channels + row) * size;
        if (direct) tile.sums = plane + segments[0].target;
        k.tile(tile);
        for (int r = 0; r < tile.rows && !direct; ++r) {
          for (int64_t j = 0; j < count; ++j)
            copy_out(g, segments[j], sums + r * g.columns, plane + r * size);
        }
      }
    }
  });
}

void run_depthwise(Team team, const Conv& p, const Layout& l, std::byte* workspace) {
  const ConvGeometry& g = p.plan->geometry();
  const ConvShape& s = p.plan->shape();
  const ConvKernels& k = conv_kernels();
  const float* source = p.plan->pass() == ConvPass::backward_data ? p.dy : p.x;
  const bool direct = volume(g.spread) == 1;
  const int parts = int(std::min<int64_t>(team.threads(), l.planes));
  team.run(parts, [&](int thread) {
    float* frame = reinterpret_cast<float*>(workspace + size_t(thread) * l.thread);
    float* row = frame + floats(g.padded_volume() + kSlack) / sizeof(float);
    std::fill_n(frame, g.padded_volume(), 0.0f);
    const Range r = split_range(l.planes, 1, parts, thread);
    for (int64_t plane = r.begin; plane < r.end; ++plane) {
      copy_inside(g, source + plane * volume(g.source), frame);
      for (int64_t m = 0; m < g.result_channels; ++m) {
        const int64_t channel = plane % s.groups * g.result_channels + m;
        float* out = p.out + (plane * g.result_channels + m) * volume(g.result);
        const float start = p.bias != nullptr ? p.bias[channel] : 0.0f;
        for (const ConvPhase& phase : g.phases) {
          const auto taps = int64_t(phase.taps.size());
          const float* w = p.weights->data() + phase.weights + channel * taps;
          for (int64_t o = 0; o < phase.count[0] * phase.count[1]; ++o) {
            const int64_t o0 = o / phase.count[1], o1 = o % phase.count[1];
            const int64_t target =
                ((phase.first[0] + o0 * g.spread[0]) * g.result[1] + phase.first[1] + o1 * g.spread[1]) *
                    g.result[2] +
                phase.first[2];
            k.weighted_row(frame + g.position({o0, o1, 0}), phase.taps.data(), w, taps, g.step[2], start,
                           direct ? out + target : row, phase.count[2]);
            if (!direct) copy_out(g, {0, 0, phase.count[2], target}, row, out);
          }
        }
      }
    }
  });
}

void run_depthwise_weights(Team team, const Conv& p, const Layout& l, std::byte* workspace) {
  const ConvGeometry& g = p.plan->geometry();
  const ConvShape& s = p.plan->shape();
  const ConvKernels& k = conv_kernels();
  const ConvPhase& phase = g.phases[0];
  auto* runs = reinterpret_cast<int64_t*>(workspace);
  input_runs(g, runs);
  const int64_t taps = volume(s.kernel);
  std::fill_n(p.out, s.out_channels * taps, 0.0f);
  const int parts = int(std::min<int64_t>(team.threads(), s.groups));
  team.run(parts, [&](int thread) {
    float* frame = reinterpret_cast<float*>(workspace + l.runs + size_t(thread) * l.thread);
    std::fill_n(frame, g.padded_volume(), 0.0f);
    const Range r = split_range(s.groups, 1, parts, thread);
    for (int64_t group = r.begin; group < r.end; ++group) {
      for (int64_t n = 0; n < s.batch; ++n) {
        copy_inside(g, p.x + (n * s.groups + group) * volume(g.source), frame);
        for (int64_t c = group * g.result_channels; c < (group + 1) * g.result_channels; ++c) {
          k.row_products(frame, phase.taps.data(), taps, g.step[2], runs, g.result[0] * g.result[1],
                         p.dy + (n * s.out_channels + c) * volume(g.result), g.result[2], p.out + c * taps);
        }
      }
    }
  });
}

void run_weights(Team team, const Conv& p, const Layout& l, const float* source, std::byte* workspace) {
  const ConvGeometry& g = p.plan->geometry();
  const ConvShape& s = p.plan->shape();
  const ConvKernels& k = conv_kernels();
  const ConvPhase& phase = g.phases[0];
  auto* runs = reinterpret_cast<int64_t*>(workspace);
  float* turned = reinterpret_cast<float*>(workspace + l.runs);
  float* result = reinterpret_cast<float*>(workspace + l.runs + l.turned);
  input_runs(g, runs);
  const int64_t positions = volume(g.result), panel_floats = positions * g.columns;
  const int64_t row_tiles = ceil_div(l.columns, g.rows), columns = l.panels * g.columns;
  std::fill_n(result, s.groups * l.columns * columns, 0.0f);
  for (int64_t n = 0; n < s.batch; ++n) {
    // Slices of positions, so that one panel of channels is enough for several threads.
    const int64_t slice = 256, slices = ceil_div(positions, slice);
    team.parallel_for(s.groups * l.panels * slices, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t panel = i / slices, group = panel / l.panels, channel = panel % l.panels * g.columns;
        const int64_t at = i % slices * slice;
        k.pack(p.dy + ((n * s.groups + group) * g.result_channels + channel) * positions + at, positions,
               std::min<int64_t>(g.columns, g.result_channels - channel), std::min(slice, positions - at),
               turned + panel * panel_floats + at * g.columns);
      }
    });
    const int64_t tasks = s.groups * l.panels * row_tiles;
    const int parts = int(std::min<int64_t>(team.threads(), tasks));
    team.run(parts, [&](int thread) {
      const Range r = split_range(tasks, 1, parts, thread);
      for (int64_t task = r.begin; task < r.end; ++task) {
        const int64_t panel = task / row_tiles, row = task % row_tiles * g.rows, group = panel / l.panels;
        const float* planes = source + (n * s.groups + group) * g.source_channels * g.padded_volume();
        ConvWeightTile tile{.rows = int(std::min<int64_t>(g.rows, l.columns - row)),
                            .runs = runs,
                            .run_count = g.result[0] * g.result[1],
                            .length = g.result[2],
                            .step = g.step[2],
                            .dy = turned + panel * panel_floats,
                            .sums = result + (panel * l.columns + row) * g.columns};
        for (int i = 0; i < tile.rows; ++i) {
          const int64_t tap = (row + i) / g.source_channels, channel = (row + i) % g.source_channels;
          tile.source[i] = planes + channel * g.padded_volume() + phase.taps[size_t(tap)];
        }
        k.weight_tile(tile);
      }
    });
  }
  // [panel][tap][channel][column] to [co][channel][tap].
  const int64_t taps = volume(s.kernel);
  team.parallel_for(s.out_channels, std::max<int64_t>(1, 4096 / l.columns), [&](int64_t begin, int64_t end) {
    for (int64_t co = begin; co < end; ++co) {
      const int64_t group = co / g.result_channels, in_group = co % g.result_channels;
      const float* from =
          result + (group * l.panels + in_group / g.columns) * l.columns * g.columns + in_group % g.columns;
      float* to = p.out + co * l.columns;
      for (int64_t c = 0; c < g.source_channels; ++c) {
        for (int64_t t = 0; t < taps; ++t) to[c * taps + t] = from[(t * g.source_channels + c) * g.columns];
      }
    }
  });
}

}  // namespace

bool conv_finishes(const ConvPlan& plan) { return plan.geometry().winograd || plan.geometry().by_rows.used; }

size_t conv_workspace(const Conv& p, int threads) {
  if (p.plan->geometry().winograd) return conv_winograd_workspace(p, threads);
  if (p.plan->geometry().by_rows.used) return conv_rows_workspace(p, threads);
  if (p.plan->geometry().turned.used) return conv_turned_workspace(p, threads);
  if (p.plan->geometry().plane_kernel > 0) return conv_planes_workspace(p, threads);
  const Layout l = layout(p);
  return l.frame + l.runs + l.turned + l.result + size_t(threads) * l.thread;
}

void conv(Team team, const Conv& p, std::byte* workspace) {
  const ConvGeometry& g = p.plan->geometry();
  const ConvShape& s = p.plan->shape();
  RLX_CHECK(g.columns == conv_kernels().columns, "a convolution plan of another level");
  const bool weights = p.plan->pass() == ConvPass::backward_weights;
  if (weights && s.batch * volume(g.result) == 0) {
    std::fill_n(p.out, s.out_channels * g.source_channels * volume(s.kernel), 0.0f);
    return;
  }
  if (s.batch == 0 || volume(g.result) == 0) return;
  if (g.winograd) return conv_winograd(team, p, workspace);
  if (g.by_rows.used) return conv_rows(team, p, workspace);
  RLX_CHECK(p.residual == nullptr && !p.relu, "a convolution whose result is only written");
  if (g.turned.used) return conv_turned(team, p, workspace);
  if (g.plane_kernel > 0) return conv_planes(team, p, workspace);
  const Layout l = layout(p);
  if (g.depthwise) {
    weights ? run_depthwise_weights(team, p, l, workspace) : run_depthwise(team, p, l, workspace);
    return;
  }
  const float* source = framed(team, g, l.planes, p.plan->pass() == ConvPass::backward_data ? p.dy : p.x,
                               reinterpret_cast<float*>(workspace));
  weights ? run_weights(team, p, l, source, workspace + l.frame)
          : run_product(team, p, l, source, workspace + l.frame);
}

}  // namespace rlx::cpu
