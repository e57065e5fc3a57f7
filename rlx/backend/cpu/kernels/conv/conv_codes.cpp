// Plan: x goes into a frame with zeros around it, then tasks of output rows and panels
// of channels multiply. A task keeps its rows of the frame in L2 and passes over them panel by panel; small
// weights stay in L2 beside them and rows are shared out, large ones come from further away, so that the
// panels are shared out and rows kept together.
#include "rlx/backend/cpu/kernels/conv/conv_codes.h"

#include <algorithm>
#include <cstring>

#include "rlx/backend/cpu/isa_table.h"
#include "rlx/backend/cpu/kernels/conv/conv_codes_layout.h"
#include "rlx/backend/cpu/kernels/sizes.h"
#include "rlx/base/error.h"
#include "rlx/base/text.h"

namespace rlx::cpu {

RLX_ISA_TABLE_VNNI(ConvCodesKernels, conv_codes_kernels)

namespace {

constexpr int64_t kStripBytes = 192 << 10;        // of a frame: beside a panel of weights in L2
constexpr int64_t kSmallWeightBytes = 192 << 10;  // stay in L2 beside a strip
constexpr int64_t kTasksOfThread = 8;             // at least, where there is enough to share

/// Whether bytes can stand for the codes: weights less their zero point as i8, 0 as one of the codes of x.
bool quads_hold(CodeKind x, CodeKind w) {
  const int32_t least = x.dtype == DType::u8 ? 0 : -128;
  return w.zero == (w.dtype == DType::u8 ? 128 : 0) && x.zero >= least && x.zero <= least + 255;
}

/// What turns codes into those of a frame of quads.
uint8_t flip_of(DType x) { return x == DType::i8 ? 0x80 : 0; }
int32_t quad_zero(const CodeSource& x) { return x.zero + (x.dtype == DType::i8 ? 128 : 0); }

}  // namespace

std::shared_ptr<const CodeLayout> plan_conv_codes(const CodeConvShape& given, CodeKind x, CodeKind w) {
  const ConvCodesKernels& kernels = conv_codes_kernels();
  const auto plan = std::make_shared<CodeLayout>();
  CodeLayout& l = *plan;
  l.given = l.s = given;
  l.step = {1, 1};
  CodeConvShape& s = l.s;
  l.channels = s.in_channels / s.groups, l.filters = s.out_channels / s.groups;
  l.depthwise = l.channels == 1 && l.filters == 1 && s.groups > 1;
  const bool one_place = s.kernel[0] == 1 && s.kernel[1] == 1;
  if (one_place) {  // the frame holds what is needed and nothing between
    l.step = s.stride;
    s.stride = {1, 1}, s.dilation = {1, 1};
  }
  for (size_t a = 0; a < 2; ++a)
    l.padded[a] = (s.out[a] - 1) * s.stride[a] + (s.kernel[a] - 1) * s.dilation[a] + 1;
  // A quad is four products an instruction; squares have a quarter less than half as many products in pairs.
  l.quads = kernels.quad_tile != nullptr && !l.depthwise && quads_hold(x, w);
  l.squares = !l.quads && code_squares_pay(given);
  for (size_t a = 0; a < 2 && l.squares; ++a) l.padded[a] = ceil_div(s.out[a], 2) * 2 + 2;
  const bool joined = !l.depthwise && s.groups == 1 && s.dilation[1] == 1;  // columns of taps are neighbours
  const int64_t columns = joined ? 1 : s.kernel[1], run = joined ? s.kernel[1] * l.channels : l.channels;
  for (int64_t ky = 0; ky < s.kernel[0]; ++ky) {
    for (int64_t kx = 0; kx < columns; ++kx)
      l.runs.push_back((ky * s.dilation[0] * l.padded[1] + kx * s.dilation[1]) * s.in_channels *
                       l.value_bytes());
  }
  l.run_count = int64_t(l.runs.size());
  l.steps = ceil_div(run, 4 / l.value_bytes());
  l.panels = ceil_div(l.depthwise ? s.in_channels : l.filters, kernels.panel);
  l.flat = one_place;
  l.positions = s.batch * s.out[0] * s.out[1];
  l.length = l.flat ? 4 * kernels.rows : s.out[1];
  l.lines = ceil_div(l.positions, std::max<int64_t>(1, l.length));
  return plan;
}

namespace {

/// Weight (filter, run, place in the run) less its zero point.
struct WeightReader {
  const CodeLayout& l;
  const PackedCodeWeights::Source& w;

