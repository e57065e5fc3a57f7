#include "rlx/ops/splat/lists.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

namespace rlx::ops {
namespace {

using Vec = std::array<double, 3>;
using Mat = std::array<Vec, 3>;

double dot(const Vec& a, const Vec& b) { return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]; }
Vec cross(const Vec& a, const Vec& b) {
  return {a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]};
}
Vec scaled(const Vec& a, double f) { return {a[0] * f, a[1] * f, a[2] * f}; }
Vec minus(const Vec& a, const Vec& b) { return {a[0] - b[0], a[1] - b[1], a[2] - b[2]}; }
Vec unit(const Vec& a) { return scaled(a, 1 / std::sqrt(dot(a, a))); }
Vec times(const Mat& m, const Vec& v) { return {dot(m[0], v), dot(m[1], v), dot(m[2], v)}; }

struct Camera {
  Vec position, right, up, forward;
  double focal, near, far;

  Camera(const std::vector<double>& m, const SplatParams& p)
      : position{m[0], m[1], m[2]},
        forward(unit(minus({m[3], m[4], m[5]}, position))),
        focal(0.5 * double(p.height) / std::tan(m[9] * M_PI / 360)),
        near(m[10]),
        far(m[11]) {
    right = unit(cross({m[6], m[7], m[8]}, forward));
    up = unit(cross(forward, right));
  }
};

// The axes of a splat, as rows: the inverse of its rotation.
Mat axes_of(const double* q) {
  const double norm = std::sqrt(q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3]);
  const double w = q[0] / norm, x = q[1] / norm, y = q[2] / norm, z = q[3] / norm;
  return {Vec{1 - 2 * (y * y + z * z), 2 * (x * y + w * z), 2 * (x * z - w * y)},
          Vec{2 * (x * y - w * z), 1 - 2 * (x * x + z * z), 2 * (y * z + w * x)},
          Vec{2 * (x * z + w * y), 2 * (y * z - w * x), 1 - 2 * (x * x + y * y)}};
}

struct Box {
  int64_t left = 0, right = 0, top = 0, bottom = 0;  // tiles, ends excluded
};

// Tiles between two screen coordinates in units of the focal length, with a
// pixel of slack on either side.
void tile_span(double low, double high, double focal, int64_t pixels, int64_t tile, int64_t& first,
               int64_t& last) {
  const double middle = 0.5 * double(pixels);
  const double from = std::clamp(middle + focal * low - 1.5, 0.0, double(pixels));
  const double to = std::clamp(middle + focal * high + 1.5, 0.0, double(pixels));
  first = int64_t(from) / tile;
  last = to <= 0 || from >= double(pixels) ? first : (int64_t(std::ceil(to)) + tile - 1) / tile;
}

// The tiles a splat may touch, empty when it is not seen.
Box box_of(const Vec& position, const double* scale, const double* rotation, double opacity,
           const Camera& camera, const SplatParams& p) {
  const Box nowhere, everywhere{0, p.tiles_x(), 0, p.tiles_y()};
  const Vec to_splat = minus(position, camera.position);
  const double depth = dot(to_splat, camera.forward);
  if (!(opacity >= p.alpha_cutoff) || !(depth >= camera.near && depth <= camera.far)) return nowhere;
  const double reach = -2 * std::log(p.alpha_cutoff / opacity);  // squared radius, in standard deviations
  const Mat axes = axes_of(rotation);
  Vec sigma;
  for (size_t i = 0; i < 3; ++i) sigma[i] = std::exp(scale[i]) * p.radius_scale;
  Mat m;
  for (size_t i = 0; i < 3; ++i) m[i] = scaled(axes[i], 1 / sigma[i]);
  const Vec o = times(m, scaled(to_splat, -1));
  const Vec along = times(axes, camera.forward);
  const Vec spread{sigma[0] * along[0], sigma[1] * along[1], sigma[2] * along[2]};
  // Its nearest point is behind the camera's plane: the conic on the screen is
  // not an ellipse.
  if (!(dot(o, o) > reach) || !(depth - std::sqrt(reach * dot(spread, spread)) > 1e-4)) return everywhere;
  const Vec columns[] = {times(m, camera.right), times(m, camera.up), times(m, camera.forward)};
  double c[3][3];
  for (size_t i = 0; i < 3; ++i) {
    for (size_t j = 0; j < 3; ++j)
      c[i][j] = (dot(o, o) - reach) * dot(columns[i], columns[j]) - dot(o, columns[i]) * dot(o, columns[j]);
  }
  // Tangent lines x = const and y = const from the adjugate of the conic.
  const double zz = c[0][0] * c[1][1] - c[0][1] * c[1][0], xz = c[0][1] * c[1][2] - c[0][2] * c[1][1],
               yz = c[0][2] * c[1][0] - c[0][0] * c[1][2], xx = c[1][1] * c[2][2] - c[1][2] * c[2][1],
               yy = c[0][0] * c[2][2] - c[0][2] * c[2][0];
  const double half_x = std::sqrt(xz * xz - xx * zz) / std::fabs(zz),
               half_y = std::sqrt(yz * yz - yy * zz) / std::fabs(zz);
  if (!std::isfinite(half_x) || !std::isfinite(half_y)) return everywhere;
  Box box;
  tile_span(xz / zz - half_x, xz / zz + half_x, camera.focal, p.width, p.tile_size, box.left, box.right);
  tile_span(yz / zz - half_y, yz / zz + half_y, camera.focal, p.height, p.tile_size, box.top, box.bottom);
  return box;
}

}  // namespace

