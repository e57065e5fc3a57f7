#include "rlx/backend/cpu/kernels/splat.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <numeric>

#include "rlx/base/error.h"
#include "tests/backend/cpu/support.h"

namespace rlx::cpu {
namespace {

using test::Array;

Array<std::byte> bytes(size_t n) { return Array<std::byte>(int64_t(n)); }

/// A cloud in front of a camera, as one list of numbers so that any of them can be moved.
struct Scene {
  SplatPicture picture;
  int64_t count, harmonics;
  std::array<std::vector<double>, 7> parts;  // positions, scales, rotations, opacities, colors, sh, meta

  Scene(int64_t n, int64_t k, const SplatPicture& p, uint64_t seed) : picture(p), count(n), harmonics(k) {
    const auto fill = [&](int part, int64_t size, double low, double high) {
      const Array<float> a = test::random_array(size, seed + uint64_t(part), float(low), float(high));
      parts[size_t(part)].assign(a.data(), a.data() + size);
    };
    fill(0, 3 * n, -0.8, 0.8);
    fill(1, 3 * n, -2.6, -1.4);
    fill(2, 4 * n, -1, 1);
    fill(3, n, -1, 2);
    fill(4, 3 * n, 0.1, 1);
    fill(5, 3 * n * k, -0.2, 0.5);
    parts[6] = {0.3, 0.2, -3, 0.05, -0.02, 0.1, 0.1, 1, 0.05, 40, 0.1, 50, 0.2, 0.3, 0.4};
    for (double& v : parts[6]) v = double(float(v));
  }
};

/// The kernels' results for a scene.
struct Result {
  std::vector<float> in[7];
  Array<float> color, opacity, origin, transform, rays, rgba, before;
  Array<int32_t> ids, ranges, last;
  int32_t dropped = -1, stopped = -1;
  SplatCloud cloud;
  SplatBlend blend;