  int at(int64_t filter, int64_t run, int64_t i) const {
    const bool joined = l.run_count == l.s.kernel[0] && l.s.kernel[1] * l.channels > i;
    const int64_t per_row = l.run_count / l.s.kernel[0], ky = run / per_row;
    const int64_t kx = per_row == 1 ? i / l.channels : run % per_row, c = i % l.channels;
    if (per_row == 1 ? !joined : i >= l.channels) return 0;
    const int64_t at = filter * w.filter + c * w.channel + ky * w.row + kx * w.column;
    const int code = w.dtype == DType::u8 ? int(reinterpret_cast<const uint8_t*>(w.data)[at])
                                          : int(reinterpret_cast<const int8_t*>(w.data)[at]);
    return code - w.zero;
  }
};

int64_t groups_of_panels(const CodeLayout& l) { return l.depthwise ? 1 : l.s.groups; }

/// Numbers of a frame of pairs: codes less their zero point.
struct Pairs {
  using Value = int16_t;
  const CodeSource& x;

  void zeros(Value* to, int64_t n) const { std::memset(to, 0, size_t(n) * sizeof(Value)); }
  /// to[i to_stride] = x[i step] - zero for i < n.
  void spread(const std::byte* from, int64_t step, int64_t n, int64_t to_stride, Value* to) const {
    const auto run = [&](const auto* codes) {
      for (int64_t i = 0; i < n; ++i) to[i * to_stride] = Value(codes[i * step] - x.zero);
    };
    x.dtype == DType::u8 ? run(reinterpret_cast<const uint8_t*>(from))
                         : run(reinterpret_cast<const int8_t*>(from));
  }
  void line(const std::byte* from, int64_t step, int64_t n, Value* to) const {
    conv_codes_kernels().widen(from, x.dtype, x.zero, step, n, to);
  }
};

/// Numbers of a frame of quads: codes, or codes plus 128.
struct Quads {
  using Value = uint8_t;
  const CodeSource& x;

  void zeros(Value* to, int64_t n) const { std::memset(to, quad_zero(x), size_t(n)); }
  void spread(const std::byte* from, int64_t step, int64_t n, int64_t to_stride, Value* to) const {
    const auto* codes = reinterpret_cast<const uint8_t*>(from);
    const uint8_t flip = flip_of(x.dtype);
    for (int64_t i = 0; i < n; ++i) to[i * to_stride] = Value(codes[i * step] ^ flip);
  }
  void line(const std::byte* from, int64_t step, int64_t n, Value* to) const {
    if (step != 1 || flip_of(x.dtype) != 0) return spread(from, step, n, 1, to);
    std::memcpy(to, from, size_t(n));
  }
};

template <class Kind>
void fill_frame(Team team, const CodeConv& p, const CodeLayout& l, std::byte* memory) {
  using Value = typename Kind::Value;
  const Kind kind{p.x};
  auto* const frame = reinterpret_cast<Value*>(memory);
  const CodeConvShape& s = l.s;
  const int64_t lines = s.batch * l.padded[0], values = l.line_values();
  const bool dense = p.x.channel == 1 && p.x.column == s.in_channels && l.step[1] == 1;
  team.parallel_chunks(
      lines, std::max<int64_t>(16384 / values, ceil_div(lines, kTasksOfThread * team.threads())),
      [&](int64_t begin, int64_t end) {
        for (int64_t line = begin; line < end; ++line) {
          const int64_t image = line / l.padded[0], y = line % l.padded[0] * l.step[0] - s.low[0];
          Value* to = frame + line * values;
          const int64_t first =
              std::clamp<int64_t>(ceil_div(std::max<int64_t>(s.low[1], 0), l.step[1]), 0, l.padded[1]);
          const int64_t inside = s.size[1] + s.low[1];  // columns of the frame below inside / step lie in x
          const int64_t last =
              y < 0 || y >= s.size[0]
                  ? first
                  : std::clamp<int64_t>(inside <= 0 ? 0 : ceil_div(inside, l.step[1]), first, l.padded[1]);
          kind.zeros(to, first * s.in_channels);
          kind.zeros(to + last * s.in_channels, (l.padded[1] - last) * s.in_channels);
          if (first == last) continue;
          const std::byte* from =
              p.x.data + image * p.x.image + y * p.x.row + (first * l.step[1] - s.low[1]) * p.x.column;
          if (dense) {
            kind.line(from, 1, (last - first) * s.in_channels, to + first * s.in_channels);
            continue;
          }
          if (p.x.column == 1) {  // channels first
            for (int64_t c = 0; c < s.in_channels; ++c)
              kind.spread(from + c * p.x.channel, l.step[1], last - first, s.in_channels,
                          to + first * s.in_channels + c);
            continue;
          }
          for (int64_t column = first; column < last; ++column, from += l.step[1] * p.x.column)
            kind.line(from, p.x.channel, s.in_channels, to + column * s.in_channels);
        }
      });
  std::memset(frame + lines * values, 0, size_t(l.tail_bytes(conv_codes_kernels().panel)));
}

/// Tasks: blocks of output lines of all images, times shares of the panels of all groups.
struct Cut {
  int64_t lines = 0, line_blocks = 0, panels = 0, panel_blocks = 0;
};
Cut cut_of(const CodeLayout& l, int threads) {
  const CodeConvShape& s = l.s;
  const int64_t lines = l.lines, panels = groups_of_panels(l) * l.panels;
  const int64_t weights = panels * l.panel_bytes(conv_codes_kernels().panel);
  const int64_t line_bytes =
      (l.flat ? l.length * s.in_channels : s.stride[0] * l.line_values()) * l.value_bytes();
  const int64_t tasks = threads > 1 ? kTasksOfThread * threads : 1;
  const bool small = weights <= kSmallWeightBytes;
  const int64_t strip = std::max(kStripBytes, weights / 4);
  Cut c;
  c.lines = std::clamp<int64_t>(strip / std::max<int64_t>(1, line_bytes), 1, lines);
  if (small) c.lines = std::min(c.lines, ceil_div(lines, tasks));
  c.line_blocks = ceil_div(lines, c.lines);
  c.lines = ceil_div(lines, c.line_blocks);
  c.line_blocks = ceil_div(lines, c.lines);
  c.panels = ceil_div(panels, std::min(panels, ceil_div(tasks, c.line_blocks)));
  c.panel_blocks = ceil_div(panels, c.panels);
  return c;
}

class Worker {
 public:
  Worker(const CodeConv& p, const CodeLayout& l, const std::byte* frame)
      : p_(p), l_(l), kernels_(conv_codes_kernels()), frame_(frame) {
    width_ = ceil_div(l.length, ceil_div(l.length, kernels_.rows));
  }

