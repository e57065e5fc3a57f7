// Plan: a task is a block of output rows (and columns, where rows are long) of an image and group, and a
// share of the panels of output channels. The input rows it needs are copied side by side into a strip of the
// thread's own memory, [kernel depth][row][channel][column], with zeros at the ends of a row; rows outside
// the source are left out together with their taps. The strip stays in L2 while all panels pass over it, and
// so do the weights of a panel, cut into blocks of channels where they are too many; sums wait between the
// cuts. Small weights: tasks are many blocks of rows. Large ones: they are shared out instead and rows kept
// together, so that a weight is read from memory once. Every sum is one chain in an order that the plan
// fixes.
#include "rlx/backend/cpu/kernels/conv/conv_rows.h"

#include <cstring>
#include <limits>

#include "rlx/backend/cpu/isa_table.h"
#include "rlx/backend/cpu/kernels/conv/conv_geometry.h"
#include "rlx/backend/cpu/kernels/conv/conv_tasks.h"
#include "rlx/backend/cpu/kernels/sizes.h"

namespace rlx::cpu {

RLX_ISA_TABLE(ConvRowKernels, conv_row_kernels)

namespace {

constexpr int64_t kStripBytes = 480 << 10;        // half of L2
constexpr int64_t kLargeWeightBytes = 384 << 10;  // of a group: beyond this they come from L3 for every task

constexpr int kTasksOfThread = 4;  // at most, to even out the last ones

/// How the work is cut, and the bytes of a thread's memory.
struct Cut {
  int64_t tiles = 0;                          // of a row
  int64_t columns = 0, rows = 0;              // outputs of a task
  int64_t column_blocks = 0, row_blocks = 0;  // of an image
  int64_t shares = 0, tasks = 0;
  int64_t strip_rows = 0, strip_width = 0;  // input rows and columns of a task
  size_t strip = 0, sums = 0, start = 0, taps = 0, thread = 0;
};

Cut cut(const Conv& p, int threads) {
  const ConvGeometry& g = p.plan->geometry();
  const ConvRowPlan& rows = g.by_rows;
  const ConvShape& s = p.plan->shape();
  Cut c;
  const Extents &low = rows.low, &high = rows.high;
  c.tiles = ceil_div(g.result[2], rows.width);
  const auto width_of = [&](int64_t columns) { return (columns - 1) * g.step[2] + high[2] - low[2] + 1; };
  const auto rows_of = [&](int64_t count) { return (count - 1) * g.step[1] + high[1] - low[1] + 1; };
  const int64_t depth = int64_t(rows.depths.size());
  const auto bytes_of = [&](int64_t columns, int64_t count) {
    return depth * rows_of(count) * g.source_channels * width_of(columns) * int64_t(sizeof(float));
  };
  const int64_t items = s.batch * s.groups * g.result[0];
  // Few rows: their columns are shared out.
  int64_t tiles = c.tiles;
  if (threads > 1 && items * g.result[1] < threads)
    tiles = ceil_div(tiles, ceil_div(kTasksOfThread * threads, items * g.result[1]));
  while (tiles > 1 && bytes_of(tiles * rows.width, 1) > kStripBytes) tiles = ceil_div(tiles, 2);
  c.columns = std::min(tiles * rows.width, g.result[2]);
  c.column_blocks = ceil_div(g.result[2], c.columns);
  const int64_t images = items * c.column_blocks, panels = int64_t(rows.panels.size());
  // The time of the thread with most to do, in output rows. Copying an input row takes as long as 11.5
  // multiply-adds of each of its elements, a large weight from L3 as long as six.
  const bool large = g.weight_elements / s.groups * int64_t(sizeof(float)) > kLargeWeightBytes;
  const double copied = 11.5 / double(g.result_channels * int64_t(rows.taps.size()));
  const double fetched = large ? 6 / double(c.columns) : 0;
  double best = std::numeric_limits<double>::max();
  for (int64_t shares = 1; shares <= panels && shares <= 2 * threads; ++shares) {
    for (int per_thread = 1; per_thread <= kTasksOfThread; ++per_thread) {
      int64_t blocks = std::clamp<int64_t>(per_thread * threads / (images * shares), 1, g.result[1]);
      while (blocks < g.result[1] && bytes_of(c.columns, ceil_div(g.result[1], blocks)) > kStripBytes)
        ++blocks;
      const int64_t count = ceil_div(g.result[1], blocks),
                    tasks = images * ceil_div(g.result[1], count) * shares;
      const double products = (double(count) + fetched) * double(ceil_div(panels, shares)) / double(panels);
      const double time = double(ceil_div(tasks, threads)) * (products + copied * double(rows_of(count)));
      if (time >= best) continue;
      best = time;
      c.rows = count, c.shares = shares, c.tasks = tasks;
    }
  }
  c.row_blocks = ceil_div(g.result[1], c.rows);
  c.strip_rows = rows_of(c.rows), c.strip_width = width_of(c.columns);
  c.strip = round_up(size_t(bytes_of(c.columns, c.rows)));
  const int64_t panel = rows.panels[0].vectors * rows.lanes;
  const bool once = rows.block >= g.source_channels;
  c.sums = round_up(size_t((once ? rows.width : c.rows * c.columns) * panel) * sizeof(float));
  c.start = round_up(size_t(panel) * sizeof(float));
  c.taps = round_up(rows.taps.size() * (2 * sizeof(ConvRowTap) + sizeof(int64_t)));
  c.thread = c.strip + c.sums + c.start + c.taps;
  return c;
}

/// What a task works on.
struct Task {
  int64_t item, depth, row, column;  // first output
  int64_t rows, columns;
};

class Worker {
 public:
  Worker(const Conv& p, const Cut& cut, std::byte* memory)
      : p_(p), g_(p.plan->geometry()), rows_(g_.by_rows), cut_(cut), kernels_(conv_row_kernels()) {
    strip_ = reinterpret_cast<float*>(memory);
    sums_ = reinterpret_cast<float*>(memory + cut.strip);
    start_ = reinterpret_cast<float*>(memory + cut.strip + cut.sums);
    taps_ = reinterpret_cast<ConvRowTap*>(memory + cut.strip + cut.sums + cut.start);
    tap_columns_ = reinterpret_cast<int64_t*>(taps_ + 2 * rows_.taps.size());
  }

