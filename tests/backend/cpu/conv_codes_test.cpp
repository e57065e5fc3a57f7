#include "rlx/backend/cpu/kernels/conv/conv_codes.h"

#include <limits>

#include "tests/backend/cpu/support.h"

namespace rlx::cpu {
namespace {

using test::Array;
using Pair = CodeConvShape::Pair;

Array<int8_t> random_codes(int64_t n, uint64_t seed) {
  Array<int8_t> out(n, 1);
  for (int64_t i = 0; i < n; ++i)
    out[i] = int8_t(philox_block(seed, 0, uint64_t(i / 4))[size_t(i % 4)] >> 13);
  return out;
}
int code(DType t, int8_t bits) { return t == DType::u8 ? int(uint8_t(bits)) : int(bits); }

CodeConvShape image(int64_t in, int64_t out, Pair size, Pair kernel, Pair stride = {1, 1}, Pair low = {0, 0},
                    Pair high = {0, 0}, Pair dilation = {1, 1}, int64_t groups = 1) {
  CodeConvShape s{.batch = 2, .groups = groups, .in_channels = in, .out_channels = out};
  s.size = size, s.kernel = kernel, s.stride = stride, s.low = low, s.dilation = dilation;
  for (size_t a = 0; a < 2; ++a)
    s.out[a] = (size[a] + low[a] + high[a] - dilation[a] * (kernel[a] - 1) - 1) / stride[a] + 1;
  return s;
}

struct Case {
  CodeConvShape shape;
  DType x = DType::u8, w = DType::i8, y = DType::u8;
  int32_t x_zero = 120, w_zero = 0, y_zero = 7;
  bool planes = false;  // x has its channels first
};

struct Data {
  Array<int8_t> x{0}, w{0};
  Array<float> mult{0}, offset{0};
  std::vector<double> sums;  // exact
};

Data make(const Case& c) {
  const CodeConvShape& s = c.shape;
  const int64_t part = s.in_channels / s.groups, per = s.out_channels / s.groups;
  Data d;
  d.x = random_codes(s.batch * s.size[0] * s.size[1] * s.in_channels, 1);
  d.w = random_codes(s.out_channels * part * s.kernel[0] * s.kernel[1], 2);
  d.mult = test::random_array(s.out_channels, 3, 1e-4f, 4e-3f, 1);
  d.offset = test::random_array(s.out_channels, 4, -20, 20, 3);
  for (int64_t n = 0; n < s.batch; ++n) {
    for (int64_t o = 0; o < s.out[0] * s.out[1]; ++o) {
      for (int64_t co = 0; co < s.out_channels; ++co) {
        double sum = 0;
        for (int64_t ky = 0; ky < s.kernel[0]; ++ky) {
          for (int64_t kx = 0; kx < s.kernel[1]; ++kx) {
            const int64_t y = o / s.out[1] * s.stride[0] + ky * s.dilation[0] - s.low[0];
            const int64_t x = o % s.out[1] * s.stride[1] + kx * s.dilation[1] - s.low[1];
            if (y < 0 || y >= s.size[0] || x < 0 || x >= s.size[1]) continue;
            for (int64_t ci = 0; ci < part; ++ci) {
              const int64_t ch = co / per * part + ci, place = y * s.size[1] + x,
                            area = s.size[0] * s.size[1];
              const int64_t at = c.planes ? (n * s.in_channels + ch) * area + place
                                          : (n * area + place) * s.in_channels + ch;
              const int64_t k = ((co * part + ci) * s.kernel[0] + ky) * s.kernel[1] + kx;
              sum += double(code(c.x, d.x[at]) - c.x_zero) * (code(c.w, d.w[k]) - c.w_zero);
            }
          }
        }
        d.sums.push_back(sum);
      }
    }
  }
  return d;
}

template <class Out>
Array<Out> run(Team team, const Case& c, const Data& d, float least, float most) {
  const CodeConvShape& s = c.shape;
  const int64_t part = s.in_channels / s.groups, taps = s.kernel[0] * s.kernel[1];
  const auto plan = plan_conv_codes(s, {c.x, c.x_zero}, {c.w, c.w_zero});
  const PackedCodeWeights weights = PackedCodeWeights::pack(
      team, *plan,
      {reinterpret_cast<const std::byte*>(d.w.data()), c.w, c.w_zero, part * taps, taps, s.kernel[1], 1});
  Array<Out> y(int64_t(d.sums.size()), 1);
  CodeConv p{.plan = plan.get(),
             .weights = &weights,
             .mult = d.mult.data(),
             .offset = d.offset.data(),
             .y = y.data()};
  const int64_t area = s.size[0] * s.size[1];
  p.x = {reinterpret_cast<const std::byte*>(d.x.data()), c.x, c.x_zero, area * s.in_channels};
  p.x.row = c.planes ? s.size[1] : s.size[1] * s.in_channels, p.x.column = c.planes ? 1 : s.in_channels;
  p.x.channel = c.planes ? area : 1;
  p.y_dtype = c.y, p.y_zero = c.y_zero, p.least = least, p.most = most;
  const AlignedBytes workspace = allocate_aligned(conv_codes_workspace(*plan, team.threads()));
  conv_codes(team, p, workspace.get());
  return y;
}

// Numbers from exact sums by one multiply-add; a code may be off by one where a number lies next to a half.
void expect_codes(const Case& c) {
  const Data d = make(c);
  test::at_every_level([&](Team team) {
    constexpr float kAll = std::numeric_limits<float>::infinity();
    Case real = c;
    real.y = DType::f32;
    const Array<float> numbers = run<float>(team, real, d, -kAll, kAll);
    const float low = c.y == DType::i8 ? -128 : 0, high = low + 255;
    const Array<int8_t> codes = run<int8_t>(team, c, d, low - float(c.y_zero), high - float(c.y_zero));
    for (int64_t i = 0; i < numbers.size(); ++i) {
      const int64_t channel = i % c.shape.out_channels;
      const double want = d.sums[size_t(i)] * double(d.mult[channel]) + double(d.offset[channel]);
      ASSERT_NEAR(double(numbers[i]), want, 1e-6 * (std::fabs(want) + 30)) << i;
      const double v = std::clamp<double>(std::nearbyint(double(numbers[i])) + c.y_zero, low, high);
      ASSERT_EQ(code(c.y, codes[i]), int(v)) << i << ": " << numbers[i];
    }
  });
}

TEST(ConvCodes, kernels_of_every_size_and_step) {
  expect_codes({image(16, 33, {7, 9}, {3, 3}, {1, 1}, {1, 1}, {1, 1})});
  expect_codes({image(3, 20, {17, 19}, {7, 7}, {2, 2}, {3, 3}, {3, 3})});
  expect_codes({image(5, 16, {9, 8}, {1, 1}, {2, 2})});
  expect_codes({image(4, 8, {6, 11}, {2, 3}, {1, 2}, {1, 0}, {0, 2})});
  expect_codes({image(6, 40, {9, 9}, {3, 3}, {1, 1}, {2, 2}, {2, 2}, {2, 2})});
  expect_codes({image(2, 3, {5, 5}, {3, 2}, {2, 1}, {-1, 1}, {0, 0}, {1, 2})});
}

TEST(ConvCodes, types_zero_points_and_channels_first) {
  struct Kinds {
    DType x, w;
    int x_zero, w_zero;
  };
  // Weights that fit i8 less their zero point and others; a zero point that is no code.
  constexpr Kinds kAll[] = {{DType::u8, DType::u8, 255, 128}, {DType::u8, DType::u8, 9, 7},
                            {DType::i8, DType::i8, -128, 3},  {DType::i8, DType::i8, 127, 0},
                            {DType::u8, DType::i8, 130, 0},   {DType::u8, DType::i8, -2, 0}};
  for (const Kinds& k : kAll) {
    for (const bool planes : {false, true}) {
      Case c{image(10, 18, {6, 7}, {3, 3}, {1, 1}, {1, 1}, {1, 1}), k.x, k.w, k.x};
      c.x_zero = k.x_zero, c.w_zero = k.w_zero, c.planes = planes;
      expect_codes(c);
    }
  }
}

TEST(ConvCodes, groups_and_depthwise) {
  expect_codes({image(6, 9, {5, 6}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}, 3)});
  expect_codes({image(37, 37, {9, 15}, {3, 3}, {2, 2}, {1, 1}, {1, 1}, {1, 1}, 37)});
  expect_codes({image(4, 8, {5, 5}, {3, 3}, {1, 1}, {0, 0}, {0, 0}, {1, 1}, 4)});
  expect_codes({image(16, 16, {1, 31}, {1, 5}, {1, 1}, {0, 2}, {0, 2}, {1, 1}, 16)});
}

TEST(ConvCodes, products_of_matrices) {
  for (const int64_t rows : {1, 2, 61, 300}) {
    CodeConvShape s{.in_channels = 45, .out_channels = 70};
    s.size[1] = s.out[1] = rows;
    expect_codes({s});
  }
}

// Images and weights that are cut in several ways.
TEST(ConvCodes, large_shapes) {
  expect_codes({image(64, 80, {30, 33}, {3, 3}, {1, 1}, {1, 1}, {1, 1})});
  expect_codes({image(130, 96, {8, 7}, {3, 3}, {1, 1}, {1, 1}, {1, 1})});
}

// Codes by multipliers in f64, halves both ways: many sums lie on a half.
TEST(ConvCodes, exact_codes_round_once) {
  std::vector<CodeConvShape> all = {image(7, 19, {5, 6}, {3, 3}, {1, 1}, {1, 1}, {1, 1})};
  all.push_back(image(32, 40, {9, 12}, {3, 3}, {1, 1}, {1, 1}, {1, 1}));  // by squares
  for (const CodeConvShape& s : all) {
    for (const bool away : {false, true}) {
      Case c{s, DType::i8, DType::i8, DType::i8, 5, 0, -3};
      const Data d = make(c);
      std::vector<double> multipliers;
      std::vector<int32_t> start;
      for (int64_t i = 0; i < s.out_channels; ++i) {
        multipliers.push_back(i % 3 == 0 ? 1.0 / 1024 : 0.0007 + 1e-5 * double(i));
        start.push_back(int32_t(i * 211 - 1500));
      }
      test::at_every_level([&](Team team) {
        const auto plan = plan_conv_codes(s, {c.x, c.x_zero}, {c.w, c.w_zero});
        const PackedCodeWeights weights = PackedCodeWeights::pack(
            team, *plan,
            {reinterpret_cast<const std::byte*>(d.w.data()), c.w, c.w_zero, s.in_channels * 9, 9, 3, 1});
        Array<int8_t> y(int64_t(d.sums.size()), 1);
        CodeConv p{
            .plan = plan.get(), .weights = &weights, .y = y.data(), .y_dtype = c.y, .y_zero = c.y_zero};
        p.x = {reinterpret_cast<const std::byte*>(d.x.data()),
               c.x,
               c.x_zero,
               s.size[0] * s.size[1] * s.in_channels,
               s.size[1] * s.in_channels,
               s.in_channels,
               1};
        p.least = -125, p.most = 130;
        p.exact = {multipliers.data(), start.data(), away};
        const AlignedBytes workspace = allocate_aligned(conv_codes_workspace(*plan, team.threads()));
        conv_codes(team, p, workspace.get());
        for (int64_t i = 0; i < y.size(); ++i) {
          const auto channel = size_t(i % s.out_channels);
          const double v = (d.sums[size_t(i)] + start[channel]) * multipliers[channel];
          const double whole = away ? std::round(v) : std::nearbyint(v);
          ASSERT_EQ(int(y[i]), int(std::clamp(whole, -125.0, 130.0)) + c.y_zero) << i << ": " << v;
        }
      });
    }
  }
}

TEST(ConvCodes, sums_of_two) {
  for (const int64_t n : {1, 15, 16, 33, 100000}) {
    const Array<int8_t> a = random_codes(n, 7), b = random_codes(n, 8);
    for (const DType ta : {DType::u8, DType::i8}) {
      for (const DType tb : {DType::u8, DType::i8}) {
        test::at_every_level([&](Team team) {
          Array<int8_t> y(n, 1);
          CodeSum p{
              .n = n, .a_dtype = ta, .b_dtype = tb, .a_mult = 0.375f, .b_mult = -0.5f, .offset = 20.25f};
          p.a = reinterpret_cast<const std::byte*>(a.data()),
          p.b = reinterpret_cast<const std::byte*>(b.data());
          p.least = -100, p.most = 90, p.zero = 9, p.y = reinterpret_cast<std::byte*>(y.data());
          sum_codes(team, p);
          for (int64_t i = 0; i < n; ++i) {
            const double v = 0.375 * code(ta, a[i]) - 0.5 * code(tb, b[i]) + 20.25;  // exact in f32
            ASSERT_EQ(int(y[i]), int(std::nearbyint(std::clamp(v, -100.0, 90.0))) + 9) << i;
          }
        });
      }
    }
  }
}

// More places than are looked at together, and images smaller than a window.
TEST(ConvCodes, extremes_of_large_windows) {
  const CodeConvShape s = image(40, 40, {6, 7}, {5, 6}, {1, 1}, {4, 5}, {4, 5});
  const Array<int8_t> x = random_codes(s.batch * 42 * 40, 6);
  test::at_every_level([&](Team team) {
    Array<int8_t> y(s.batch * s.out[0] * s.out[1] * 40, 1);
    max_pool_codes(team, {s, DType::u8, reinterpret_cast<const std::byte*>(x.data()),
                          reinterpret_cast<std::byte*>(y.data())});
    for (int64_t i = 0; i < y.size(); ++i) {
      const int64_t c = i % 40, ox = i / 40 % s.out[1], oy = i / 40 / s.out[1] % s.out[0];
      const int64_t n = i / 40 / s.out[1] / s.out[0];
      int want = -1;
      for (int64_t k = 0; k < 30; ++k) {
        const int64_t iy = oy + k / 6 - 4, ix = ox + k % 6 - 5;
        if (iy < 0 || iy >= 6 || ix < 0 || ix >= 7) continue;
        want = std::max(want, code(DType::u8, x[((n * 6 + iy) * 7 + ix) * 40 + c]));
      }
      ASSERT_EQ(code(DType::u8, y[i]), want) << i;
    }
  });
}

TEST(ConvCodes, extremes_of_windows) {
  for (const DType t : {DType::u8, DType::i8}) {
    const CodeConvShape s = image(37, 37, {9, 8}, {3, 3}, {2, 2}, {1, 1}, {1, 1});
    const Array<int8_t> x = random_codes(s.batch * 72 * 37, 5);
    test::at_every_level([&](Team team) {
      Array<int8_t> y(s.batch * s.out[0] * s.out[1] * 37, 1);
      max_pool_codes(
          team, {s, t, reinterpret_cast<const std::byte*>(x.data()), reinterpret_cast<std::byte*>(y.data())});
      for (int64_t i = 0; i < y.size(); ++i) {
        const int64_t c = i % 37, ox = i / 37 % s.out[1], oy = i / 37 / s.out[1] % s.out[0],
                      n = i / 37 / s.out[1] / s.out[0];
        int want = -1000;
        for (int64_t k = 0; k < 9; ++k) {
          const int64_t iy = oy * 2 + k / 3 - 1, ix = ox * 2 + k % 3 - 1;
          if (iy < 0 || iy >= 9 || ix < 0 || ix >= 8) continue;
          want = std::max(want, code(t, x[((n * 9 + iy) * 8 + ix) * 37 + c]));
        }
        ASSERT_EQ(code(t, y[i]), want) << i;
      }
      // The same numbers with channels first.
      const auto turned = [&](const Array<int8_t>& from, int64_t places) {
        Array<int8_t> out(from.size(), 1);
        for (int64_t i = 0; i < from.size(); ++i) {
          const int64_t c = i % 37, at = i / 37 % places, n = i / 37 / places;
          out[(n * 37 + c) * places + at] = from[i];
        }
        return out;
      };
      const Array<int8_t> planes = turned(x, 72), want = turned(y, s.out[0] * s.out[1]);
      Array<int8_t> got(want.size(), 3);
      max_pool_code_planes(team, {s, t, reinterpret_cast<const std::byte*>(planes.data()),
                                  reinterpret_cast<std::byte*>(got.data())});
      for (int64_t i = 0; i < want.size(); ++i) ASSERT_EQ(got[i], want[i]) << i;
    });
  }
}

}  // namespace
}  // namespace rlx::cpu
