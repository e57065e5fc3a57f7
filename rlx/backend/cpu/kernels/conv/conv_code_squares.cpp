// Plan: as conv_winograd.cpp, on whole numbers with channels last. A block of squares is transformed from the
// frame to V [16][square][channel] of 16 bits, multiplied to M [16][square][output channel] of 32 bits with the
// tiles of conv_codes.h, whose positions are squares now, and transformed back to codes.
#include <algorithm>
#include <atomic>

#include "rlx/backend/cpu/isa_table.h"
#include "rlx/backend/cpu/kernels/conv/conv_codes_layout.h"

namespace rlx::cpu {

RLX_ISA_TABLE_VNNI(ConvCodesKernels, conv_codes_kernels)

namespace {

constexpr int64_t kTasksOfThread = 8;

// 2 G of Winograd's algorithm.
constexpr int kKernel[4][3] = {{2, 0, 0}, {1, 1, 1}, {1, -1, 1}, {0, 0, 2}};

int64_t panel_values(const CodeLayout& l) { return l.s.in_channels * conv_codes_kernels().panel; }

struct Cut : SquareCut {
  int64_t pitch = 0;                 // values of V from square to square
  int64_t v_plane = 0, m_plane = 0;  // values
  size_t v_bytes = 0, bytes = 0;
};

Cut cut(const CodeLayout& l, int threads) {
  const CodeConvShape& s = l.s;
  const int64_t panel = conv_codes_kernels().panel, out = l.panels * panel;
  Cut c{cut_squares(squares_of(s.batch, s.out[0], s.out[1]), kSquareElements * s.in_channels * out * 2,
                    kSquareElements * (s.in_channels * 2 + out * 4), conv_codes_kernels().rows, threads)};
  // Planes and squares that are no multiple of a page apart.
  c.pitch = s.in_channels + 16;
  c.v_plane = c.block * c.pitch + 32, c.m_plane = c.block * out + 16;
  c.v_bytes = round_up(size_t(kSquareElements * c.v_plane) * 2);
  c.bytes = c.v_bytes + round_up(size_t(kSquareElements * c.m_plane) * 4);
  return c;
}

/// The squares of one block.
class Block {
 public:
  Block(const CodeConv& p, const CodeLayout& l, const Cut& cut, const int16_t* frame, std::byte* memory,
        int64_t block)
      : p_(p), l_(l), cut_(cut), kernels_(conv_codes_kernels()), frame_(frame) {
    v_ = reinterpret_cast<int16_t*>(memory);
    m_ = reinterpret_cast<int32_t*>(memory + cut.v_bytes);
    first_ = block * cut.block;
    count_ = std::min(cut.block, cut.squares.all - first_);
  }
  int64_t count() const { return count_; }

  void inputs(int64_t begin, int64_t end) const {
    each_square_run(cut_.squares, first_ + begin, end - begin,
                    [&](int64_t image, int64_t row, int64_t column, int64_t n, int64_t at) {
                      const int16_t* x = frame_ + image * l_.image_values() + 2 * row * l_.line_values() +
                                         2 * column * l_.s.in_channels;
                      kernels_.square_input({.x = x,
                                             .line = l_.line_values(),
                                             .channels = l_.s.in_channels,
                                             .squares = n,
                                             .out = v_ + (begin + at) * cut_.pitch,
                                             .pitch = cut_.pitch,
                                             .plane = cut_.v_plane});
                    });
  }

  void products(int64_t element, int64_t first, int64_t last) const {
    static constexpr int64_t kNoShift = 0;
    const int64_t out = l_.panels * kernels_.panel;
    CodeTile tile{
        .distance = 2 * cut_.pitch, .runs = &kNoShift, .run_count = 1, .steps = l_.s.in_channels / 2};
    tile.result.dtype = DType::i32, tile.result.row_stride = out;
    for (int64_t i = first; i < last; ++i) {
      tile.weights = p_.weights->data() + (element * l_.panels + i) * panel_values(l_) * 2;
      for (int64_t square = 0; square < count_; square += kernels_.rows) {
        tile.rows = int(std::min<int64_t>(kernels_.rows, count_ - square));
        tile.x = reinterpret_cast<const std::byte*>(v_ + element * cut_.v_plane + square * cut_.pitch);
        tile.result.y = m_ + element * cut_.m_plane + square * out + i * kernels_.panel;
        kernels_.tile(tile);
      }
    }
  }

  void outputs(int64_t begin, int64_t end) const {
    const CodeConvShape& s = l_.s;
    CodeSquareOutput out{
        .plane = cut_.m_plane, .channels = s.out_channels, .line_stride = s.out[1] * s.out_channels};
    out.result = {.mult = p_.mult, .offset = p_.offset, .row_stride = s.out_channels, .dtype = p_.y_dtype};
    out.result.exact = p_.exact, out.result.zero = p_.y_zero, out.result.least = p_.least,
    out.result.most = p_.most;
    each_square_run(cut_.squares, first_ + begin, end - begin,
                    [&](int64_t image, int64_t row, int64_t column, int64_t n, int64_t at) {
                      out.rows = int(std::min<int64_t>(2, s.out[0] - 2 * row));
                      for (int64_t i = 0; i < n; ++i) {
                        const int64_t x = 2 * (column + i),
                                      place = (image * s.out[0] + 2 * row) * s.out[1] + x;
                        out.columns = int(std::min<int64_t>(2, s.out[1] - x));
                        out.sums = m_ + (begin + at + i) * l_.panels * kernels_.panel;
                        out.result.y = static_cast<std::byte*>(p_.y) +
                                       place * s.out_channels * int64_t(dtype_size(p_.y_dtype));
                        kernels_.square_output(out);
                      }
                    });
  }