  void run(int64_t task) {
    const int64_t share = task % cut_.shares, place = task / cut_.shares;
    Task t{};
    t.row = place % cut_.row_blocks * cut_.rows;
    t.column = place / cut_.row_blocks % cut_.column_blocks * cut_.columns;
    t.depth = place / cut_.row_blocks / cut_.column_blocks % g_.result[0];
    t.item = place / cut_.row_blocks / cut_.column_blocks / g_.result[0];
    t.rows = std::min(cut_.rows, g_.result[1] - t.row);
    t.columns = std::min(cut_.columns, g_.result[2] - t.column);
    if (t.rows <= 0) return;
    if (place != framed_) frame(t);
    framed_ = place;
    const Range panels = split_range(int64_t(rows_.panels.size()), 1, int(cut_.shares), int(share));
    for (int64_t i = panels.begin; i < panels.end; ++i) panel(t, rows_.panels[size_t(i)]);
  }

 private:
  int64_t first_row(const Task& t) const { return t.row * g_.step[1] + rows_.low[1]; }
  int64_t row_floats() const { return g_.source_channels * cut_.strip_width; }

  void frame(const Task& t) {
    const float* source = p_.plan->pass() == ConvPass::backward_data ? p_.dy : p_.x;
    const int64_t i1 = std::max<int64_t>(0, first_row(t));
    const int64_t end = std::min(g_.source[1], first_row(t) + cut_.strip_rows);
    const int64_t i2 = t.column * g_.step[2] + rows_.low[2];
    ConvFrame f{.plane = volume(g_.source), .row = g_.source[2], .channels = g_.source_channels};
    f.rows = end - i1;
    f.width = cut_.strip_width, f.out_row = row_floats();
    const int64_t from = std::clamp<int64_t>(i2, 0, g_.source[2]);
    const int64_t to = std::clamp<int64_t>(i2 + f.width, from, g_.source[2]);
    f.left = std::clamp<int64_t>(from - i2, 0, f.width), f.length = to - from;
    for (size_t d = 0; d < rows_.depths.size(); ++d) {
      const int64_t i0 = t.depth * g_.step[0] + rows_.depths[d];
      if (i0 < 0 || i0 >= g_.source[0]) continue;
      f.source = source + t.item * g_.source_channels * f.plane + (i0 * g_.source[1] + i1) * f.row + from;
      f.out = strip_ + (int64_t(d) * cut_.strip_rows + i1 - first_row(t)) * f.out_row;
      kernels_.frame(f);
    }
  }