Shapes GaussianSplatLists::infer(Infer& c, Attrs& a) {
  detail::check_splat_params(c, a);
  detail::check_splats(c, 4);
  return {Shape(DType::i32, {a.max_list_entries}), Shape(DType::i32, {a.tiles(), 2}), Shape(DType::i32, {})};
}

Literals GaussianSplatLists::reference(const Eval& c, const Attrs& a) {
  const auto positions = c.in(0).to_reals(), scales = c.in(1).to_reals(), rotations = c.in(2).to_reals(),
             logits = c.in(3).to_reals();
  const Camera camera(c.in(4).to_reals(), a);
  const size_t count = logits.size();
  std::vector<double> distance(count);
  const auto position = [&](size_t i) {
    return Vec{positions[3 * i], positions[3 * i + 1], positions[3 * i + 2]};
  };
  for (size_t i = 0; i < count; ++i) {
    const Vec v = minus(position(i), camera.position);
    distance[i] = std::isnan(dot(v, v)) ? INFINITY : dot(v, v);  // never listed, but it must have a place
  }
  std::vector<size_t> order(count);
  std::iota(order.begin(), order.end(), size_t(0));
  std::stable_sort(order.begin(), order.end(), [&](size_t i, size_t j) { return distance[i] < distance[j]; });
  std::vector<std::vector<int64_t>> lists(size_t(a.tiles()));
  int64_t used = 0, dropped = 0;
  for (const size_t i : order) {
    const double opacity = 1 / (1 + std::exp(-logits[i]));
    const Box box = box_of(position(i), &scales[3 * i], &rotations[4 * i], opacity, camera, a);
    for (int64_t y = box.top; y < box.bottom; ++y) {
      for (int64_t x = box.left; x < box.right; ++x) {
        if (used < a.max_list_entries) {
          lists[size_t(y * a.tiles_x() + x)].push_back(int64_t(i)), ++used;
        } else {
          ++dropped;
        }
      }
    }
  }
  std::vector<int64_t> ids, ranges;
  for (const auto& list : lists) {
    ranges.push_back(int64_t(ids.size()));
    ids.insert(ids.end(), list.begin(), list.end());
    ranges.push_back(int64_t(ids.size()));
  }
  ids.resize(size_t(a.max_list_entries), int64_t(count));
  return {Literal::integers(c.out(0), ids), Literal::integers(c.out(1), ranges),
          Literal::integers(c.out(2), std::vector<int64_t>{dropped})};
}

std::vector<OpSample<GaussianSplatLists::Attrs>> GaussianSplatLists::samples() {
  const auto sample = [](SplatParams p, const std::string& dtype, int n) {
    std::vector<std::string> in = detail::splat_sample(dtype, n, 0);
    in.erase(in.begin() + 4, in.begin() + 6);  // colours
    return OpSample<Attrs>{p, in};
  };
  return {sample({.width = 4, .height = 3, .tile_size = 2}, "f32", 3),
          sample({.width = 5, .height = 5}, "f64", 2),
          sample({.width = 1, .height = 1, .tile_size = 1, .max_list_entries = 2}, "f32", 1),
          sample({.width = 2, .height = 2}, "f32", 0),
          sample({.width = 3, .height = 2, .alpha_cutoff = 0.1}, "f16", 4)};
}

}  // namespace rlx::ops