  Result(Team team, const Scene& s)
      : color(3 * s.count),
        opacity(s.count),
        origin(3 * s.count),
        transform(9 * s.count),
        rays(3 * s.picture.width * s.picture.height),
        rgba(4 * s.picture.width * s.picture.height),
        before(s.picture.width * s.picture.height),
        ids(s.picture.max_list_entries),
        ranges(2 * s.picture.tiles()),
        last(s.picture.width * s.picture.height) {
    for (size_t i = 0; i < 7; ++i) in[i].assign(s.parts[i].begin(), s.parts[i].end());
    cloud = {s.count,      s.harmonics,  in[0].data(), in[1].data(), in[2].data(),
             in[3].data(), in[4].data(), in[5].data(), in[6].data()};
    blend = {.count = s.count,
             .in = {color.data(), opacity.data(), origin.data(), transform.data(), rays.data(), ids.data(),
                    ranges.data(), &dropped},
             .background = in[6].data() + 12,
             .rgba = rgba.data(),
             .stopped = &stopped,
             .last = last.data(),
             .before = before.data()};
    auto work = bytes(splat_prepare_workspace(s.picture, cloud, team.threads()));
    splat_prepare(team, s.picture, cloud, blend.in, work.data());
    auto more = bytes(splat_blend_workspace(s.picture, blend, team.threads()));
    splat_blend(team, s.picture, blend, more.data());
  }
};

/// The picture by its definition: every splat for every pixel, sorted by distance, in f64, without tiles.
std::vector<double> picture_of(const Scene& s, int64_t* stopped = nullptr) {
  using Vec = std::array<double, 3>;
  const auto dot = [](const Vec& a, const Vec& b) { return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]; };
  const auto cross = [](const Vec& a, const Vec& b) {
    return Vec{a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]};
  };
  const auto unit = [&](Vec v) {
    const double n = std::sqrt(dot(v, v));
    for (double& x : v) x /= n;
    return v;
  };
  const auto vec = [](const std::vector<double>& v, size_t at) { return Vec{v[at], v[at + 1], v[at + 2]}; };
  const auto minus = [](const Vec& a, const Vec& b) { return Vec{a[0] - b[0], a[1] - b[1], a[2] - b[2]}; };
  const SplatPicture& p = s.picture;
  const std::vector<double>& meta = s.parts[6];
  const Vec eye = vec(meta, 0), forward = unit(minus(vec(meta, 3), eye)),
            right = unit(cross(vec(meta, 6), forward)), up = unit(cross(forward, right));
  const double per_pixel = std::tan(meta[9] * M_PI / 360) / (0.5 * double(p.height));
  struct Seen {
    double distance, opacity;
    Vec m[3], o, color;
  };
  std::vector<Seen> seen;
  for (size_t i = 0; i < size_t(s.count); ++i) {
    const Vec v = minus(eye, vec(s.parts[0], 3 * i));
    const double depth = -dot(v, forward);
    if (!(depth >= meta[10] && depth <= meta[11])) continue;
    Seen x{.distance = dot(v, v), .opacity = 1 / (1 + std::exp(-s.parts[3][i]))};
    double q[4], norm = 0;
    for (size_t a = 0; a < 4; ++a) q[a] = s.parts[2][4 * i + a], norm += q[a] * q[a];
    for (double& a : q) a /= std::sqrt(norm);
    const Vec imaginary{q[1], q[2], q[3]};
    for (size_t a = 0; a < 3; ++a) {  // row a of R^T is the axis e_a turned by q
      Vec e{};
      e[a] = 1;
      const Vec t = cross(imaginary, e), tt = cross(imaginary, t);
      for (size_t b = 0; b < 3; ++b) {
        x.m[a][b] = (e[b] + 2 * q[0] * t[b] + 2 * tt[b]) / (std::exp(s.parts[1][3 * i + a]) * p.radius_scale);
      }
      x.o[a] = dot(x.m[a], v);
    }
    x.color = vec(s.parts[4], 3 * i);
    if (s.harmonics > 0) {
      const Vec d = unit(v);
      const double X = d[0], Y = d[1], Z = d[2];
      const double h[16] = {0.28209479177387814,
                            -0.4886025119029199 * Y,
                            0.4886025119029199 * Z,
                            -0.4886025119029199 * X,
                            1.0925484305920792 * X * Y,
                            -1.0925484305920792 * Y * Z,
                            0.31539156525252005 * (2 * Z * Z - X * X - Y * Y),
                            -1.0925484305920792 * X * Z,
                            0.5462742152960396 * (X * X - Y * Y),
                            -0.5900435899266435 * Y * (3 * X * X - Y * Y),
                            2.890611442640554 * X * Y * Z,
                            -0.4570457994644658 * Y * (4 * Z * Z - X * X - Y * Y),
                            0.3731763325901154 * Z * (2 * Z * Z - 3 * X * X - 3 * Y * Y),
                            -0.4570457994644658 * X * (4 * Z * Z - X * X - Y * Y),
                            1.445305721320277 * Z * (X * X - Y * Y),
                            -0.5900435899266435 * X * (X * X - 3 * Y * Y)};
      x.color = {0.5, 0.5, 0.5};
      for (size_t k = 0; k < size_t(s.harmonics); ++k) {
        for (size_t c = 0; c < 3; ++c) x.color[c] += h[k] * s.parts[5][(i * size_t(s.harmonics) + k) * 3 + c];
      }
    }
    seen.push_back(x);
  }
  std::stable_sort(seen.begin(), seen.end(),
                   [](const Seen& a, const Seen& b) { return a.distance < b.distance; });
  std::vector<double> rgba;
  if (stopped != nullptr) *stopped = 0;
  for (int64_t row = 0; row < p.height; ++row) {
    for (int64_t column = 0; column < p.width; ++column) {
      const double x = (double(column) + 0.5 - 0.5 * double(p.width)) * per_pixel,
                   y = (double(row) + 0.5 - 0.5 * double(p.height)) * per_pixel;
      Vec ray;
      for (size_t a = 0; a < 3; ++a) ray[a] = forward[a] + x * right[a] + y * up[a];
      double light = 1, sum[3] = {};
      int64_t steps = 0;
      for (const Seen& e : seen) {
        if (light < p.transmittance_threshold) break;
        const Vec d{dot(e.m[0], ray), dot(e.m[1], ray), dot(e.m[2], ray)};
        const double od = dot(e.o, d);
        const double alpha = e.opacity * std::exp(-0.5 * (dot(e.o, e.o) - od * od / dot(d, d)));
        if (!(od < 0) || !(alpha >= p.alpha_cutoff)) continue;
        if (steps++ == p.max_splat_steps) {
          if (stopped != nullptr) ++*stopped;
          break;
        }
        for (size_t c = 0; c < 3; ++c) sum[c] += light * alpha * e.color[c];
        light *= 1 - alpha;
      }
      for (size_t c = 0; c < 3; ++c) rgba.push_back(std::max(sum[c] + light * meta[12 + c], 0.0));
      rgba.push_back(1 - light);
    }
  }
  return rgba;
}

