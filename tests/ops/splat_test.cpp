#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "rlx/ir/sample.h"
#include "rlx/ops/splat/render.h"
#include "tests/support/compare.h"
#include "tests/support/evaluate.h"

namespace rlx::ops {
namespace {

using test::evaluate, test::expect_close;

Literal reals(Dims dims, const std::vector<double>& values) { return Literal::of<double>(dims, values); }

// Looks from z = -3 along +z with a vertical field of 90 degrees; background 0.2 0.4 0.6.
const Literal kCamera = reals({15}, {0, 0, -3, 0, 0, 0, 0, 1, 0, 90, 0.1, 100, 0.2, 0.4, 0.6});

struct Scene {
  std::vector<double> positions, scales, rotations, logits, colors, sh;

  void add(std::array<double, 3> at, std::array<double, 3> scale, std::array<double, 4> q, double logit,
           std::array<double, 3> color) {
    positions.insert(positions.end(), at.begin(), at.end());
    scales.insert(scales.end(), scale.begin(), scale.end());
    rotations.insert(rotations.end(), q.begin(), q.end());
    logits.push_back(logit);
    colors.insert(colors.end(), color.begin(), color.end());
  }
  Literals operands(const Literal& camera = kCamera) const {
    const auto n = int64_t(logits.size());
    const int64_t k = n == 0 ? 0 : int64_t(sh.size()) / (3 * n);
    return {reals({n, 3}, positions),
            reals({n, 3}, scales),
            reals({n, 4}, rotations),
            reals({n}, logits),
            reals({n, 3}, colors),
            reals({n, k, 3}, sh),
            camera};
  }
};

SplatInputs inputs(const Exprs& t) { return {t[0], t[1], t[2], t[3], t[4], t[5], t[6]}; }

Literals render(const Scene& s, const SplatParams& p) {
  return evaluate(s.operands(), [&](const Exprs& t) {
    const auto y = gaussian_splat_render(inputs(t), p);
    return Exprs{y.rgba, y.dropped, y.stopped};
  });
}

const std::array<double, 4> kUpright{1, 0, 0, 0};
const std::array<double, 3> kSmall{-2, -2, -2};

TEST(GaussianSplat, opacities_are_logits_and_colours_are_linear) {
  Scene s;
  s.add({0, 0, 0}, kSmall, kUpright, std::log(3), {1, 0.5, 0});
  const auto y = render(s, {.width = 1, .height = 1});
  expect_close(y[0], reals({1, 1, 4}, {0.75 + 0.25 * 0.2, 0.375 + 0.25 * 0.4, 0.25 * 0.6, 0.75}), 1e-12);
}

TEST(GaussianSplat, an_empty_pixel_is_the_background_with_alpha_zero) {
  const auto y = render({}, {.width = 2, .height = 1});
  expect_close(y[0], reals({1, 2, 4}, {0.2, 0.4, 0.6, 0, 0.2, 0.4, 0.6, 0}), 0);
}

TEST(GaussianSplat, quaternions_are_wxyz_and_need_not_be_unit) {
  Scene along_x, turned;
  along_x.add({0, 0, 0}, {-0.5, -3, -3}, kUpright, 2, {1, 1, 1});
  turned.add({0, 0, 0}, {-0.5, -3, -3}, {2, 0, 0, 2}, 2, {1, 1, 1});  // by 90 degrees about z
  const SplatParams p{.width = 5, .height = 5};
  const auto a = render(along_x, p)[0], b = render(turned, p)[0];
  const auto alpha = [](const Literal& y, int64_t row, int64_t column) {
    return y.real_at((row * 5 + column) * 4 + 3);
  };
  EXPECT_GT(alpha(a, 2, 3), 0.3);
  EXPECT_EQ(alpha(a, 3, 2), 0);
  EXPECT_NEAR(alpha(b, 3, 2), alpha(a, 2, 3), 1e-12);
  EXPECT_EQ(alpha(b, 2, 3), 0);
}

TEST(GaussianSplat, rows_go_along_the_camera_up_and_columns_along_its_right) {
  Scene s;
  s.add({2, 0, 0}, kSmall, kUpright, 3, {1, 1, 1});
  s.add({0, 2, 0}, kSmall, kUpright, 3, {1, 1, 1});
  const auto y = render(s, {.width = 3, .height = 3})[0];
  EXPECT_GT(y.real_at((1 * 3 + 2) * 4 + 3), 0.9);  // up x forward = +x
  EXPECT_GT(y.real_at((2 * 3 + 1) * 4 + 3), 0.9);
  EXPECT_EQ(y.real_at((1 * 3 + 0) * 4 + 3), 0);
}

TEST(GaussianSplat, the_nearer_splat_hides_the_farther_whatever_their_order) {
  Scene s;
  s.add({0, 0, 1}, kSmall, kUpright, 0, {1, 0, 0});
  s.add({0, 0, 0}, kSmall, kUpright, 0, {0, 1, 0});
  const auto y = render(s, {.width = 1, .height = 1});
  expect_close(y[0], reals({1, 1, 4}, {0.25 + 0.25 * 0.2, 0.5 + 0.25 * 0.4, 0.25 * 0.6, 0.75}), 1e-12);
}

TEST(GaussianSplat, harmonics_up_to_band_three_take_the_direction_to_the_camera) {
  // From the origin the camera lies along -z: only the harmonics with z alone are not zero.
  const double band[] = {0.28209479177387814, -0.4886025119029199, 2 * 0.31539156525252005,
                         -2 * 0.3731763325901154};
  const size_t index[] = {0, 2, 6, 12}, counts[] = {1, 4, 9, 16};
  for (size_t b = 0; b < 4; ++b) {
    Scene s;
    s.add({0, 0, 0}, kSmall, kUpright, std::log(3), {9, 9, 9});
    s.sh.assign(counts[b] * 3, 0);
    s.sh[index[b] * 3] = 0.5;
    const auto y = render(s, {.width = 1, .height = 1});
    EXPECT_NEAR(y[0].real_at(0), 0.75 * (0.5 + 0.5 * band[b]) + 0.25 * 0.2, 1e-12) << "band " << b;
    EXPECT_NEAR(y[0].real_at(1), 0.75 * 0.5 + 0.25 * 0.4, 1e-12);
  }
}

TEST(GaussianSplat, splats_behind_the_camera_or_beyond_far_are_not_drawn) {
  Scene s;
  s.add({0, 0, -4}, kSmall, kUpright, 3, {1, 1, 1});
  s.add({0, 0, 200}, {3, 3, 3}, kUpright, 3, {1, 1, 1});
  expect_close(render(s, {.width = 1, .height = 1})[0], reals({1, 1, 4}, {0.2, 0.4, 0.6, 0}), 0);
}

TEST(GaussianSplat, limits_are_reported_when_hit) {
  Scene s;
  for (int i = 0; i < 3; ++i) s.add({0, 0, 0.1 * i}, {0, 0, 0}, kUpright, -1, {1, 1, 1});
  const auto free = render(s, {.width = 2, .height = 2, .tile_size = 1});
  EXPECT_EQ(free[1].integer_at(0), 0);
  EXPECT_EQ(free[2].integer_at(0), 0);
  const auto few = render(s, {.width = 2, .height = 2, .tile_size = 1, .max_list_entries = 5});
  EXPECT_EQ(few[1].integer_at(0), 7);  // 3 splats in 4 tiles
  const auto brief = render(s, {.width = 2, .height = 2, .max_splat_steps = 2});
  EXPECT_EQ(brief[2].integer_at(0), 4);
  EXPECT_LT(brief[0].real_at(3), free[0].real_at(3));
}

// The definition, without tiles, lists or splat space: D is the least of (c + t d - p)' S (c + t d - p) over
// t, S the inverse covariance.
std::vector<double> brute_force(const Scene& s, const std::vector<double>& camera, int64_t width,
                                int64_t height, const SplatParams& p) {
  using V = std::array<double, 3>;
  const auto dot = [](V a, V b) { return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]; };
  const auto unit = [&](V a) {
    const double n = std::sqrt(dot(a, a));
    return V{a[0] / n, a[1] / n, a[2] / n};
  };
  const auto cross = [](V a, V b) {
    return V{a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]};
  };
  const V at{camera[0], camera[1], camera[2]};
  const V f = unit({camera[3] - at[0], camera[4] - at[1], camera[5] - at[2]});
  const V r = unit(cross({camera[6], camera[7], camera[8]}, f)), u = unit(cross(f, r));
  const double focal = 0.5 * double(height) / std::tan(camera[9] * M_PI / 360);
  const size_t n = s.logits.size();
  std::vector<std::array<V, 3>> inverse(n);
  std::vector<double> distance(n);
  std::vector<size_t> order;
  for (size_t i = 0; i < n; ++i) {
    const double* q = &s.rotations[4 * i];
    const double norm = std::sqrt(q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3]);
    const V axis{q[1] / norm, q[2] / norm, q[3] / norm};
    const double w = q[0] / norm;
    const auto rotated = [&](V v) {  // v + 2 w (a x v) + 2 a x (a x v)
      const V c = cross(axis, v), cc = cross(axis, c);
      return V{v[0] + 2 * w * c[0] + 2 * cc[0], v[1] + 2 * w * c[1] + 2 * cc[1],
               v[2] + 2 * w * c[2] + 2 * cc[2]};
    };
    inverse[i] = {};
    for (size_t k = 0; k < 3; ++k) {
      V e{};
      e[k] = 1;
      const V a = rotated(e);
      const double sigma = std::exp(s.scales[3 * i + k]) * p.radius_scale;
      for (size_t x = 0; x < 3; ++x)
        for (size_t y = 0; y < 3; ++y) inverse[i][x][y] += a[x] * a[y] / (sigma * sigma);
    }
    for (size_t k = 0; k < 3; ++k) distance[i] += std::pow(s.positions[3 * i + k] - at[k], 2);
    order.push_back(i);
  }
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return distance[a] < distance[b]; });
  std::vector<double> out;
  for (int64_t y = 0; y < height; ++y) {
    for (int64_t x = 0; x < width; ++x) {
      const double px = (double(x) + 0.5 - 0.5 * double(width)) / focal,
                   py = (double(y) + 0.5 - 0.5 * double(height)) / focal;
      const V d{f[0] + px * r[0] + py * u[0], f[1] + px * r[1] + py * u[1], f[2] + px * r[2] + py * u[2]};
      double sum[3] = {}, light = 1;
      for (const size_t i : order) {
        const V o{at[0] - s.positions[3 * i], at[1] - s.positions[3 * i + 1], at[2] - s.positions[3 * i + 2]};
        const auto form = [&](V a, V b) {
          return dot(a, {dot(inverse[i][0], b), dot(inverse[i][1], b), dot(inverse[i][2], b)});
        };
        const double t = -form(o, d) / form(d, d);
        if (t <= 0) continue;
        const V nearest{o[0] + t * d[0], o[1] + t * d[1], o[2] + t * d[2]};
        const double alpha = std::exp(-0.5 * form(nearest, nearest)) / (1 + std::exp(-s.logits[i]));
        if (alpha < p.alpha_cutoff) continue;
        for (size_t k = 0; k < 3; ++k) sum[k] += light * alpha * s.colors[3 * i + k];
        light *= 1 - alpha;
        if (light < p.transmittance_threshold) break;
      }
      for (size_t k = 0; k < 3; ++k) out.push_back(sum[k] + light * camera[12 + k]);
      out.push_back(1 - light);
    }
  }
  return out;
}

