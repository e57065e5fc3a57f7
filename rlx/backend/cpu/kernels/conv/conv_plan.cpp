#include <algorithm>
#include <limits>

#include "rlx/backend/cpu/isa_table.h"
#include "rlx/backend/cpu/kernels/conv/conv_geometry.h"
#include "rlx/backend/cpu/kernels/conv/conv_rows.h"
#include "rlx/backend/cpu/kernels/conv/conv_weights.h"
#include "rlx/backend/cpu/kernels/conv/conv_winograd.h"
#include "rlx/backend/cpu/kernels/sizes.h"
#include "rlx/base/error.h"
#include "rlx/base/text.h"

namespace rlx::cpu {

RLX_ISA_TABLE(ConvKernels, conv_kernels)
RLX_ISA_TABLE(ConvRowKernels, conv_row_kernels)
RLX_ISA_TABLE(ConvTurnedKernels, conv_turned_kernels)

namespace {

// Unused places that counting by padded places may cost before gathering is the better way.
constexpr double kFlatWaste = 1.3;

void check(const ConvShape& s) {
  if (s.batch < 0 || s.groups < 1 || s.in_channels < 1 || s.out_channels < 1 ||
      s.in_channels % s.groups != 0 || s.out_channels % s.groups != 0) {
    throw invalid("conv: batch ", s.batch, ", ", s.in_channels, " to ", s.out_channels, " channels in ",
                  s.groups, " groups; groups must divide both");
  }
  for (size_t a = 0; a < 3; ++a) {
    if (s.kernel[a] < 1 || s.stride[a] < 1 || s.dilation[a] < 1 || s.size[a] < 0) {
      throw invalid("conv: axis ", a, " has size ", s.size[a], ", kernel ", s.kernel[a], ", stride ",
                    s.stride[a], ", dilation ", s.dilation[a], "; steps must be 1 or more");
    }
    if (s.size[a] + s.low[a] + s.high[a] < s.dilation[a] * (s.kernel[a] - 1) + 1) {
      throw invalid("conv: axis ", a, " of size ", s.size[a], " padded by ", s.low[a], " and ", s.high[a],
                    " is shorter than the kernel, ", s.kernel[a], " at dilation ", s.dilation[a]);
    }
  }
}

// Taps of a phase: kernel positions that meet it, and where they read.
std::vector<ConvTap> taps_of(const ConvShape& s, ConvPass pass, const Extents& phase) {
  std::vector<ConvTap> out;
  Extents k;
  for (k[0] = 0; k[0] < s.kernel[0]; ++k[0]) {
    for (k[1] = 0; k[1] < s.kernel[1]; ++k[1]) {
      for (k[2] = 0; k[2] < s.kernel[2]; ++k[2]) {
        ConvTap tap{.base = {}, .index = (k[0] * s.kernel[1] + k[1]) * s.kernel[2] + k[2]};
        bool meets = true;
        for (size_t a = 0; a < 3; ++a) {
          if (pass == ConvPass::backward_data) {
            const int64_t t = phase[a] + s.low[a] - k[a] * s.dilation[a];
            meets = meets && t % s.stride[a] == 0;
            tap.base[a] = t / s.stride[a];
          } else {
            tap.base[a] = k[a] * s.dilation[a] - s.low[a];
          }
        }
        if (meets) out.push_back(tap);
      }
    }
  }
  return out;
}

// The taps of each phase, and the places that they read.
struct TapsOfPhases {
  std::vector<std::vector<ConvTap>> taps;
  Extents lowest, highest;
};

// A phase for each remainder of a result's position by the spread.
TapsOfPhases add_phases(ConvGeometry& g, const ConvShape& shape, ConvPass pass) {
  TapsOfPhases out;
  out.lowest.fill(std::numeric_limits<int64_t>::max());
  out.highest.fill(std::numeric_limits<int64_t>::min());
  Extents first;
  for (first[0] = 0; first[0] < std::min(g.spread[0], g.result[0]); ++first[0]) {
    for (first[1] = 0; first[1] < std::min(g.spread[1], g.result[1]); ++first[1]) {
      for (first[2] = 0; first[2] < std::min(g.spread[2], g.result[2]); ++first[2]) {
        ConvPhase phase{.first = first};
        out.taps.push_back(taps_of(shape, pass, first));
        for (size_t a = 0; a < 3; ++a) phase.count[a] = ceil_div(g.result[a] - first[a], g.spread[a]);
        for (const ConvTap& tap : out.taps.back()) {
          for (size_t a = 0; a < 3; ++a) {
            out.lowest[a] = std::min(out.lowest[a], tap.base[a]);
            out.highest[a] = std::max(out.highest[a], tap.base[a] + (phase.count[a] - 1) * g.step[a]);
          }
        }
        g.phases.push_back(phase);
      }
    }
  }
  if (out.lowest[0] > out.highest[0]) out.lowest = out.highest = {0, 0, 0};  // no tap meets any position
  // Positions that no tap meets have their places in the plane too.
  for (size_t i = 0; i < g.phases.size(); ++i) {
    for (size_t a = 0; a < 3 && out.taps[i].empty(); ++a)
      out.highest[a] = std::max(out.highest[a], out.lowest[a] + (g.phases[i].count[a] - 1) * g.step[a]);
  }
  return out;
}

// Whether the source is copied into a plane with a frame of padding, and that plane's size.
void frame(ConvGeometry& g, const TapsOfPhases& taps, ConvPass pass) {
  g.framed = g.depthwise || pass == ConvPass::backward_weights;
  for (size_t a = 0; a < 3; ++a) g.framed = g.framed || taps.lowest[a] < 0 || taps.highest[a] >= g.source[a];
  for (size_t a = 0; a < 3; ++a) {
    g.lowest[a] = g.framed ? taps.lowest[a] : 0;
    g.padded[a] = g.framed ? std::max<int64_t>(0, taps.highest[a] - taps.lowest[a] + 1) : g.source[a];
  }
}

// Positions of each phase as panels of columns, its taps as offsets in the plane, its part of the packed weights.
void lay_out_phases(ConvGeometry& g, const std::vector<std::vector<ConvTap>>& taps, int64_t groups) {
  int64_t spans = 0, positions = 0;
  for (ConvPhase& phase : g.phases) {
    phase.span = g.position({phase.count[0] - 1, phase.count[1] - 1, phase.count[2]});
    spans += phase.span, positions += volume(phase.count);
  }
  g.flat = volume(g.step) == 1 && double(spans) <= kFlatWaste * double(positions);
  for (size_t i = 0; i < g.phases.size(); ++i) {
    ConvPhase& phase = g.phases[i];
    for (const ConvTap& tap : taps[i]) {
      phase.taps.push_back(((tap.base[0] - g.lowest[0]) * g.padded[1] + tap.base[1] - g.lowest[1]) *
                               g.padded[2] +
                           tap.base[2] - g.lowest[2]);
      phase.kernel_index.push_back(tap.index);
      phase.gathered.push_back(int64_t(phase.gathered.size()) * g.source_channels * g.columns);
    }
    if (!g.flat) phase.span = volume(phase.count);
    g.panels += ceil_div(phase.span, g.columns);
    phase.last_panel = g.panels;
    phase.weights = g.weight_elements;
    g.weight_elements += groups * g.result_channels * g.source_channels * int64_t(phase.taps.size());
  }
}

// The same convolution with fewer axes where no tap leaves its place: all positions are one row.
ConvShape merged(ConvShape s) {
  const Extents zeros{0, 0, 0}, ones{1, 1, 1};
  if (s.kernel == ones && s.stride == ones && s.low == zeros && s.high == zeros)
    s.size = {1, 1, volume(s.size)};
  return s;
}

// Share of the time that goes into products: lanes filled, sums enough to hide the latency of an addition,
// and the end of a tile, which costs as much as nine channels.
double efficiency_of_rows(const ConvGeometry& g) {
  const ConvRowPlan& rows = g.by_rows;
  const auto depth = double(int64_t(rows.taps.size()) * g.source_channels);
  const double filled = double(g.result_channels) / double(rows.padded_channels);
  const double sums = double(rows.width * rows.panels[0].vectors);
  return filled * std::min(1.0, sums / 8) * depth / (depth + 9);
}
// The same for panels of positions: measured beside the other way, and what gathering adds.
double efficiency_of_panels(const ConvGeometry& g) {
  double positions = 0;
  for (const ConvPhase& phase : g.phases) positions += double(volume(phase.count));
  const double gathering = g.flat ? 1 : double(g.result_channels) / double(g.result_channels + 8);
  return 0.87 * gathering * positions / double(g.panels * g.columns);
}

constexpr int64_t kBlockBytes = 160 << 10;  // of weights: beside the strip of inputs in L2

void take_taps(const std::vector<ConvTap>& taps, ConvTaps& out) {
  out.low = out.high = taps[0].base;
  for (ConvTap tap : taps) {
    for (size_t a = 0; a < 3; ++a) {
      out.low[a] = std::min(out.low[a], tap.base[a]);
      out.high[a] = std::max(out.high[a], tap.base[a]);
    }
    const auto at = std::find(out.depths.begin(), out.depths.end(), tap.base[0]);
    tap.depth = at - out.depths.begin();
    if (at == out.depths.end()) out.depths.push_back(tap.base[0]);
    out.taps.push_back(tap);
  }
}

void plan_rows(ConvGeometry& g, const std::vector<ConvTap>& taps) {
  ConvRowPlan& rows = g.by_rows;
  const ConvRowKernels& kernels = conv_row_kernels();
  if (g.depthwise || volume(g.spread) != 1 || g.step[2] > 2 || taps.empty()) return;
  rows.lanes = kernels.lanes;
  take_taps(taps, rows);
  // Short rows: four vectors of channels make up for the missing positions.
  const int64_t vectors = ceil_div(g.result_channels, rows.lanes);
  const bool narrow = g.result[2] <= kernels.positions / 2 && vectors >= 4;
  for (int64_t v = 0; v < vectors;) {
    const int count = narrow && vectors - v >= 4 ? 4 : (vectors - v >= 2 ? 2 : 1);
    rows.panels.push_back({v * rows.lanes, count});
    v += count;
  }
  rows.padded_channels = vectors * rows.lanes;
  const int64_t tiles = ceil_div(g.result[2], narrow ? kernels.positions / 2 : kernels.positions);
  rows.width = ceil_div(g.result[2], tiles);
  const int64_t channel_bytes =
      int64_t(rows.taps.size()) * rows.panels[0].vectors * rows.lanes * int64_t(sizeof(float));
  const int64_t blocks = ceil_div(g.source_channels * channel_bytes, kBlockBytes);
  rows.block = ceil_div(g.source_channels, std::min(blocks, g.source_channels));
  rows.used = efficiency_of_rows(g) > efficiency_of_panels(g);
}

void plan_planes(ConvGeometry& g, const ConvShape& s, ConvPass pass, const std::vector<ConvTap>& taps) {
  const int64_t k = s.kernel[2], largest = pass == ConvPass::backward_weights ? 5 : 7;
  const Extents ones{1, 1, 1};
  if (!g.depthwise || s.kernel != Extents{1, k, k} || k % 2 == 0 || k < 3 || k > largest) return;
  if (s.stride != ones || s.dilation != ones || s.size[0] != 1 || g.result[0] != 1 || taps[0].base[0] != 0)
    return;
  take_taps(taps, g.planes);
  g.plane_kernel = int(k);
}

constexpr int64_t kTurnedBytes = 224 << 10;  // of turned inputs: beside the rows of dy and the sums in L2
constexpr int64_t kSharedSets =
    2048;  // rows of a tile that lie a multiple of this apart crowd few sets of L1

void plan_turned(ConvGeometry& g, const std::vector<ConvTap>& taps) {
  ConvTurnedPlan& turned = g.turned;
  const ConvTurnedKernels& kernels = conv_turned_kernels();
  const int64_t vectors = ceil_div(g.source_channels, kernels.lanes);
  // The other way has output channels in the lanes.
  const double filled = double(g.source_channels) / double(vectors * kernels.lanes);
  const double other = double(g.result_channels) / double(ceil_div(g.result_channels, g.columns) * g.columns);
  if (g.depthwise || filled < 0.8 * other) return;
  turned.used = true;
  turned.lanes = kernels.lanes;
  take_taps(taps, turned);
  turned.panels = ceil_div(vectors, 2);
  turned.rows = ceil_div(g.result_channels, ceil_div(g.result_channels, kernels.rows));
  const auto inputs = [&](size_t axis, int64_t count) {
    return std::min(g.source[axis], (count - 1) * g.step[axis] + turned.high[axis] - turned.low[axis] + 1);
  };
  const auto bytes = [&](int64_t rows, int64_t columns) {
    return int64_t(turned.depths.size()) * inputs(1, rows) * inputs(2, columns) * 2 * turned.lanes *
           int64_t(sizeof(float));
  };
  int64_t row_parts = 1, column_parts = 1;
  const auto part = [&](size_t axis, int64_t parts) { return ceil_div(g.result[axis], parts); };
  while (row_parts < g.result[1] && bytes(part(1, row_parts), g.result[2]) > kTurnedBytes) ++row_parts;
  while (column_parts < g.result[2] && bytes(part(1, row_parts), part(2, column_parts)) > kTurnedBytes)
    ++column_parts;
  turned.chunk_rows = part(1, row_parts), turned.chunk_columns = part(2, column_parts);
  turned.input_rows = inputs(1, turned.chunk_rows), turned.input_columns = inputs(2, turned.chunk_columns);
  if (volume(g.result) * int64_t(sizeof(float)) % kSharedSets == 0) {
    turned.copied_plane = ceil_div(turned.chunk_rows * turned.chunk_columns, 16) * 16;
    if (turned.copied_plane * int64_t(sizeof(float)) % kSharedSets == 0) turned.copied_plane += 16;
  }
}

}  // namespace

Extents ConvShape::out() const {
  Extents o{};
  for (size_t a = 0; a < 3; ++a)
    o[a] = (size[a] + low[a] + high[a] - dilation[a] * (kernel[a] - 1) - 1) / stride[a] + 1;
  return o;
}

ConvPlan::ConvPlan(const ConvShape& given, ConvPass pass)
    : shape_(given), pass_(pass), geometry_(std::make_unique<ConvGeometry>()) {
  check(given);
  const ConvShape shape = pass == ConvPass::backward_weights ? given : merged(given);
  ConvGeometry& g = *geometry_;
  const ConvKernels& kernels = conv_kernels();
  g.columns = kernels.columns;
  const bool back = pass == ConvPass::backward_data;
  const int64_t in = shape.in_channels / shape.groups, out = shape.out_channels / shape.groups;
  g.source_channels = back ? out : in;
  g.result_channels = back ? in : out;
  g.depthwise = g.source_channels == 1 && (!back || in == 1);
  g.source = back ? shape.out() : shape.size;
  g.result = back ? shape.size : shape.out();
  if (back) {
    g.spread = shape.stride;
  } else {
    g.step = shape.stride;
  }
  const TapsOfPhases taps = add_phases(g, shape, pass);
  frame(g, taps, pass);
  g.rows = int(ceil_div(g.result_channels, ceil_div(g.result_channels, kernels.rows)));
  lay_out_phases(g, taps.taps, shape.groups);
  if (volume(g.result) == 0) return;
  plan_planes(g, shape, pass, taps.taps[0]);
  if (pass == ConvPass::backward_weights) {
    plan_turned(g, taps.taps[0]);
    return;
  }
  g.winograd = pass == ConvPass::forward && winograd_is_better(shape, g);
  if (g.winograd) {
    g.weight_elements = winograd_weight_elements(shape, g);
    return;
  }
  plan_rows(g, taps.taps[0]);
  if (g.by_rows.used)
    g.weight_elements =
        shape.groups * g.by_rows.padded_channels * g.source_channels * int64_t(taps.taps[0].size());
}
ConvPlan::~ConvPlan() = default;
ConvPlan::ConvPlan(ConvPlan&&) noexcept = default;
ConvPlan& ConvPlan::operator=(ConvPlan&&) noexcept = default;

size_t PackedConvWeights::bytes(const ConvPlan& plan) {
  return size_t(plan.geometry().weight_elements) * sizeof(float);
}

PackedConvWeights::PackedConvWeights(const ConvPlan& plan)
    : plan_(&plan), bytes_(allocate_aligned(bytes(plan))), data_(reinterpret_cast<float*>(bytes_.get())) {
  RLX_CHECK(plan.pass() != ConvPass::backward_weights, "the gradient of the weights reads no weights");
}

PackedConvWeights::PackedConvWeights(const ConvPlan& plan, std::byte* memory)
    : plan_(&plan), data_(reinterpret_cast<float*>(memory)) {
  RLX_CHECK(plan.pass() != ConvPass::backward_weights, "the gradient of the weights reads no weights");
}

std::string PackedConvWeights::form(const ConvPlan& plan) {
  const ConvGeometry& g = plan.geometry();
  const ConvShape& s = plan.shape();
  std::string out = cat(plan.pass() == ConvPass::forward ? "forward " : "backward ", s.groups, " groups of ",
                        s.in_channels / s.groups, "x", s.out_channels / s.groups);
  if (g.winograd) return cat(out, ", squares, tiles of ", g.rows);
  if (g.by_rows.used) {
    out += cat(", rows of ", g.by_rows.lanes, " in blocks of ", g.by_rows.block, ", panels");
    for (const ConvRowPlan::Panel& panel : g.by_rows.panels) out += cat(" ", panel.vectors);
    out += ", taps";
    for (const ConvTap& tap : g.by_rows.taps) out += cat(" ", tap.index);
    return out;
  }
  out += g.depthwise ? std::string(", depthwise") : cat(", tiles of ", g.rows);
  for (const ConvPhase& phase : g.phases) {
    out += ", taps";
    for (const int64_t index : phase.kernel_index) out += cat(" ", index);
  }
  return out;
}

namespace {

// For each group and panel blocks of source channels, each [tap][source channel][lane].
void pack_by_rows(Team team, const ConvGeometry& g, int64_t groups, const float* w, int64_t group_stride,
                  int64_t row_stride, int64_t channel_stride, float* out) {
  const ConvRowPlan& rows = g.by_rows;
  const auto taps = int64_t(rows.taps.size()), panels = int64_t(rows.panels.size());
  team.parallel_for(groups * panels, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const ConvRowPlan::Panel& panel = rows.panels[size_t(i % panels)];
      const int64_t group = i / panels, lanes = panel.vectors * rows.lanes;
      const int64_t filled = std::min(lanes, g.result_channels - panel.first);
      const float* from = w + group * group_stride + panel.first * row_stride;
      float* to = out + (group * rows.padded_channels + panel.first) * taps * g.source_channels;
      for (int64_t block = 0; block < g.source_channels; block += rows.block) {
        const int64_t last = std::min(block + rows.block, g.source_channels);
        for (int64_t t = 0; t < taps; ++t) {
          const float* tap = from + rows.taps[size_t(t)].index;
          for (int64_t c = block; c < last; ++c, to += lanes) {
            for (int64_t r = 0; r < filled; ++r) to[r] = tap[r * row_stride + c * channel_stride];
            for (int64_t r = filled; r < lanes; ++r) to[r] = 0;
          }
        }
      }
    }
  });
}

}  // namespace