constexpr SplatPicture kFine{.width = 37,
                             .height = 29,
                             .tile_size = 8,
                             .alpha_cutoff = 1e-5,
                             .max_splat_steps = 1000,
                             .transmittance_threshold = 1e-5,
                             .max_list_entries = 4000};

TEST(Splat, the_picture_is_that_of_its_definition) {
  test::at_every_level([](Team team) {
    for (int64_t k : {0, 1, 4, 9, 16}) {
      for (int64_t tile : {1, 3, 8, 16, 64}) {
        SplatPicture p = kFine;
        p.tile_size = tile;
        p.max_list_entries = 100000;
        if (tile != 8 && k != 4) continue;
        const Scene s(30, k, p, 1);
        const Result r(team, s);
        EXPECT_EQ(r.dropped, 0);
        EXPECT_EQ(r.stopped, 0);
        const auto want = picture_of(s);
        // A splat on either side of the cutoff, or of the threshold of light, changes a pixel by 1e-5.
        test::expect_near(r.rgba.data(), want.data(), r.rgba.size(), 6e-5, "rgba");
      }
    }
  });
}

TEST(Splat, distant_small_splats_keep_their_shape) {
  // The camera is thousands of standard deviations away: |o|^2 is of the order 1e7.
  Scene s(40, 0, kFine, 2);
  for (double& v : s.parts[1]) v -= 5;
  for (double& v : s.parts[6]) v = double(float(v));
  s.parts[6][9] = 0.5f;
  for (double& v : s.parts[0]) v = double(float(v * 0.02));
  Pool pool(2);
  const Result r(Team(pool), s);
  const auto want = picture_of(s);
  test::expect_near(r.rgba.data(), want.data(), r.rgba.size(), 1e-3, "rgba");
}

TEST(Splat, limits_stop_pixels_and_drop_the_farthest) {
  Pool pool(2);
  SplatPicture p = kFine;
  p.max_splat_steps = 2;
  const Scene s(30, 0, p, 3);
  const Result r(Team(pool), s);
  int64_t stopped = 0;
  const auto want = picture_of(s, &stopped);
  EXPECT_GT(stopped, 100);
  EXPECT_NEAR(r.stopped, double(stopped), 3);  // a splat at the cutoff may count or not
  p.max_list_entries = 10;
  const Result few(Team(pool), Scene(30, 0, p, 3));
  EXPECT_GT(few.dropped, 0);
  int64_t listed = 0;
  for (int64_t t = 0; t < p.tiles(); ++t) listed += few.ranges[2 * t + 1] - few.ranges[2 * t];
  EXPECT_EQ(listed, 10);
}