  void all() const {
    inputs(0, count_);
    for (int64_t e = 0; e < kSquareElements; ++e) products(e, 0, l_.panels);
    outputs(0, count_);
  }

 private:
  const CodeConv& p_;
  const CodeLayout& l_;
  const Cut& cut_;
  const ConvCodesKernels& kernels_;
  const int16_t* frame_;
  int16_t* v_;
  int32_t* m_;
  int64_t first_ = 0, count_ = 0;
};

}  // namespace

bool code_squares_pay(const CodeConvShape& s) {
  using Pair = CodeConvShape::Pair;
  constexpr Pair ones{1, 1};
  constexpr int64_t kChannels = 32;  // of a vector of any level
  if (s.kernel != Pair{3, 3} || s.stride != ones || s.dilation != ones || s.groups != 1) return false;
  if (s.in_channels % kChannels != 0 || s.out_channels < kChannels) return false;
  // Transformed inputs reach 4 * 255, kernels 9 * 255, each less a zero point of the range.
  if (s.in_channels * (4 * 255) * (9 * 255) > INT32_MAX) return false;
  return squares_pay(squares_of(s.batch, s.out[0], s.out[1]), s.out[0], s.out[1]);
}

size_t code_squares_weight_bytes(const CodeLayout& l) {
  return size_t(kSquareElements * l.panels * panel_values(l)) * 2;
}

void pack_code_squares(Team team, const CodeLayout& l, const PackedCodeWeights::Source& w, int16_t* out) {
  const int64_t panel = conv_codes_kernels().panel, channels = l.s.in_channels;
  const auto code = [&](int64_t at) {
    return (w.dtype == DType::u8 ? int(reinterpret_cast<const uint8_t*>(w.data)[at])
                                 : int(reinterpret_cast<const int8_t*>(w.data)[at])) -
           w.zero;
  };
  team.parallel_for(l.panels * channels, 16, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t p = i / channels, c = i % channels;
      for (int64_t j = 0; j < panel; ++j) {
        const int64_t filter = p * panel + j;
        int half[4][3] = {};
        for (int a = 0; a < 4 && filter < l.s.out_channels; ++a) {
          for (int b = 0; b < 3; ++b) {
            for (int k = 0; k < 3; ++k)
              half[a][b] +=
                  kKernel[a][k] * code(filter * w.filter + c * w.channel + k * w.row + b * w.column);
          }
        }
        for (int64_t e = 0; e < kSquareElements; ++e) {
          const int* row = half[e / 4];
          const int* by = kKernel[e % 4];
          out[(e * l.panels + p) * panel_values(l) + c / 2 * 2 * panel + 2 * j + c % 2] =
              int16_t(row[0] * by[0] + row[1] * by[1] + row[2] * by[2]);
        }
      }
    }
  });
}

// Fewer threads get larger blocks.
size_t code_squares_workspace(const CodeLayout& l, int threads) {
  size_t bytes = 0;
  for (int t = 1; t <= threads; ++t) {
    const Cut c = cut(l, t);
    bytes = std::max(bytes, (c.shared ? 1 : size_t(t)) * c.bytes);
  }
  return bytes;
}

void conv_code_squares(Team team, const CodeConv& p, const CodeLayout& l, const int16_t* frame,
                       std::byte* workspace) {
  const Cut c = cut(l, team.threads());
  if (!c.shared) {
    std::atomic<int64_t> next{0};
    team.run(int(std::min<int64_t>(team.threads(), c.blocks)), [&](int part) {
      std::byte* memory = workspace + size_t(part) * c.bytes;
      for (int64_t i; (i = next.fetch_add(1, std::memory_order_relaxed)) < c.blocks;)
        Block(p, l, c, frame, memory, i).all();
    });
    return;
  }
  for (int64_t i = 0; i < c.blocks; ++i) {
    const Block block(p, l, c, frame, workspace, i);
    // Shared out as they go: a thread may be slower than another.
    const int64_t some = ceil_div(block.count(), kTasksOfThread * team.threads());
    team.parallel_chunks(block.count(), some, [&](int64_t begin, int64_t end) { block.inputs(begin, end); });
    const int64_t parts = std::min(l.panels, ceil_div(2 * kTasksOfThread * team.threads(), kSquareElements));
    team.parallel_chunks(kSquareElements * parts, 1, [&](int64_t task, int64_t) {
      const Range r = split_range(l.panels, 1, int(parts), int(task % parts));
      block.products(task / parts, r.begin, r.end);
    });
    team.parallel_chunks(block.count(), some, [&](int64_t begin, int64_t end) { block.outputs(begin, end); });
  }
}

}  // namespace rlx::cpu
