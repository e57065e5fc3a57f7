// Plan: a task is a panel of input channels of a group and a share of the output channels, over all images.
// The outputs are taken in chunks of rows and columns; for each, the inputs of the panel are turned to
// [position][channel] in the thread's own memory, [kernel depth][row][column][lane], and every tile of output
// channels and every tap adds the chunk to its sums, [tap][output channel][lane]. A chunk is as large as L2
// allows. At the end the sums are written as [output channel][input channel][tap]. Every sum is one chain in
// the order of images, chunks and positions.
//
// Rows of dy are read where they lie unless their distance is such that they share few sets of L1; then a
// tile's rows are copied first.
#include "rlx/backend/cpu/kernels/conv/conv_weights.h"

#include <limits>

#include "rlx/backend/cpu/isa_table.h"
#include "rlx/backend/cpu/kernels/conv/conv_geometry.h"
#include "rlx/backend/cpu/kernels/conv/conv_tasks.h"
#include "rlx/backend/cpu/kernels/sizes.h"

namespace rlx::cpu {

RLX_ISA_TABLE(ConvTurnedKernels, conv_turned_kernels)

namespace {

/// How the work is cut over threads, and the floats of a thread's memory.
struct Cut {
  int64_t tiles = 0, shares = 0, tasks = 0;
  int64_t channels = 0;  // output channels of a share
  size_t turned = 0, sums = 0, copied = 0, thread = 0;
};

Cut cut(const Conv& p, int threads) {
  const ConvGeometry& g = p.plan->geometry();
  const ConvTurnedPlan& turned = g.turned;
  const ConvShape& s = p.plan->shape();
  Cut c;
  c.tiles = ceil_div(g.result_channels, turned.rows);
  const int64_t panels = s.groups * turned.panels, taps = int64_t(turned.taps.size());
  // Turning the inputs takes as long as a third of a tile of one tap.
  double best = std::numeric_limits<double>::max();
  for (int64_t shares = 1; shares <= c.tiles && shares <= 2 * threads; ++shares) {
    const double part = double(ceil_div(c.tiles, shares)) + 0.34 / double(taps);
    const double time = double(ceil_div(panels * shares, threads)) * part;
    if (time < best) best = time, c.shares = shares;
  }
  c.tasks = panels * c.shares;
  c.channels = ceil_div(c.tiles, c.shares) * turned.rows;
  const auto bytes = [](int64_t floats) { return round_up(size_t(floats) * sizeof(float)); };
  const int64_t lanes = 2 * turned.lanes;
  c.turned = bytes(int64_t(turned.depths.size()) * turned.input_rows * turned.input_columns * lanes);
  c.sums = bytes(taps * c.channels * lanes);
  c.copied = bytes(turned.rows * turned.copied_plane);
  c.thread = c.turned + c.sums + c.copied;
  return c;
}

/// Outputs [first, last) whose inputs o step + base lie in [0, size).
Range inside(int64_t first, int64_t last, int64_t step, int64_t base, int64_t size) {
  const int64_t from = base < 0 ? ceil_div(-base, step) : 0;
  const int64_t to = size - base <= 0 ? 0 : ceil_div(size - base, step);
  first = std::max(first, from);
  return {first, std::max(first, std::min(last, to))};
}

class Worker {
 public:
  Worker(const Conv& p, const Cut& cut, std::byte* memory)
      : p_(p),
        g_(p.plan->geometry()),
        plan_(g_.turned),
        cut_(cut),
        kernels_(conv_turned_kernels()),
        turned_(reinterpret_cast<float*>(memory)),
        sums_(reinterpret_cast<float*>(memory + cut.turned)),
        copied_(reinterpret_cast<float*>(memory + cut.turned + cut.sums)) {}

  void run(int64_t task) {
    const int64_t share = task % cut_.shares, panel = task / cut_.shares % plan_.panels;
    group_ = task / cut_.shares / plan_.panels;
    channel_ = panel * 2 * plan_.lanes;
    channels_ = std::min<int64_t>(2 * plan_.lanes, g_.source_channels - channel_);
    vectors_ = channels_ > plan_.lanes ? 2 : 1;
    const Range tiles = split_range(cut_.tiles, 1, int(cut_.shares), int(share));
    const int64_t first = tiles.begin * plan_.rows,
                  last = std::min(tiles.end * plan_.rows, g_.result_channels);
    const int64_t batch = p_.plan->shape().batch;
    // With one chunk in all, the sums of a tile are finished in the nearest cache.
    if (batch * g_.result[0] == 1 && plan_.chunk_rows >= g_.result[1] &&
        plan_.chunk_columns >= g_.result[2]) {
      const Chunk chunk = turn(0, {0, 0, 0});
      for (int64_t row = first; row < last; row += plan_.rows) {
        begin(row, std::min(row + plan_.rows, last));
        add(chunk, row);
        write();
      }
      return;
    }
    begin(first, last);
    for (int64_t n = 0; n < batch; ++n) {
      for (int64_t o0 = 0; o0 < g_.result[0]; ++o0) {
        for (int64_t o1 = 0; o1 < g_.result[1]; o1 += plan_.chunk_rows) {
          for (int64_t o2 = 0; o2 < g_.result[2]; o2 += plan_.chunk_columns) {
            const Chunk chunk = turn(n, {o0, o1, o2});
            for (int64_t row = first; row < last; row += plan_.rows) add(chunk, row);
          }
        }
      }
    }
    write();
  }

 private:
  int64_t lanes() const { return vectors_ * plan_.lanes; }
  int64_t tap_floats() const { return (last_ - first_) * lanes(); }

  void begin(int64_t first, int64_t last) {
    first_ = first, last_ = last;
    std::fill_n(sums_, int64_t(plan_.taps.size()) * tap_floats(), 0.0f);
  }