Scene cloud(size_t n) {
  Scene s;
  s.positions = ir::sample_literal(cat("f64[", 3 * n, "] in -1.5..1.5"), 1).to_reals();
  s.scales = ir::sample_literal(cat("f64[", 3 * n, "] in -2.5..-0.8"), 2).to_reals();
  s.rotations = ir::sample_literal(cat("f64[", 4 * n, "]"), 3).to_reals();
  s.logits = ir::sample_literal(cat("f64[", n, "] in -2..2"), 4).to_reals();
  s.colors = ir::sample_literal(cat("f64[", 3 * n, "] unit"), 5).to_reals();
  return s;
}

TEST(GaussianSplat, tiles_change_nothing) {
  const Scene s = cloud(12);
  const SplatParams p{.width = 7, .height = 5, .tile_size = 3};
  const auto y = render(s, p);
  expect_close(y[0], reals({5, 7, 4}, brute_force(s, kCamera.to_reals(), 7, 5, p)), 1e-10);
  EXPECT_EQ(y[1].integer_at(0), 0);
  EXPECT_EQ(y[2].integer_at(0), 0);
}

TEST(GaussianSplat, the_picture_in_two_steps_is_the_picture) {
  const SplatParams p{.width = 6, .height = 4, .tile_size = 4};
  const auto y = evaluate(cloud(5).operands(), [&](const Exprs& t) {
    return Exprs{gaussian_splat_render(inputs(t), p).rgba,
                 gaussian_splat_render_decomposed(inputs(t), p).rgba,
                 gaussian_splat_rasterize(gaussian_splat_prepare(inputs(t), p), t[6], p).rgba};
  });
  expect_close(y[1], y[0], 1e-12);
  expect_close(y[2], y[0], 1e-12);
}

TEST(GaussianSplat, meta_holds_camera_and_background) {
  Graph g;
  g.set_outputs(
      {gaussian_splat_render_meta(g, {1, 2, 3}, {4, 5, 6}, {7, 8, 9}, 60, 0.5, 80, {0.25, 0.5, 0.75})});
  expect_close(interpret(g, Literals{})[0],
               Literal::of<float>({15}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 60, 0.5, 80, 0.25, 0.5, 0.75}), 0);
}

}  // namespace
}  // namespace rlx::ops
