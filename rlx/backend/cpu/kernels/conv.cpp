// Plan: the source is copied into a frame of zeros (unless nothing reaches outside it), then
//   product    tasks are (image, group, phase, a few panels of output positions): a thread gathers the panels
//              [taps x channels][panel] into its own memory, which stays in L2, and multiplies them by all
//              packed weights with gemm's block kernel. The whole matrix of gathered columns never exists.
//   depthwise  tasks are planes; each output row is a weighted sum of shifted input rows.
//   weights    tasks are panels of (tap, channel) columns of dw; for each image and slice of positions the
//              gathered rows are turned into a panel and multiplied by dy, which adds to dw in a fixed order.
// Bound: the multiply-adds; a gathered vector costs a load and a store for result_channels of them.
#include "rlx/backend/cpu/kernels/conv.h"

#include <cstring>

#include "rlx/backend/cpu/isa_table.h"
#include "rlx/backend/cpu/kernels/conv_geometry.h"
#include "rlx/backend/cpu/kernels/sizes.h"
#include "rlx/base/error.h"

namespace rlx::cpu {

RLX_ISA_TABLE(ConvKernels, conv_kernels)
RLX_ISA_TABLE(GemmKernels, gemm_kernels)

namespace {

// Output positions of one slice of the weight gradient: 64 KiB for a panel of 32.
constexpr int64_t kSlice = 512;
// Vectors a loose read or write may reach beyond its end.
constexpr int64_t kSlack = 64;

size_t floats(int64_t n) { return round_up(size_t(n) * sizeof(float)); }

/// Runs of neighbouring positions [begin, end) of a phase: at most one for each row they touch.
int64_t segments_of(const ConvGeometry& g, const Extents& count, int64_t begin, int64_t end,
                    ConvSegment* out) {
  int64_t n = 0;
  for (int64_t p = begin; p < end;) {
    const Extents o{p / (count[1] * count[2]), p / count[2] % count[1], p % count[2]};
    const int64_t length = std::min(count[2] - o[2], end - p);
    out[n++] = {g.position(o), p - begin, length};
    p += length;
  }
  return n;
}
int64_t most_segments(const ConvGeometry& g, int64_t positions) {
  int64_t most = 1;
  for (const ConvPhase& phase : g.phases)
    most = std::max(most, positions / std::max<int64_t>(1, phase.count[2]) + 2);
  return most;
}

struct Layout {
  int64_t planes = 0;   // of the framed source
  int64_t columns = 0;  // weight gradient: of dw
  size_t frame = 0, result = 0, gathered = 0, rows = 0, packed = 0, sums = 0, segments = 0, thread = 0;
};

Layout layout(const Conv& p) {
  const ConvGeometry& g = p.plan->geometry();
  const ConvShape& s = p.plan->shape();
  const GemmKernels& k = gemm_kernels();
  Layout l;
  l.planes = s.batch * s.groups * g.source_channels;
  if (g.framed) l.frame = floats(l.planes * g.padded_volume() + kSlack);
  if (g.depthwise && p.plan->pass() != ConvPass::backward_weights) {
    if (volume(g.spread) > 1) l.thread = floats(g.phases.empty() ? 0 : g.phases[0].count[2]);
    return l;
  }
  if (p.plan->pass() == ConvPass::backward_weights) {
    l.columns = volume(s.kernel) * g.source_channels;
    if (g.depthwise) {
      l.thread = round_up(size_t(g.result[0] * g.result[1]) * sizeof(int64_t)) + floats(volume(s.kernel));
      return l;
    }
    l.result = floats(s.out_channels * l.columns);
    l.gathered = floats(kSlice * g.panel);
    l.rows = floats(kSlice * g.panel + kSlack);
    l.packed = floats(g.result_channels * kSlice);
    l.segments = round_up(size_t(most_segments(g, kSlice)) * sizeof(ConvSegment));
  } else {
    int64_t depth = 0;
    for (const ConvPhase& phase : g.phases)
      depth = std::max(depth, int64_t(phase.taps.size()) * g.source_channels);
    l.gathered = floats(depth * g.chunk + kSlack);
    if (volume(g.spread) > 1) l.rows = floats(g.result_channels * g.chunk);
    l.segments = round_up(size_t(most_segments(g, g.panel)) * sizeof(ConvSegment));
  }
  l.sums = round_up(k.scratch_bytes);
  l.thread = l.gathered + l.rows + l.packed + l.sums + l.segments;
  return l;
}

/// Copies every plane into its frame of zeros; a plane that needs none is used where it is.
const float* framed(Team team, const ConvGeometry& g, int64_t planes, const float* source, float* frame) {
  if (!g.framed) return source;
  const int64_t rows = g.padded[0] * g.padded[1], width = g.padded[2];
  const int64_t from = std::max<int64_t>(0, g.lowest[2]);
  const int64_t to = std::min(g.source[2], g.lowest[2] + width);
  const int64_t before = std::clamp<int64_t>(-g.lowest[2], 0, width);
  const int64_t copied = std::max<int64_t>(0, to - from);
  team.parallel_for(
      planes * rows, std::max<int64_t>(1, 8192 / std::max<int64_t>(1, width)),
      [&](int64_t begin, int64_t end) {
        for (int64_t r = begin; r < end; ++r) {
          float* out = frame + r * width;
          const int64_t i0 = r % rows / g.padded[1] + g.lowest[0], i1 = r % g.padded[1] + g.lowest[1];
          if (i0 < 0 || i0 >= g.source[0] || i1 < 0 || i1 >= g.source[1] || copied == 0) {
            std::fill_n(out, width, 0.0f);
            continue;
          }
          const float* in = source + ((r / rows * g.source[0] + i0) * g.source[1] + i1) * g.source[2] + from;
          std::fill_n(out, before, 0.0f);
          std::memcpy(out + before, in, size_t(copied) * sizeof(float));
          std::fill(out + before + copied, out + width, 0.0f);
        }
      });
  return frame;
}

/// Rows of values of a phase to their places in the result.
void scatter(const ConvGeometry& g, const ConvPhase& phase, int64_t begin, int64_t end, const float* from,
             int64_t from_stride, int64_t rows, float* plane) {
  for (int64_t r = 0; r < rows; ++r) {
    float* to = plane + r * volume(g.result);
    for (int64_t p = begin; p < end; ++p) {
      const Extents o{p / (phase.count[1] * phase.count[2]), p / phase.count[2] % phase.count[1],
                      p % phase.count[2]};
      const int64_t i0 = phase.first[0] + o[0] * g.spread[0], i1 = phase.first[1] + o[1] * g.spread[1],
                    i2 = phase.first[2] + o[2] * g.spread[2];
      to[(i0 * g.result[1] + i1) * g.result[2] + i2] = from[r * from_stride + p - begin];
    }
  }
}

void run_product(Team team, const Conv& p, const Layout& l, const float* source, std::byte* workspace) {
  const ConvGeometry& g = p.plan->geometry();
  const ConvShape& s = p.plan->shape();
  const GemmKernels& gemm = gemm_kernels();
  const ConvKernels& k = conv_kernels();
  const bool direct = volume(g.spread) == 1;
  const int64_t width = g.chunk, per_group = g.chunks, items = s.batch * s.groups;
  // Few positions and many channels: the rows of the product are shared out as well.
  const int64_t tiles = ceil_div(g.result_channels, g.tile_rows);
  const int64_t wanted = ceil_div(2 * team.threads(), std::max<int64_t>(1, items * per_group));
  const int64_t row_parts = team.threads() == 1 ? 1 : std::clamp<int64_t>(wanted, 1, tiles);
  const int64_t tasks = items * per_group * row_parts;
  std::atomic<int64_t> next{0};
  team.run(int(std::min<int64_t>(team.threads(), tasks)), [&](int thread) {
    std::byte* mine = workspace + size_t(thread) * l.thread;
    float* gathered = reinterpret_cast<float*>(mine);
    float* rows = reinterpret_cast<float*>(mine + l.gathered);
    std::byte* sums = mine + l.gathered + l.rows;
    auto* segments = reinterpret_cast<ConvSegment*>(sums + l.sums);
    for (int64_t task; (task = next.fetch_add(1, std::memory_order_relaxed)) < tasks;) {
      const int64_t part = task % row_parts, item = task / row_parts / per_group,
                    chunk = task / row_parts % per_group;
      size_t at = 0;
      while (g.phases[at].last_chunk <= chunk) ++at;
      const ConvPhase& phase = g.phases[at];
      const int64_t first = (chunk - (at == 0 ? 0 : g.phases[at - 1].last_chunk)) * width;
      const int64_t count = std::min(width, volume(phase.count) - first), group = item % s.groups;
      const int64_t depth = int64_t(phase.taps.size()) * g.source_channels;
      const float* planes = source + item * g.source_channels * g.padded_volume();
      for (int64_t done = 0; done < count; done += g.panel) {
        const int64_t n = segments_of(g, phase.count, first + done,
                                      first + std::min<int64_t>(count, done + g.panel), segments);
        k.gather(planes, g.padded_volume(), g.source_channels, phase.taps.data(), int64_t(phase.taps.size()),
                 segments, n, g.step[2], g.panel, g.framed && g.step[2] <= 2, gathered + done * depth);
      }
      Epilogue epilogue;
      if (p.bias != nullptr) {
        epilogue.then(
            {.kind = EpilogueKind::row_bias, .data = const_cast<float*>(p.bias + group * g.result_channels)});
      }
      float* plane = p.out + item * g.result_channels * volume(g.result);
      const Range tile = split_range(tiles, 1, int(row_parts), int(part));
      const int64_t end = std::min(g.result_channels, tile.end * g.tile_rows);
      const int64_t block = std::max<int64_t>(1, gemm.max_block_rows / g.tile_rows) * g.tile_rows;
      for (int64_t row = tile.begin * g.tile_rows; row < end; row += block) {
        gemm.block_f32({.k = depth,
                        .a = p.weights->data() + phase.weights + (group * g.result_channels + row) * depth,
                        .tile_rows = g.tile_rows,
                        .rows = std::min(block, end - row),
                        .b = gathered,
                        .panels = ceil_div(count, g.panel),
                        .row0 = row,
                        .columns = count,
                        .c = direct ? plane + first : rows,
                        .c_row_stride = direct ? volume(g.result) : width,
                        .epilogue = &epilogue,
                        .scratch = sums});
      }
      if (!direct) {
        const int64_t row = tile.begin * g.tile_rows;
        scatter(g, phase, first, first + count, rows + row * width, width, end - row,
                plane + row * volume(g.result));
      }
    }
  });
}

void run_depthwise(Team team, const Conv& p, const Layout& l, const float* source, std::byte* workspace) {
  const ConvGeometry& g = p.plan->geometry();
  const ConvShape& s = p.plan->shape();
  const ConvKernels& k = conv_kernels();
  const bool direct = volume(g.spread) == 1;
  const int64_t planes = s.batch * s.groups * g.result_channels;
  const int parts = int(std::min<int64_t>(team.threads(), planes));
  team.run(parts, [&](int thread) {
    float* row = reinterpret_cast<float*>(workspace + size_t(thread) * l.thread);
    const Range r = split_range(planes, 1, parts, thread);
    for (int64_t plane = r.begin; plane < r.end; ++plane) {
      const int64_t channel = plane % (s.groups * g.result_channels);
      const float* from = source + plane / g.result_channels * g.padded_volume();
      float* out = p.out + plane * volume(g.result);
      const float start = p.bias != nullptr ? p.bias[channel] : 0.0f;
      for (const ConvPhase& phase : g.phases) {
        const auto taps = int64_t(phase.taps.size());
        const float* w = p.weights->data() + phase.weights + channel * taps;
        for (int64_t o = 0; o < phase.count[0] * phase.count[1]; ++o) {
          const int64_t o0 = o / phase.count[1], o1 = o % phase.count[1];
          float* to = direct ? out + o * g.result[2] : row;
          k.weighted_row(from + g.position({o0, o1, 0}), phase.taps.data(), w, taps, g.step[2], start, to,
                         phase.count[2]);
          if (direct) continue;
          const int64_t at = o * phase.count[2];
          scatter(g, phase, at, at + phase.count[2], row, 0, 1, out);
        }
      }
    }
  });
}

void run_depthwise_weights(Team team, const Conv& p, const Layout& l, const float* source,
                           std::byte* workspace) {
  const ConvGeometry& g = p.plan->geometry();
  const ConvShape& s = p.plan->shape();
  const ConvKernels& k = conv_kernels();
  const ConvPhase& phase = g.phases[0];
  const int64_t taps = volume(s.kernel), rows = g.result[0] * g.result[1];
  const int parts = int(std::min<int64_t>(team.threads(), s.out_channels));
  team.run(parts, [&](int thread) {
    auto* at = reinterpret_cast<int64_t*>(workspace + size_t(thread) * l.thread);
    for (int64_t r = 0; r < rows; ++r) at[r] = g.position({r / g.result[1], r % g.result[1], 0});
    const Range r = split_range(s.out_channels, 1, parts, thread);
    for (int64_t c = r.begin; c < r.end; ++c) {
      float* dw = p.out + c * taps;
      std::fill_n(dw, taps, 0.0f);
      for (int64_t n = 0; n < s.batch; ++n) {
        k.row_products(source + (n * s.groups + c / g.result_channels) * g.padded_volume(), phase.taps.data(),
                       taps, g.step[2], at, rows, p.dy + (n * s.out_channels + c) * volume(g.result),
                       g.result[2], dw);
      }
    }
  });
}

void run_weights(Team team, const Conv& p, const Layout& l, const float* source, float* result,
                 std::byte* workspace) {
  const ConvGeometry& g = p.plan->geometry();
  const ConvShape& s = p.plan->shape();
  const GemmKernels& gemm = gemm_kernels();
  const ConvKernels& k = conv_kernels();
  const ConvPhase& phase = g.phases[0];
  const int64_t positions = volume(g.result), panels = ceil_div(l.columns, g.panel);
  const int64_t tasks = s.groups * panels;
  const int parts = int(std::min<int64_t>(team.threads(), tasks));
  team.run(parts, [&](int thread) {
    std::byte* mine = workspace + size_t(thread) * l.thread;
    float* gathered = reinterpret_cast<float*>(mine);
    float* rows = reinterpret_cast<float*>(mine + l.gathered);
    float* packed = reinterpret_cast<float*>(mine + l.gathered + l.rows);
    std::byte* sums = mine + l.gathered + l.rows + l.packed;
    auto* segments = reinterpret_cast<ConvSegment*>(sums + l.sums);
    const Range range = split_range(tasks, 1, parts, thread);
    // A slice of dy is packed once for all panels of its group that this thread has.
    for (int64_t task = range.begin; task < range.end;) {
      const int64_t group = task / panels, last = std::min(range.end, (group + 1) * panels);
      float* dw = result + group * g.result_channels * l.columns;
      bool add = false;
      for (int64_t n = 0; n < s.batch; ++n) {
        const float* planes = source + (n * s.groups + group) * g.source_channels * g.padded_volume();
        const float* dy = p.dy + (n * s.groups + group) * g.result_channels * positions;
        for (int64_t first = 0; first < positions; first += kSlice, add = true) {
          const int64_t depth = std::min(kSlice, positions - first);
          gemm.pack_a({dy + first, DType::f32, positions, 1}, 0, g.result_channels, depth, g.tile_rows,
                      packed);
          const int64_t count = segments_of(g, phase.count, first, first + depth, segments);
          for (int64_t panel = task; panel < last; ++panel) {
            const int64_t begin = panel % panels * g.panel,
                          end = std::min<int64_t>(begin + g.panel, l.columns);
            for (int64_t column = begin; column < end;) {  // (tap, channel)
              const int64_t tap = column / g.source_channels, channel = column % g.source_channels;
              const int64_t channels = std::min(g.source_channels - channel, end - column);
              k.gather(planes + channel * g.padded_volume(), g.padded_volume(), channels,
                       phase.taps.data() + tap, 1, segments, count, g.step[2], depth, g.step[2] <= 2,
                       rows + (column - begin) * depth);
              column += channels;
            }
            gemm.pack_b({rows, DType::f32, 1, depth}, 0, end - begin, depth, DType::f32, gathered);
            Epilogue epilogue;
            if (add) epilogue.then({.kind = EpilogueKind::add, .data = dw, .row_stride = l.columns});
            const int64_t block = std::max<int64_t>(1, gemm.max_block_rows / g.tile_rows) * g.tile_rows;
            for (int64_t row = 0; row < g.result_channels; row += block) {
              gemm.block_f32({.k = depth,
                              .a = packed + row * depth,
                              .tile_rows = g.tile_rows,
                              .rows = std::min(block, g.result_channels - row),
                              .b = gathered,
                              .panels = 1,
                              .row0 = row,
                              .column0 = begin,
                              .columns = end - begin,
                              .c = dw,
                              .c_row_stride = l.columns,
                              .epilogue = &epilogue,
                              .scratch = sums});
            }
          }
        }
      }
      task = last;
    }
  });
  // [co][tap][channel] to [co][channel][tap].
  const int64_t taps = volume(s.kernel);
  team.parallel_for(s.out_channels, std::max<int64_t>(1, 8192 / l.columns), [&](int64_t begin, int64_t end) {
    for (int64_t co = begin; co < end; ++co) {
      const float* from = result + co * l.columns;
      float* to = p.out + co * l.columns;
      for (int64_t c = 0; c < g.source_channels; ++c) {
        for (int64_t t = 0; t < taps; ++t) to[c * taps + t] = from[t * g.source_channels + c];
      }
    }
  });
}

}  // namespace

size_t conv_workspace(const Conv& p, int threads) {
  const Layout l = layout(p);
  return l.frame + l.result + size_t(threads) * l.thread;
}

void conv(Team team, const Conv& p, std::byte* workspace) {
  const ConvGeometry& g = p.plan->geometry();
  const ConvShape& s = p.plan->shape();
  RLX_CHECK(g.panel == gemm_kernels().panel, "a convolution plan of another level");
  const bool weights = p.plan->pass() == ConvPass::backward_weights;
  if (weights && s.batch * volume(g.result) == 0) {
    std::fill_n(p.out, s.out_channels * g.source_channels * volume(s.kernel), 0.0f);
    return;
  }
  if (s.batch == 0 || volume(g.result) == 0) return;
  const Layout l = layout(p);
  const float* source = framed(team, g, l.planes, p.plan->pass() == ConvPass::backward_data ? p.dy : p.x,
                               reinterpret_cast<float*>(workspace));
  float* result = reinterpret_cast<float*>(workspace + l.frame);
  std::byte* threads = workspace + l.frame + l.result;
  if (weights) {
    g.depthwise ? run_depthwise_weights(team, p, l, source, threads)
                : run_weights(team, p, l, source, result, threads);
  } else if (g.depthwise) {
    run_depthwise(team, p, l, source, threads);
  } else {
    run_product(team, p, l, source, threads);
  }
}

}  // namespace rlx::cpu