TEST(Splat, lists_are_sorted_by_distance_and_ties_by_index) {
  Pool pool(3);
  SplatPicture p = kFine;
  Scene s(6, 0, p, 4);
  for (size_t i = 0; i < 3; ++i) s.parts[0][12 + i] = s.parts[0][3 + i];  // splats 1 and 4 at one place
  const Result r(Team(pool), s);
  const auto distance = [&](int32_t id) {
    double d = 0;
    for (size_t c = 0; c < 3; ++c) {
      const double v = double(r.in[0][size_t(id) * 3 + c]) - double(r.in[6][c]);
      d += v * v;
    }
    return d;
  };
  for (int64_t t = 0; t < p.tiles(); ++t) {
    for (int32_t e = r.ranges[2 * t] + 1; e < r.ranges[2 * t + 1]; ++e) {
      const double a = distance(r.ids[e - 1]), b = distance(r.ids[e]);
      ASSERT_TRUE(a < b || (a == b && r.ids[e - 1] < r.ids[e]));
    }
  }
  EXPECT_EQ(r.ids[p.max_list_entries - 1], 6);  // unused
}

TEST(Splat, nothing_and_nonsense_leave_the_background) {
  test::at_every_level([](Team team) {
    for (int64_t n : {0, 4}) {
      Scene s(n, 0, kFine, 5);
      for (double& v : s.parts[0]) v = n == 4 ? NAN : v;
      const Result r(team, s);
      for (int64_t i = 0; i < r.rgba.size(); ++i) {
        ASSERT_EQ(r.rgba[i], i % 4 == 3 ? 0.0f : float(s.parts[6][12 + size_t(i % 4)]));
      }
    }
  });
}

/// Gradients of sum(weight * rgba) with respect to all parts, by the kernels.
std::array<std::vector<float>, 7> gradients(Team team, const Scene& s, const Array<float>& weight,
                                            std::vector<float>* raw = nullptr) {
  Result r(team, s);
  const int64_t n = s.count;
  std::vector<float> dcolor(size_t(3 * n)), dopacity(static_cast<size_t>(n)), dorigin(size_t(3 * n)),
      dtransform(size_t(9 * n)), drays(size_t(r.rays.size())), dbackground(3);
  SplatBlendGradient g{r.blend,        weight.data(),     dcolor.data(), dopacity.data(),
                       dorigin.data(), dtransform.data(), drays.data(),  dbackground.data()};
  auto work = bytes(splat_blend_backward_workspace(s.picture, g, team.threads()));
  splat_blend_backward(team, s.picture, g, work.data());
  std::array<std::vector<float>, 7> d;
  for (size_t i = 0; i < 7; ++i) d[i].resize(s.parts[i].size());
  SplatPrepareGradient q{r.cloud,      dcolor.data(), dopacity.data(), dorigin.data(), dtransform.data(),
                         drays.data(), d[0].data(),   d[1].data(),     d[2].data(),    d[3].data(),
                         d[4].data(),  d[5].data(),   d[6].data()};
  auto more = bytes(splat_prepare_backward_workspace(s.picture, q, team.threads()));
  splat_prepare_backward(team, s.picture, q, more.data());
  for (size_t c = 0; c < 3; ++c) d[6][12 + c] += dbackground[c];
  if (raw != nullptr) {
    for (const auto* v : {&dcolor, &dopacity, &dorigin, &dtransform, &drays})
      raw->insert(raw->end(), v->begin(), v->end());
  }
  return d;
}