  void run(const Cut& c, int64_t task) const {
    const int64_t lines = l_.lines, panels = groups_of_panels(l_) * l_.panels;
    const int64_t line = task / c.panel_blocks * c.lines, panel = task % c.panel_blocks * c.panels;
    for (int64_t i = panel; i < std::min(panels, panel + c.panels); ++i) {
      for (int64_t j = line; j < std::min(lines, line + c.lines); ++j) row(i, j);
    }
  }

 private:
  void row(int64_t panel, int64_t line) const {
    const CodeConvShape& s = l_.s;
    const int64_t group = panel / l_.panels, column = panel % l_.panels * kernels_.panel;
    const int64_t channel = group * l_.filters + column;
    const int64_t left = (l_.depthwise ? s.out_channels : l_.filters) - column;
    CodeResult result;
    if (p_.exact.multipliers != nullptr) {
      result.exact = {p_.exact.multipliers + channel, p_.exact.start + channel, p_.exact.half_away};
    } else {
      result.mult = p_.mult + channel, result.offset = p_.offset + channel;
    }
    result.columns = int(std::min<int64_t>(kernels_.panel, left));
    result.row_stride = s.out_channels;
    result.dtype = p_.y_dtype, result.zero = p_.y_zero, result.least = p_.least, result.most = p_.most;
    const int64_t image = line / s.out[0], y = line % s.out[0] * s.stride[0], begin = line * l_.length;
    const int64_t first =
        (l_.flat ? begin * s.in_channels : image * l_.image_values() + y * l_.line_values()) +
        (l_.depthwise ? column : group * l_.channels);
    const int64_t count = std::min(l_.length, l_.positions - begin),
                  distance = s.stride[1] * s.in_channels * l_.value_bytes();
    CodeTile tile{.distance = distance, .runs = l_.runs.data(), .run_count = l_.run_count, .steps = l_.steps};
    tile.weights = p_.weights->data() + panel * l_.panel_bytes(kernels_.panel);
    for (int64_t i = 0; i < count; i += width_) {
      result.y = static_cast<std::byte*>(p_.y) +
                 ((begin + i) * s.out_channels + channel) * int64_t(dtype_size(p_.y_dtype));
      tile.x = frame_ + first * l_.value_bytes() + i * distance;
      tile.rows = int(std::min(width_, count - i)), tile.result = result;
      if (l_.quads) {
        kernels_.quad_tile(tile, quad_zero(p_.x));
      } else {
        l_.depthwise ? kernels_.depth_tile(tile) : kernels_.tile(tile);
      }
    }
  }

