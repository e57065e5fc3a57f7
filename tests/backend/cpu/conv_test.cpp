#include "rlx/backend/cpu/kernels/conv/conv.h"

#include <cstring>

#include "rlx/base/error.h"
#include "tests/backend/cpu/support.h"

namespace rlx::cpu {
namespace {

using test::Array;
using test::random_array;

int64_t product(const Extents& e) { return e[0] * e[1] * e[2]; }

// f(index in x, index in w, index in y) for every term of the convolution.
template <class F>
void each_term(const ConvShape& s, F f) {
  const Extents out = s.out();
  const int64_t in = s.in_channels / s.groups, per = s.out_channels / s.groups;
  for (int64_t n = 0; n < s.batch; ++n) {
    for (int64_t co = 0; co < s.out_channels; ++co) {
      for (int64_t o = 0; o < product(out); ++o) {
        const Extents at{o / (out[1] * out[2]), o / out[2] % out[1], o % out[2]};
        for (int64_t k = 0; k < product(s.kernel); ++k) {
          const Extents tap{k / (s.kernel[1] * s.kernel[2]), k / s.kernel[2] % s.kernel[1], k % s.kernel[2]};
          Extents i;
          bool inside = true;
          for (size_t a = 0; a < 3; ++a) {
            i[a] = at[a] * s.stride[a] + tap[a] * s.dilation[a] - s.low[a];
            inside = inside && i[a] >= 0 && i[a] < s.size[a];
          }
          if (!inside) continue;
          for (int64_t ci = 0; ci < in; ++ci) {
            const int64_t plane = n * s.in_channels + co / per * in + ci;
            f(((plane * s.size[0] + i[0]) * s.size[1] + i[1]) * s.size[2] + i[2],
              (co * in + ci) * product(s.kernel) + k, (n * s.out_channels + co) * product(out) + o);
          }
        }
      }
    }
  }
}

// Every kind of geometry: axes, groups, steps, uneven and negative padding, kernels smaller than the stride.
std::vector<ConvShape> shapes() {
  return {
      {.batch = 2,
       .in_channels = 3,
       .out_channels = 5,
       .size = {1, 7, 9},
       .kernel = {1, 3, 3},
       .low = {0, 1, 1},
       .high = {0, 1, 1}},
      {.in_channels = 17,
       .out_channels = 33,
       .size = {1, 10, 13},
       .kernel = {1, 3, 2},
       .stride = {1, 2, 2},
       .low = {0, 1, 0},
       .high = {0, 0, 1}},
      {.in_channels = 4,
       .out_channels = 6,
       .size = {1, 1, 40},
       .kernel = {1, 1, 5},
       .dilation = {1, 1, 3},
       .low = {0, 0, 12}},
      {.batch = 3,
       .groups = 2,
       .in_channels = 4,
       .out_channels = 6,
       .size = {4, 5, 6},
       .kernel = {2, 3, 2},
       .stride = {1, 3, 2},
       .dilation = {2, 1, 1},
       .low = {1, 2, 0},
       .high = {1, 0, 2}},
      {.in_channels = 8, .out_channels = 3, .size = {1, 6, 50}},
      {.in_channels = 5, .out_channels = 4, .size = {1, 9, 9}, .stride = {1, 2, 3}},
      {.in_channels = 3,
       .out_channels = 2,
       .size = {1, 8, 20},
       .kernel = {1, 2, 3},
       .low = {0, -1, -2},
       .high = {0, 1, -3}},
      {.in_channels = 2,
       .out_channels = 2,
       .size = {1, 1, 1},
       .kernel = {1, 1, 1},
       .stride = {1, 1, 2},
       .low = {0, 0, 1}},
      {.batch = 2,
       .groups = 6,
       .in_channels = 6,
       .out_channels = 6,
       .size = {1, 9, 70},
       .kernel = {1, 3, 3},
       .low = {0, 1, 1},
       .high = {0, 1, 1}},
      {.batch = 2,
       .groups = 3,
       .in_channels = 3,
       .out_channels = 6,
       .size = {1, 8, 37},
       .kernel = {1, 3, 5},
       .stride = {1, 2, 2},
       .low = {0, 1, 2},
       .high = {0, 0, 2}},
      {.groups = 4,
       .in_channels = 4,
       .out_channels = 4,
       .size = {1, 1, 61},
       .kernel = {1, 1, 4},
       .stride = {1, 1, 3},
       .dilation = {1, 1, 2},
       .low = {0, 0, 5}},
      {.batch = 0, .in_channels = 2, .out_channels = 3, .size = {1, 4, 4}, .kernel = {1, 2, 2}},
  };
}

struct Case {
  ConvShape shape;
  Array<float> x, w, dy, bias;
  std::vector<double> y, dx, dw;
};

const std::vector<Case>& cases() {
  static const std::vector<Case> made = [] {
    std::vector<Case> out;
    for (const ConvShape& s : shapes()) {
      const int64_t nx = s.batch * s.in_channels * product(s.size);
      const int64_t nw = s.out_channels * s.in_channels / s.groups * product(s.kernel);
      const int64_t ny = s.batch * s.out_channels * product(s.out());
      Case c{s,
             random_array(nx, 1, -1, 1, 1),
             random_array(nw, 2, -1, 1, 3),
             random_array(ny, 3, -1, 1, 1),
             random_array(s.out_channels, 4),
             std::vector<double>(size_t(ny)),
             std::vector<double>(size_t(nx)),
             std::vector<double>(size_t(nw))};
      for (int64_t i = 0; i < ny; ++i) c.y[size_t(i)] = double(c.bias[i / product(s.out()) % s.out_channels]);
      each_term(s, [&](int64_t x, int64_t w, int64_t y) {
        c.y[size_t(y)] += double(c.x[x]) * double(c.w[w]);
        c.dx[size_t(x)] += double(c.dy[y]) * double(c.w[w]);
        c.dw[size_t(w)] += double(c.x[x]) * double(c.dy[y]);
      });
      out.push_back(std::move(c));
    }
    return out;
  }();
  return made;
}

Array<float> run(Team team, const Case& c, ConvPass pass, int64_t size) {
  const ConvPlan plan(c.shape, pass);
  std::unique_ptr<PackedConvWeights> weights;
  if (pass != ConvPass::backward_weights) {
    weights = std::make_unique<PackedConvWeights>(plan);
    weights->pack(team, c.w.data());
  }
  Array<float> out(size, 3);
  for (int64_t i = 0; i < size; ++i) out[i] = 7;
  const Conv p{.plan = &plan,
               .weights = weights.get(),
               .x = c.x.data(),
               .dy = c.dy.data(),
               .bias = pass == ConvPass::forward ? c.bias.data() : nullptr,
               .out = out.data()};
  const AlignedBytes workspace = allocate_aligned(conv_workspace(p, team.threads()));
  conv(team, p, workspace.get());
  return out;
}

// n products of numbers below 1, each rounded, summed one after the other.
double bound(int64_t terms) {
  return 0x1p-24 * (2 + 2 * std::sqrt(double(terms)) * 4) * std::sqrt(double(terms) + 1);
}

TEST(Conv, forward_agrees_with_a_plain_loop) {
  test::at_every_level([](Team team) {
    for (size_t i = 0; i < cases().size(); ++i) {
      SCOPED_TRACE("shape " + std::to_string(i));
      const Case& c = cases()[i];
      const Array<float> y = run(team, c, ConvPass::forward, int64_t(c.y.size()));
      const int64_t terms = c.shape.in_channels / c.shape.groups * product(c.shape.kernel);
      test::expect_near(y.data(), c.y.data(), y.size(), bound(terms), "y");
    }
  });
}

TEST(Conv, gradient_of_the_input_agrees_with_a_plain_loop) {
  test::at_every_level([](Team team) {
    for (size_t i = 0; i < cases().size(); ++i) {
      SCOPED_TRACE("shape " + std::to_string(i));
      const Case& c = cases()[i];
      const Array<float> dx = run(team, c, ConvPass::backward_data, int64_t(c.dx.size()));
      const int64_t terms = c.shape.out_channels / c.shape.groups * product(c.shape.kernel);
      test::expect_near(dx.data(), c.dx.data(), dx.size(), bound(terms), "dx");
    }
  });
}

TEST(Conv, gradient_of_the_weights_agrees_with_a_plain_loop) {
  test::at_every_level([](Team team) {
    for (size_t i = 0; i < cases().size(); ++i) {
      SCOPED_TRACE("shape " + std::to_string(i));
      const Case& c = cases()[i];
      const Array<float> dw = run(team, c, ConvPass::backward_weights, int64_t(c.dw.size()));
      test::expect_near(dw.data(), c.dw.data(), dw.size(), bound(c.shape.batch * product(c.shape.out())),
                        "dw");
    }
  });
}

// Whole numbers: every sum is exact, in whatever order.
Case whole_numbers(const ConvShape& s) {
  const int64_t nx = s.batch * s.in_channels * product(s.size);
  const int64_t nw = s.out_channels * s.in_channels / s.groups * product(s.kernel);
  const int64_t ny = s.batch * s.out_channels * product(s.out());
  Case c{s,
         Array<float>(nx, 1),
         Array<float>(nw, 3),
         Array<float>(ny, 1),
         Array<float>(s.out_channels),
         std::vector<double>(size_t(ny)),
         std::vector<double>(size_t(nx)),
         std::vector<double>(size_t(nw))};
  for (int64_t i = 0; i < c.x.size(); ++i) c.x[i] = float(i * 7 % 5 - 2);
  for (int64_t i = 0; i < c.w.size(); ++i) c.w[i] = float(i * 3 % 7 - 3);
  for (int64_t i = 0; i < c.dy.size(); ++i) c.dy[i] = float(i * 5 % 3 - 1);
  each_term(s, [&](int64_t x, int64_t w, int64_t y) {
    c.y[size_t(y)] += double(c.x[x]) * double(c.w[w]);
    c.dx[size_t(x)] += double(c.dy[y]) * double(c.w[w]);
    c.dw[size_t(w)] += double(c.x[x]) * double(c.dy[y]);
  });
  return c;
}

void expect_exact(const Case& c) {
  test::at_every_level([&](Team team) {
    const Array<float> y = run(team, c, ConvPass::forward, int64_t(c.y.size()));
    const Array<float> dx = run(team, c, ConvPass::backward_data, int64_t(c.dx.size()));
    const Array<float> dw = run(team, c, ConvPass::backward_weights, int64_t(c.dw.size()));
    test::expect_near(y.data(), c.y.data(), y.size(), 0, "y");
    test::expect_near(dx.data(), c.dx.data(), dx.size(), 0, "dx");
    test::expect_near(dw.data(), c.dw.data(), dw.size(), 0, "dw");
  });
}

ConvShape square(int64_t in, int64_t out, int64_t height, int64_t width, int64_t kernel) {
  return {.in_channels = in,
          .out_channels = out,
          .size = {1, height, width},
          .kernel = {1, kernel, kernel},
          .low = {0, kernel / 2, kernel / 2},
          .high = {0, kernel / 2, kernel / 2}};
}

// More positions than a slice and more rows than a block.
TEST(Conv, large_shapes_are_exact_on_whole_numbers) {
  ConvShape s = square(20, 70, 30, 33, 3);
  s.batch = 2;
  expect_exact(whole_numbers(s));
}

// Rows of one and of several tiles, panels of four, two and one vectors, an uneven rest of channels.
TEST(Conv, tiles_of_every_width_and_panel_are_exact) {
  for (int64_t width = 1; width <= 15; ++width) expect_exact(whole_numbers(square(9, 56, 3, width, 3)));
  expect_exact(whole_numbers(square(16, 121, 7, 7, 3)));
  expect_exact(whole_numbers(square(16, 32, 3, 56, 3)));
}

// Weights of more channels than stay in a cache are taken in blocks, long rows in parts.
TEST(Conv, blocks_of_channels_and_of_columns_are_exact) {
  expect_exact(whole_numbers(square(330, 40, 5, 6, 3)));
  ConvShape s = square(24, 17, 1, 2900, 1);
  s.kernel[2] = 5, s.low[2] = 4;
  expect_exact(whole_numbers(s));
}

// Squares of 2 x 2 outputs: odd ends, no padding, cut images, several blocks and groups.
TEST(Conv, squares_are_exact_on_whole_numbers) {
  expect_exact(whole_numbers(square(16, 16, 17, 19, 3)));
  expect_exact(whole_numbers(square(18, 23, 6, 150, 3)));
  ConvShape s = square(40, 50, 13, 12, 3);
  s.batch = 3, s.groups = 2, s.low = {0, 0, 2}, s.high = {0, -1, 1};
  expect_exact(whole_numbers(s));
  s = square(96, 130, 14, 14, 3);
  s.batch = 2;
  expect_exact(whole_numbers(s));
}

// Sums of transformed numbers: within three times the bound of plain sums.
TEST(Conv, squares_round_little_more_than_plain_sums) {
  const ConvShape s = square(64, 24, 16, 18, 3);
  const Array<float> x = random_array(64 * 16 * 18, 1, -1, 1, 1), w = random_array(24 * 64 * 9, 2, -1, 1, 3);
  std::vector<double> want(24 * 16 * 18);
  each_term(s, [&](int64_t i, int64_t k, int64_t y) { want[size_t(y)] += double(x[i]) * double(w[k]); });
  test::at_every_level([&](Team team) {
    const Case c{s, x, w, Array<float>(0), Array<float>(24), want, {}, {}};
    const Array<float> y = run(team, c, ConvPass::forward, int64_t(want.size()));
    test::expect_near(y.data(), want.data(), y.size(), 3 * bound(64 * 9), "y");
  });
}

TEST(Conv, residuals_and_relu_are_applied_on_the_way_out) {
  std::vector<ConvShape> all = {square(16, 20, 17, 19, 3), square(9, 56, 3, 7, 3), square(24, 33, 9, 50, 1)};
  all.push_back(square(9, 20, 11, 13, 3));
  all.back().stride = {1, 2, 2};
  for (const ConvShape& s : all) {
    Case c = whole_numbers(s);
    const int64_t n = int64_t(c.y.size());
    Array<float> residual(n, 1);
    for (int64_t i = 0; i < n; ++i) residual[i] = float(i * 11 % 13 - 6);
    for (const bool relu : {false, true}) {
      std::vector<double> want(c.y);
      for (int64_t i = 0; i < n; ++i) {
        want[size_t(i)] += double(residual[i]);
        if (relu) want[size_t(i)] = std::max(0.0, want[size_t(i)]);
      }
      test::at_every_level([&](Team team) {
        const ConvPlan plan(s, ConvPass::forward);
        if (!conv_finishes(plan)) return;
        PackedConvWeights weights(plan);
        weights.pack(team, c.w.data());
        Array<float> y(n, 3);
        const Conv p{.plan = &plan,
                     .weights = &weights,
                     .x = c.x.data(),
                     .residual = residual.data(),
                     .relu = relu,
                     .out = y.data()};
        const AlignedBytes workspace = allocate_aligned(conv_workspace(p, team.threads()));
        conv(team, p, workspace.get());
        test::expect_near(y.data(), want.data(), n, 0, "y");
      });
    }
  }
}

// Chunks of rows; planes of dy that share sets of a cache and are copied; more taps than lanes.
TEST(Conv, gradients_of_weights_over_chunks_and_many_taps_are_exact) {
  expect_exact(whole_numbers(square(16, 8, 120, 70, 3)));
  ConvShape s = square(17, 20, 16, 32, 3);
  s.batch = 2;
  expect_exact(whole_numbers(s));
  expect_exact(whole_numbers(square(20, 15, 9, 9, 5)));
}

// Square kernels of every size, planes narrower and wider than a vector, one and two results a channel.
TEST(Conv, depthwise_planes_are_exact) {
  for (const int64_t kernel : {3, 5, 7, 9}) {
    for (const int64_t width : {1, 3, 16, 21, 56}) {
      ConvShape s = square(2, 2, width == 3 ? 17 : 9, width, kernel);
      s.batch = 2, s.groups = 2;
      expect_exact(whole_numbers(s));
      s.out_channels = 4, s.low = {0, 2, -1}, s.high = {0, kernel, kernel + 3};
      expect_exact(whole_numbers(s));
    }
  }
}

// Lanes and rows that are masked off must not bring in what lies beside a plane.
TEST(Conv, depthwise_planes_keep_nan_and_infinity_of_others_away) {
  ConvShape s = square(3, 3, 5, 18, 3);
  s.groups = 3;
  Case c = whole_numbers(s);
  for (int64_t i = 0; i < 90; ++i)
    c.x[i] = c.x[180 + i] = c.dy[i] = c.dy[180 + i] = (i % 2 == 0 ? INFINITY : NAN);
  test::at_every_level([&](Team team) {
    const Array<float> y = run(team, c, ConvPass::forward, 270),
                       dx = run(team, c, ConvPass::backward_data, 270);
    const Array<float> dw = run(team, c, ConvPass::backward_weights, 27);
    test::expect_near(y.data() + 90, c.y.data() + 90, 90, 0, "y");
    test::expect_near(dx.data() + 90, c.dx.data() + 90, 90, 0, "dx");
    test::expect_near(dw.data() + 9, c.dw.data() + 9, 9, 0, "dw");
  });
}

TEST(Conv, steps_depths_groups_and_wide_padding_are_exact) {
  const ConvShape deep{.batch = 2,
                       .groups = 2,
                       .in_channels = 10,
                       .out_channels = 72,
                       .size = {4, 6, 15},
                       .kernel = {3, 3, 3},
                       .low = {1, 1, 1},
                       .high = {1, 1, 1}};
  expect_exact(whole_numbers(deep));
  ConvShape stepped = deep;
  stepped.stride = {2, 2, 2};
  expect_exact(whole_numbers(stepped));
  ConvShape wide = square(18, 33, 6, 19, 1);
  wide.kernel = {1, 2, 4}, wide.dilation = {1, 3, 4}, wide.low = {0, 4, 11}, wide.high = {0, -1, 9};
  expect_exact(whole_numbers(wide));
  wide.low = {0, -1, -2}, wide.high = {0, 2, -1}, wide.dilation = {1, 1, 2};
  expect_exact(whole_numbers(wide));
  wide.size = {1, 3, 2}, wide.low = {0, -4, -5}, wide.high = {0, 6, 40};  // nothing of x is inside
  expect_exact(whole_numbers(wide));
}

TEST(Conv, threads_do_not_change_bits) {
  Pool one(1), three(3);
  std::vector<Case> all = cases();
  for (const ConvShape& s : {square(40, 72, 14, 14, 3), square(330, 40, 5, 6, 3), square(64, 96, 6, 40, 1)}) {
    Case c = whole_numbers(s);
    c.x = random_array(c.x.size(), 1), c.w = random_array(c.w.size(), 2), c.dy = random_array(c.dy.size(), 3);
    all.push_back(std::move(c));
  }
  for (const Case& c : all) {
    for (const ConvPass pass : {ConvPass::forward, ConvPass::backward_data, ConvPass::backward_weights}) {
      const int64_t size = pass == ConvPass::forward         ? int64_t(c.y.size())
                           : pass == ConvPass::backward_data ? int64_t(c.dx.size())
                                                             : int64_t(c.dw.size());
      const Array<float> a = run(Team(one), c, pass, size), b = run(Team(three), c, pass, size);
      ASSERT_EQ(std::memcmp(a.data(), b.data(), size_t(size) * 4), 0);
    }
  }
}

TEST(Conv, padding_keeps_nan_and_infinity_away) {
  const ConvShape s{.in_channels = 1,
                    .out_channels = 1,
                    .size = {1, 1, 20},
                    .kernel = {1, 1, 3},
                    .low = {0, 0, 1},
                    .high = {0, 0, 1}};
  Case c{s, random_array(20, 1), random_array(3, 2), random_array(20, 3), Array<float>(1), {}, {}, {}};
  c.x[5] = INFINITY;
  test::at_every_level([&](Team team) {
    const Array<float> y = run(team, c, ConvPass::forward, 20);
    for (int64_t i = 0; i < 20; ++i) ASSERT_EQ(std::isfinite(y[i]), i < 4 || i > 6) << i;
  });
}

TEST(Conv, refuses_shapes_that_do_not_fit) {
  const auto plan = [](const ConvShape& s) { return ConvPlan(s, ConvPass::forward); };
  EXPECT_THROW(plan({.groups = 2, .in_channels = 3, .out_channels = 2}), Error);
  EXPECT_THROW(plan({.size = {1, 1, 4}, .kernel = {1, 1, 3}, .dilation = {1, 1, 2}}), Error);
  EXPECT_THROW(plan({.stride = {1, 1, 0}}), Error);
}

}  // namespace
}  // namespace rlx::cpu