// A phase's weights: for each group tiles of rows (result channels), each [tap][source channel][row]. Without
// a matrix product: [channel][tap].
void PackedConvWeights::pack(Team team, const float* w, bool swapped) {
  const ConvGeometry& g = plan_->geometry();
  const ConvShape& s = plan_->shape();
  float* out = data_;
  const int64_t taps = volume(s.kernel), in = s.in_channels / s.groups, per = s.out_channels / s.groups;
  const int64_t of_out = swapped ? taps : in * taps, of_in = swapped ? per * taps : taps;
  const bool back = plan_->pass() == ConvPass::backward_data;
  const int64_t row_stride = back ? of_in : of_out, channel_stride = back ? of_out : of_in;
  if (g.winograd) return pack_winograd(team, s, g, w, row_stride, channel_stride, out);
  if (g.by_rows.used)
    return pack_by_rows(team, g, s.groups, w, per * in * taps, row_stride, channel_stride, out);
  for (const ConvPhase& phase : g.phases) {
    const auto count = int64_t(phase.taps.size());
    const int64_t depth = count * g.source_channels;
    team.parallel_for(s.groups * g.tiles(), std::max<int64_t>(1, 1024 / std::max<int64_t>(1, depth)),
                      [&](int64_t begin, int64_t end) {
                        for (int64_t i = begin; i < end; ++i) {
                          const int64_t group = i / g.tiles(), row = i % g.tiles() * g.rows;
                          const int64_t rows = std::min<int64_t>(g.rows, g.result_channels - row);
                          const float* from = w + group * per * in * taps + row * row_stride;
                          float* to = out + phase.weights + (group * g.result_channels + row) * depth;
                          for (int64_t t = 0; t < count; ++t) {
                            const float* tap = from + phase.kernel_index[size_t(t)];
                            for (int64_t r = 0; r < rows; ++r) {
                              if (g.depthwise) {
                                to[r * count + t] = tap[r * row_stride];
                                continue;
                              }
                              for (int64_t c = 0; c < g.source_channels; ++c)
                                to[(t * g.source_channels + c) * rows + r] =
                                    tap[r * row_stride + c * channel_stride];
                            }
                          }
                        }
                      });
  }
}

}  // namespace rlx::cpu