TEST(Splat, gradients_agree_with_differences_of_the_definition) {
  const char* names[] = {"positions", "scales", "rotations", "opacities", "colors", "sh", "meta"};
  test::at_every_level([&](Team team) {
    for (int64_t k : {0, 16}) {
      SplatPicture p{.width = 13,
                     .height = 11,
                     .tile_size = 5,
                     .alpha_cutoff = 1e-9,
                     .max_splat_steps = 1000,
                     .transmittance_threshold = 1e-9,
                     .max_list_entries = 200};
      Scene s(k == 0 ? 7 : 2, k, p, 6);
      const Array<float> weight = test::random_array(4 * p.width * p.height, 7);
      const auto d = gradients(team, s, weight);
      const auto loss = [&] {
        const auto rgba = picture_of(s);
        double sum = 0;
        for (size_t i = 0; i < rgba.size(); ++i) sum += double(weight[int64_t(i)]) * rgba[i];
        return sum;
      };
      for (size_t part = 0; part < 7; ++part) {
        double scale = 1e-3;
        for (float v : d[part]) scale = std::max(scale, double(std::abs(v)));
        for (size_t i = 0; i < s.parts[part].size(); ++i) {
          if (k == 16 && part < 5 && i % 3 != 0) continue;  // enough to see the harmonics' share
          if (part == 6 && (i == 10 || i == 11)) continue;  // near and far decide, they do not blend
          double& v = s.parts[part][i];
          const double kept = v, step = 1e-5;
          v = kept + step;
          const double above = loss();
          v = kept - step;
          const double below = loss();
          v = kept;
          ASSERT_NEAR(double(d[part][i]), (above - below) / (2 * step), 3e-4 * scale)
              << names[part] << " " << i << " with " << k << " harmonics";
        }
      }
    }
  });
}

TEST(Splat, an_opaque_splat_still_has_its_gradient) {
  // Logit 40 is opacity 1 in f32: at its centre no light is left to divide by.
  Pool pool(1);
  SplatPicture p{.width = 1,
                 .height = 1,
                 .tile_size = 1,
                 .alpha_cutoff = 1e-6,
                 .max_splat_steps = 10,
                 .transmittance_threshold = 1e-3,
                 .max_list_entries = 10};
  Scene s(2, 0, p, 8);
  s.parts[0] = {0, 0, 0, 0, 0, 1};
  s.parts[3] = {40, 0};
  s.parts[6] = {0, 0, -3, 0, 0, 0, 0, 1, 0, 40, 0.1, 50, 0.2, 0.3, 0.4};
  Array<float> weight(4);
  weight[0] = 1;
  std::vector<float> raw;
  gradients(Team(pool), s, weight, &raw);
  EXPECT_FLOAT_EQ(raw[0], 1);  // all of the colour is that of the first
  // The walk ends there, so less of it would show the background.
  EXPECT_NEAR(raw[6], s.parts[4][0] - 0.2, 1e-6);
}

TEST(Splat, results_do_not_depend_on_the_number_of_threads) {
  SplatPicture p = kFine;
  const Scene s(200, 4, p, 9);
  const Array<float> weight = test::random_array(4 * p.width * p.height, 10);
  std::vector<float> first_raw;
  std::array<std::vector<float>, 7> first;
  for (int threads : {1, 2, 3}) {
    Pool pool(threads);
    std::vector<float> raw;
    const auto d = gradients(Team(pool), s, weight, &raw);
    if (threads == 1) {
      first = d, first_raw = raw;
      continue;
    }
    ASSERT_EQ(raw, first_raw);
    for (size_t i = 0; i < 7; ++i) ASSERT_EQ(d[i], first[i]);
  }
}

TEST(Splat, lists_that_point_outside_are_refused) {
  Pool pool(1);
  const Scene s(3, 0, kFine, 11);
  Result r(Team(pool), s);
  auto work = bytes(splat_blend_workspace(s.picture, r.blend, Team(pool).threads()));
  r.ids[0] = 3;
  EXPECT_THROW(splat_blend(Team(pool), s.picture, r.blend, work.data()), Error);
  r.ids[0] = 0;
  r.ranges[1] = int32_t(kFine.max_list_entries + 1);
  EXPECT_THROW(splat_blend(Team(pool), s.picture, r.blend, work.data()), Error);
}

}  // namespace
}  // namespace rlx::cpu