  // The taps that meet output row `row`, for the weights of a block of so many channels.
  int64_t taps_of_row(const Task& t, int64_t row, int64_t weights) {
    int64_t n = 0;
    for (size_t i = 0; i < rows_.taps.size(); ++i) {
      const ConvTap& tap = rows_.taps[i];
      const int64_t i0 = t.depth * g_.step[0] + tap.base[0], i1 = row * g_.step[1] + tap.base[1];
      if (i0 < 0 || i0 >= g_.source[0] || i1 < 0 || i1 >= g_.source[1]) continue;
      const int64_t strip_row = tap.depth * cut_.strip_rows + i1 - first_row(t);
      tap_columns_[n] = tap.base[2];
      taps_[n++] = {strip_row * row_floats() + tap.base[2] - rows_.low[2], int64_t(i) * weights, 0};
    }
    return n;
  }

  // The same taps with what a tile at an end of the row may skip.
  const ConvRowTap* taps_of_tile(int64_t column, int positions, int64_t count) {
    const int64_t first = column * g_.step[2], last = (column + positions - 1) * g_.step[2];
    if (g_.step[2] > 1 || (first + rows_.low[2] >= 0 && last + rows_.high[2] < g_.source[2])) return taps_;
    ConvRowTap* out = taps_ + rows_.taps.size();
    for (int64_t n = 0; n < count; ++n) {
      out[n] = taps_[n];
      out[n].skip = first + tap_columns_[n] < 0 ? 1 : (last + tap_columns_[n] >= g_.source[2] ? 2 : 0);
    }
    return out;
  }

  void panel(const Task& t, const ConvRowPlan::Panel& panel) {
    const int64_t group = t.item % p_.plan->shape().groups, lanes = panel.vectors * rows_.lanes;
    const int64_t channels = std::min(lanes, g_.result_channels - panel.first);
    const int64_t taps = int64_t(rows_.taps.size());
    std::fill_n(start_, lanes, 0.0f);
    if (p_.bias != nullptr)
      std::memcpy(start_, p_.bias + group * g_.result_channels + panel.first,
                  size_t(channels) * sizeof(float));
    const float* weights =
        p_.weights->data() + (group * rows_.padded_channels + panel.first) * taps * g_.source_channels;
    float* out = p_.out + (t.item * g_.result_channels + panel.first) * volume(g_.result);
    ConvRowTile tile{.plane = cut_.strip_width, .step = g_.step[2], .vectors = panel.vectors};
    tile.out_stride = volume(g_.result), tile.out_channels = channels, tile.relu = p_.relu;
    for (int64_t c = 0; c < g_.source_channels; c += rows_.block) {
      const bool last = c + rows_.block >= g_.source_channels, once = rows_.block >= g_.source_channels;
      tile.channels = std::min(rows_.block, g_.source_channels - c);
      tile.weights = weights + c * taps * lanes;
      for (int64_t row = t.row; row < t.row + t.rows; ++row) {
        tile.tap_count = taps_of_row(t, row, tile.channels * lanes);
        for (int64_t column = t.column; column < t.column + t.columns; column += rows_.width) {
          tile.positions = int(std::min(rows_.width, g_.result[2] - column));
          tile.taps = taps_of_tile(column, tile.positions, tile.tap_count);
          tile.source = strip_ + c * cut_.strip_width + (column - t.column) * g_.step[2];
          const int64_t place = (row - t.row) * cut_.columns + column - t.column;
          tile.sums = sums_ + (once ? 0 : place) * lanes;
          tile.start = c == 0 ? start_ : tile.sums;
          tile.start_stride = c == 0 ? 0 : lanes;
          const int64_t at = (t.depth * g_.result[1] + row) * g_.result[2] + column;
          if (last) tile.out = out + at;
          if (last && p_.residual != nullptr) tile.residual = p_.residual + (out - p_.out) + at;
          kernels_.tile(tile);
        }
      }
    }
  }

  const Conv& p_;
  const ConvGeometry& g_;
  const ConvRowPlan& rows_;
  const Cut& cut_;
  const ConvRowKernels& kernels_;
  float *strip_, *sums_, *start_;
  ConvRowTap* taps_;      // of a row, then of a tile
  int64_t* tap_columns_;  // of a row: column offsets
  int64_t framed_ = -1;
};

}  // namespace

size_t conv_rows_workspace(const Conv& p, int threads) { return conv_tasks_workspace(p, threads, cut); }

void conv_rows(Team team, const Conv& p, std::byte* workspace) {
  run_conv_tasks<Worker>(team, p, cut(p, team.threads()), workspace);
}

}  // namespace rlx::cpu