  // Outputs [first, end) of an image, and the inputs from `input` on that are turned for them.
  struct Chunk {
    int64_t item;  // image and group
    Extents first, end, input;
    int64_t columns, section;  // inputs of a turned row, floats of a kernel depth
  };

  Chunk turn(int64_t n, const Extents& first) {
    Chunk c{.item = n * p_.plan->shape().groups + group_, .first = first, .end = first, .input = {}};
    c.end[0] = first[0] + 1;
    c.end[1] = std::min(first[1] + plan_.chunk_rows, g_.result[1]);
    c.end[2] = std::min(first[2] + plan_.chunk_columns, g_.result[2]);
    Extents count{};
    for (size_t a = 1; a < 3; ++a) {
      c.input[a] = std::clamp<int64_t>(first[a] * g_.step[a] + plan_.low[a], 0, g_.source[a]);
      const int64_t last = (c.end[a] - 1) * g_.step[a] + plan_.high[a];
      count[a] = std::clamp<int64_t>(last + 1, c.input[a], g_.source[a]) - c.input[a];
    }
    c.columns = count[2], c.section = count[1] * count[2] * lanes();
    const int64_t plane = volume(g_.source);
    const bool whole = count[2] == g_.source[2];  // rows are then one run
    for (size_t d = 0; d < plan_.depths.size(); ++d) {
      const int64_t i0 = first[0] * g_.step[0] + plan_.depths[d];
      if (i0 < 0 || i0 >= g_.source[0]) continue;
      const float* from = p_.x + (c.item * g_.source_channels + channel_) * plane +
                          (i0 * g_.source[1] + c.input[1]) * g_.source[2] + c.input[2];
      float* to = turned_ + int64_t(d) * c.section;
      for (int64_t r = 0; r < (whole ? 1 : count[1]); ++r) {
        kernels_.turn(from + r * g_.source[2], plane, channels_, whole ? count[1] * count[2] : count[2],
                      vectors_, to + r * count[2] * lanes());
      }
    }
    return c;
  }

  // The products of a chunk with output channels [row, row + rows of a tile).
  void add(const Chunk& c, int64_t row) {
    ConvTurnedTile tile{.x_step = g_.step[2] * lanes(), .vectors = vectors_};
    tile.rows = int(std::min(plan_.rows, last_ - row));
    tile.plane = volume(g_.result), tile.dy_run = g_.result[2], tile.x_run = g_.step[1] * c.columns * lanes();
    const float* dy = p_.dy + (c.item * g_.result_channels + row) * tile.plane +
                      (c.first[0] * g_.result[1] + c.first[1]) * g_.result[2] + c.first[2];
    if (plan_.copied_plane > 0) {
      const int64_t length = c.end[2] - c.first[2];
      for (int64_t r = 0; r < tile.rows; ++r) {
        for (int64_t j = 0; j < c.end[1] - c.first[1]; ++j)
          std::copy_n(dy + r * tile.plane + j * g_.result[2], length,
                      copied_ + r * plan_.copied_plane + j * length);
      }
      dy = copied_, tile.plane = plan_.copied_plane, tile.dy_run = length;
    }
    for (size_t t = 0; t < plan_.taps.size(); ++t) {
      const ConvTap& tap = plan_.taps[t];
      const int64_t i0 = c.first[0] * g_.step[0] + tap.base[0];
      if (i0 < 0 || i0 >= g_.source[0]) continue;
      const Range r1 = inside(c.first[1], c.end[1], g_.step[1], tap.base[1], g_.source[1]);
      const Range r2 = inside(c.first[2], c.end[2], g_.step[2], tap.base[2], g_.source[2]);
      tile.runs = r1.end - r1.begin, tile.length = r2.end - r2.begin;
      if (tile.runs == 0 || tile.length == 0) continue;
      tile.dy = dy + (r1.begin - c.first[1]) * tile.dy_run + r2.begin - c.first[2];
      const int64_t i1 = r1.begin * g_.step[1] + tap.base[1] - c.input[1];
      const int64_t i2 = r2.begin * g_.step[2] + tap.base[2] - c.input[2];
      tile.x = turned_ + tap.depth * c.section + (i1 * c.columns + i2) * lanes();
      tile.sums = sums_ + int64_t(t) * tap_floats() + (row - first_) * lanes();
      if (tile.length == tile.dy_run && tile.length * tile.x_step == tile.x_run)  // rows are one run
        tile.length *= tile.runs, tile.runs = 1;
      kernels_.tile(tile);
    }
  }

  void write() {
    const auto taps = int64_t(plan_.taps.size());
    for (int64_t row = first_; row < last_; ++row) {
      const int64_t place = (group_ * g_.result_channels + row) * g_.source_channels + channel_;
      kernels_.interleave(sums_ + (row - first_) * lanes(), tap_floats(), channels_, taps,
                          p_.out + place * taps);
    }
  }

  const Conv& p_;
  const ConvGeometry& g_;
  const ConvTurnedPlan& plan_;
  const Cut& cut_;
  const ConvTurnedKernels& kernels_;
  float *turned_, *sums_, *copied_;
  int64_t group_ = 0, channel_ = 0, channels_ = 0;  // of the inputs
  int64_t first_ = 0, last_ = 0;                    // output channels of the sums
  int vectors_ = 0;
};

}  // namespace

size_t conv_turned_workspace(const Conv& p, int threads) { return conv_tasks_workspace(p, threads, cut); }

void conv_turned(Team team, const Conv& p, std::byte* workspace) {
  run_conv_tasks<Worker>(team, p, cut(p, team.threads()), workspace);
}

}  // namespace rlx::cpu
