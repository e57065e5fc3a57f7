// Plan: a block of squares (conv_squares.h) is transformed to V [16][channel][square], multiplied to
// M [16][output channel][square] with the tiles of conv.h, and transformed back.
#include "rlx/backend/cpu/kernels/conv/conv_winograd.h"

#include <algorithm>
#include <cstring>

#include "rlx/backend/cpu/isa_table.h"
#include "rlx/backend/cpu/kernels/conv/conv_geometry.h"
#include "rlx/backend/cpu/kernels/conv/conv_squares.h"
#include "rlx/backend/cpu/kernels/conv/conv_tasks.h"
#include "rlx/backend/cpu/kernels/sizes.h"

namespace rlx::cpu {

RLX_ISA_TABLE(ConvKernels, conv_kernels)
RLX_ISA_TABLE(WinogradKernels, winograd_kernels)

namespace {

constexpr int64_t kSlack = 64;      // floats that vectors reach beyond a plane
constexpr int64_t kMostLanes = 16;  // of any level
constexpr int64_t kTasksOfThread = 8;

struct Cut : SquareCut {
  int64_t tasks = 0;
  int64_t pitch = 0;  // floats from channel to channel of V, with room for what vectors write over the end
  int64_t v_plane = 0, m_plane = 0;  // floats
  size_t thread = 0;                 // bytes of V and M
};

Cut cut(const Conv& p, int threads) {
  const ConvGeometry& g = p.plan->geometry();
  const ConvShape& s = p.plan->shape();
  const int64_t in = g.source_channels, out = g.result_channels,
                element_bytes = kSquareElements * int64_t(sizeof(float));
  Cut c{cut_squares(squares_of(s.batch, g.result[1], g.result[2]), element_bytes * in * out,
                    element_bytes * (in + out), g.columns, threads)};
  c.tasks = s.groups * c.blocks;
  c.pitch = c.block + kMostLanes;
  c.v_plane = in * c.pitch + kSlack, c.m_plane = out * c.block + kSlack;
  c.thread = round_up(size_t(kSquareElements * (c.v_plane + c.m_plane)) * sizeof(float));
  return c;
}

class Worker {
 public:
  Worker(const Conv& p, const Cut& cut, std::byte* memory)
      : p_(p), g_(p.plan->geometry()), s_(p.plan->shape()), cut_(cut) {
    v_ = reinterpret_cast<float*>(memory);
    m_ = v_ + kSquareElements * cut.v_plane;
  }

  void run(int64_t task) const {
    begin(task);
    inputs(0, g_.source_channels);
    for (int64_t e = 0; e < kSquareElements; ++e) products(e, 0, g_.tiles());
    outputs(0, g_.result_channels);
  }

  void run(Team team, int64_t task) const {
    begin(task);
    // Shared out as they go: a thread may be slower than another.
    const auto some = [&](int64_t channels) { return ceil_div(channels, kTasksOfThread * team.threads()); };
    team.parallel_chunks(g_.source_channels, some(g_.source_channels),
                         [&](int64_t first, int64_t last) { inputs(first, last); });
    const int64_t parts =
        std::min(g_.tiles(), ceil_div(2 * kTasksOfThread * team.threads(), kSquareElements));
    team.parallel_chunks(kSquareElements * parts, 1, [&](int64_t i, int64_t) {
      const Range r = split_range(g_.tiles(), 1, int(parts), int(i % parts));
      products(i / parts, r.begin, r.end);
    });
    team.parallel_chunks(g_.result_channels, some(g_.result_channels),
                         [&](int64_t first, int64_t last) { outputs(first, last); });
  }

 private:
  void begin(int64_t task) const {
    group_ = task / cut_.blocks, first_ = task % cut_.blocks * cut_.block;
    count_ = std::min(cut_.block, cut_.squares.all - first_);
  }

  // The vectors of a run reach over its end into what the next run writes. What they read there is left from another run.
  void inputs(int64_t first, int64_t last) const {
    constexpr int64_t kWidth = 2 * kRunSquares + 2 + kSlack;
    alignas(64) float strip[4 * kWidth] = {};
    const int64_t height = g_.source[1], width = g_.source[2];
    for (int64_t c = first; c < last; ++c) {
      each_square_run(cut_.squares, first_, count_,
                      [&](int64_t image, int64_t row, int64_t column, int64_t n, int64_t at) {
                        const float* plane =
                            p_.x + ((image * s_.groups + group_) * g_.source_channels + c) * height * width;
                        const int64_t x0 = 2 * column - s_.low[2], wanted = 2 * n + 2;
                        const int64_t from = std::clamp<int64_t>(-x0, 0, wanted),
                                      to = std::clamp<int64_t>(width - x0, from, wanted);
                        for (int64_t r = 0; r < 4; ++r) {
                          const int64_t y = 2 * row - s_.low[1] + r;
                          float* out = strip + r * kWidth;
                          const bool inside = y >= 0 && y < height;
                          std::fill_n(out, inside ? from : wanted, 0.0f);
                          if (inside) {
                            std::memcpy(out + from, plane + y * width + x0 + from,
                                        size_t(to - from) * sizeof(float));
                            std::fill_n(out + to, wanted - to, 0.0f);
                          }
                        }
                        winograd_kernels().input({.rows = strip,
                                                  .row_stride = kWidth,
                                                  .squares = n,
                                                  .out = v_ + c * cut_.pitch + at,
                                                  .plane = cut_.v_plane});
                      });
    }
  }