  const CodeConv& p_;
  const CodeLayout& l_;
  const ConvCodesKernels& kernels_;
  const std::byte* frame_;
  int64_t width_;
};

}  // namespace

size_t PackedCodeWeights::bytes(const CodeLayout& l) {
  if (l.squares) return code_squares_weight_bytes(l);
  return size_t(groups_of_panels(l) * l.panels * l.panel_bytes(conv_codes_kernels().panel));
}

/// A panel of weights: [run][word][column of the panel][values of a word], before it the sums of the columns of quads.
template <class Value>
void pack_panel(const CodeLayout& l, const WeightReader& read, int panel, int64_t i, std::byte* to) {
  constexpr int64_t kWord = 4 / int64_t(sizeof(Value));
  const int64_t group = i / l.panels, column = i % l.panels * panel;
  const int64_t filters = l.depthwise ? l.s.out_channels : l.filters;
  auto* sums = reinterpret_cast<int32_t*>(to);
  auto* at = reinterpret_cast<Value*>(to + (l.quads ? panel * 4 : 0));
  if (l.quads) std::fill_n(sums, panel, 0);
  for (int64_t run = 0; run < l.run_count; ++run) {
    for (int64_t step = 0; step < l.steps; ++step) {
      for (int64_t j = 0; j < panel; ++j) {
        for (int64_t k = 0; k < kWord; ++k, ++at) {
          const bool inside = column + j < filters && (!l.depthwise || k == 0);
          const int w = inside ? read.at(group * l.filters + column + j, run, kWord * step + k) : 0;
          *at = Value(w);
          if (l.quads) sums[j] += w;
        }
      }
    }
  }
}

PackedCodeWeights PackedCodeWeights::pack(Team team, const CodeLayout& l, const Source& w, std::byte* lent) {
  const int panel = conv_codes_kernels().panel;
  PackedCodeWeights out;
  out.bytes_ = PackedMemory(bytes(l), lent);
  std::byte* const to = out.bytes_.get();
  if (l.squares) {
    pack_code_squares(team, l, w, reinterpret_cast<int16_t*>(to));
    return out;
  }
  const WeightReader read{l, w};
  team.parallel_for(groups_of_panels(l) * l.panels, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      std::byte* const at = to + i * l.panel_bytes(panel);
      l.quads ? pack_panel<int8_t>(l, read, panel, i, at) : pack_panel<int16_t>(l, read, panel, i, at);
    }
  });
  return out;
}

PackedCodeWeights PackedCodeWeights::from_bytes(const CodeLayout& l, std::span<const std::byte> from) {
  RLX_CHECK(from.size() == bytes(l), "packed codes have ", bytes(l), " bytes, these are ", from.size());
  PackedCodeWeights out;
  out.bytes_ = PackedMemory(from.size(), nullptr);
  std::memcpy(out.bytes_.get(), from.data(), from.size());
  return out;
}

std::string PackedCodeWeights::form(const CodeLayout& l) {
  const CodeConvShape& s = l.given;
  return cat(s.groups, " groups of ", s.in_channels, "x", s.out_channels, " by ", s.kernel[0], "x",
             s.kernel[1], s.dilation[1] > 1 ? " apart" : "", l.squares ? " squares" : "",
             l.quads ? " quads" : "");
}

size_t conv_codes_workspace(const CodeLayout& l, int threads) {
  return l.frame_bytes(conv_codes_kernels().panel) + (l.squares ? code_squares_workspace(l, threads) : 0);
}

void conv_codes(Team team, const CodeConv& p, std::byte* workspace) {
  const CodeLayout& l = *p.plan;
  if (l.s.batch * l.s.out[0] * l.s.out[1] * l.s.out_channels == 0) return;
  l.quads ? fill_frame<Quads>(team, p, l, workspace) : fill_frame<Pairs>(team, p, l, workspace);
  if (l.squares)
    return conv_code_squares(team, p, l, reinterpret_cast<const int16_t*>(workspace),
                             workspace + l.frame_bytes(conv_codes_kernels().panel));
  const Cut c = cut_of(l, team.threads());
  const Worker worker(p, l, workspace);
  team.parallel_chunks(c.line_blocks * c.panel_blocks, 1,
                       [&](int64_t task, int64_t) { worker.run(c, task); });
}