  void products(int64_t element, int64_t first, int64_t last) const {
    static constexpr int64_t kNoShift = 0;
    const ConvKernels& kernels = conv_kernels();
    const float* weights =
        p_.weights->data() + (group_ * kSquareElements + element) * g_.result_channels * g_.source_channels;
    for (int64_t i = first; i < last; ++i) {
      const int64_t row = i * g_.rows;
      ConvTile tile{.weights = weights + row * g_.source_channels,
                    .rows = int(std::min<int64_t>(g_.rows, g_.result_channels - row)),
                    .plane = cut_.pitch,
                    .channels = g_.source_channels,
                    .taps = &kNoShift,
                    .tap_count = 1};
      tile.sums_stride = cut_.block;
      for (int64_t column = 0; column < count_; column += g_.columns) {
        tile.source = v_ + element * cut_.v_plane + column;
        tile.sums = m_ + element * cut_.m_plane + row * cut_.block + column;
        kernels.tile(tile);
      }
    }
  }

  void outputs(int64_t first, int64_t last) const {
    const int64_t height = g_.result[1], width = g_.result[2];
    for (int64_t c = first; c < last; ++c) {
      const int64_t channel = group_ * g_.result_channels + c;
      each_square_run(
          cut_.squares, first_, count_,
          [&](int64_t image, int64_t row, int64_t column, int64_t n, int64_t at) {
            const int64_t place =
                (image * s_.out_channels + channel) * height * width + 2 * row * width + 2 * column;
            winograd_kernels().output({.sums = m_ + c * cut_.block + at,
                                       .plane = cut_.m_plane,
                                       .y = p_.out + place,
                                       .residual = p_.residual == nullptr ? nullptr : p_.residual + place,
                                       .y_row = width,
                                       .columns = std::min(2 * n, width - 2 * column),
                                       .rows = int(std::min<int64_t>(2, height - 2 * row)),
                                       .bias = p_.bias == nullptr ? 0.0f : p_.bias[channel],
                                       .relu = p_.relu});
          });
    }
  }

  const Conv& p_;
  const ConvGeometry& g_;
  const ConvShape& s_;
  const Cut& cut_;
  float *v_, *m_;
  mutable int64_t group_ = 0, first_ = 0, count_ = 0;  // of the task at hand
};

}  // namespace

bool winograd_is_better(const ConvShape& s, const ConvGeometry& g) {
  constexpr int64_t kLeastChannels = 16;
  const Extents ones{1, 1, 1};
  if (s.kernel != Extents{1, 3, 3} || s.stride != ones || s.dilation != ones) return false;
  if (g.depthwise || s.size[0] != 1 || g.result[0] != 1 || s.low[0] != 0) return false;
  if (std::min(g.source_channels, g.result_channels) < kLeastChannels) return false;
  // Transformed kernels are 16/9 of the bytes, and products have vectors of squares. An image decides for itself: its bits do
  // not depend on those beside it.
  constexpr int64_t kLeastSquares = 32;
  const Squares squares = squares_of(1, g.result[1], g.result[2]);
  return squares.of_image >= kLeastSquares && squares_pay(squares, g.result[1], g.result[2]);
}

int64_t winograd_weight_elements(const ConvShape& s, const ConvGeometry& g) {
  return s.groups * kSquareElements * g.source_channels * g.result_channels;
}

void pack_winograd(Team team, const ConvShape& s, const ConvGeometry& g, const float* w, int64_t row_stride,
                   int64_t channel_stride, float* out) {
  constexpr double G[4][3] = {{1, 0, 0}, {0.5, 0.5, 0.5}, {0.5, -0.5, 0.5}, {0, 0, 1}};
  const int64_t matrix = g.result_channels * g.source_channels;
  team.parallel_for(s.groups * g.tiles(), 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t group = i / g.tiles(), row = i % g.tiles() * g.rows;
      const int64_t rows = std::min<int64_t>(g.rows, g.result_channels - row);
      float* to = out + group * kSquareElements * matrix + row * g.source_channels;
      for (int64_t c = 0; c < g.source_channels; ++c) {
        for (int64_t r = 0; r < rows; ++r) {
          const float* k = w + (group * g.result_channels + row + r) * row_stride + c * channel_stride;
          double half[4][3];
          for (int a = 0; a < 4; ++a) {
            for (int b = 0; b < 3; ++b)
              half[a][b] = G[a][0] * double(k[b]) + G[a][1] * double(k[3 + b]) + G[a][2] * double(k[6 + b]);
          }
          for (int a = 0; a < 4; ++a) {
            for (int b = 0; b < 4; ++b) {
              const double v = half[a][0] * G[b][0] + half[a][1] * G[b][1] + half[a][2] * G[b][2];
              to[(4 * a + b) * matrix + c * rows + r] = float(v);
            }
          }
        }
      }
    }
  });
}

size_t conv_winograd_workspace(const Conv& p, int threads) {
  const Cut all = cut(p, threads);
  return all.shared ? std::max(all.thread, cut(p, 1).thread) : conv_tasks_workspace(p, threads, cut);
}

void conv_winograd(Team team, const Conv& p, std::byte* workspace) {
  const Cut c = cut(p, team.threads());
  if (!c.shared) return run_conv_tasks<Worker>(team, p, c, workspace);
  const Worker worker(p, c, workspace);
  for (int64_t task = 0; task < c.tasks; ++task) worker.run(team, task);
}

}  // namespace rlx::cpu