void max_pool_codes(Team team, const CodePool& p) {
  constexpr int64_t kTaps = 16;  // of a window at a time
  const ConvCodesKernels& kernels = conv_codes_kernels();
  const CodeConvShape& s = p.shape;
  const int64_t c = s.in_channels, work = s.out[1] * c * s.kernel[0] * s.kernel[1];
  team.parallel_for(
      s.batch * s.out[0], std::max<int64_t>(1, 65536 / std::max<int64_t>(1, work)),
      [&](int64_t begin, int64_t end) {
        for (int64_t line = begin; line < end; ++line) {
          const std::byte* image = p.x + line / s.out[0] * s.size[0] * s.size[1] * c;
          const int64_t y0 = line % s.out[0] * s.stride[0] - s.low[0];
          for (int64_t ox = 0; ox < s.out[1]; ++ox) {
            std::byte* to = p.y + (line * s.out[1] + ox) * c;
            const int64_t x0 = ox * s.stride[1] - s.low[1];
            const std::byte* taps[kTaps];
            int64_t count = 0;
            for (int64_t y = std::max<int64_t>(0, y0); y < std::min(s.size[0], y0 + s.kernel[0]); ++y) {
              for (int64_t x = std::max<int64_t>(0, x0); x < std::min(s.size[1], x0 + s.kernel[1]); ++x) {
                taps[count++] = image + (y * s.size[1] + x) * c;
                if (count < kTaps) continue;
                kernels.largest(taps, count, p.dtype, c, to);
                taps[0] = to, count = 1;  // what is found so far is one of the next
              }
            }
            if (count > 1 || taps[0] != to) kernels.largest(taps, count, p.dtype, c, to);
          }
        }
      });
}

// An input row gives maxima of neighbours, and those of the rows of a window are combined.
void max_pool_code_planes(Team team, const CodePool& p) {
  constexpr int64_t kPart = 256;  // outputs of a row at a time
  const ConvCodesKernels& kernels = conv_codes_kernels();
  const CodeConvShape& s = p.shape;
  const int64_t width = s.size[1], planes = s.batch * s.in_channels;
  const auto across = [&](const auto* row, int64_t ox, int64_t n, auto* to) {
    for (int64_t i = 0; i < n; ++i) {
      const int64_t x0 = (ox + i) * s.stride[1] - s.low[1], first = std::max<int64_t>(0, x0);
      auto most = row[first];
      for (int64_t x = first + 1; x < std::min(width, x0 + s.kernel[1]); ++x) most = std::max(most, row[x]);
      to[i] = most;
    }
  };
  const auto across_row = [&](const std::byte* row, int64_t ox, int64_t n, std::byte* to) {
    p.dtype == DType::u8
        ? across(reinterpret_cast<const uint8_t*>(row), ox, n, reinterpret_cast<uint8_t*>(to))
        : across(reinterpret_cast<const int8_t*>(row), ox, n, reinterpret_cast<int8_t*>(to));
  };
  team.parallel_for(planes * s.out[0], std::max<int64_t>(1, 8192 / width), [&](int64_t begin, int64_t end) {
    std::byte part[kPart];
    for (int64_t line = begin; line < end; ++line) {
      const int64_t y0 = line % s.out[0] * s.stride[0] - s.low[0], first = std::max<int64_t>(0, y0);
      const std::byte* plane = p.x + line / s.out[0] * s.size[0] * width;
      for (int64_t ox = 0; ox < s.out[1]; ox += kPart) {
        const int64_t n = std::min(kPart, s.out[1] - ox);
        std::byte* to = p.y + line * s.out[1] + ox;
        across_row(plane + first * width, ox, n, to);
        for (int64_t y = first + 1; y < std::min(s.size[0], y0 + s.kernel[0]); ++y) {
          across_row(plane + y * width, ox, n, part);
          const std::byte* both[] = {to, part};
          kernels.largest(both, 2, p.dtype, n, to);
        }
      }
    }
  });
}

void sum_codes(Team team, const CodeSum& p) {
  constexpr int64_t kGrain = 32768;
  team.parallel_for(ceil_div(p.n, 64), kGrain / 64, [&](int64_t begin, int64_t end) {
    CodeSum part = p;
    part.a += 64 * begin, part.b += 64 * begin, part.y += 64 * begin;
    part.n = std::min(p.n, 64 * end) - 64 * begin;
    conv_codes_kernels().sum(part);
  });
}

}  // namespace rlx::cpu
