// Vectors of three doubles and the camera, for splatting.
#pragma once

#include <array>
#include <cmath>

#include "rlx/backend/cpu/kernels/splat.h"

namespace rlx::cpu::splat {

using Vec = std::array<double, 3>;
using Mat = std::array<Vec, 3>;

inline double dot(const Vec& a, const Vec& b) { return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]; }
inline Vec cross(const Vec& a, const Vec& b) {
  return {a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]};
}
inline Vec scaled(const Vec& a, double f) { return {a[0] * f, a[1] * f, a[2] * f}; }
inline Vec plus(const Vec& a, const Vec& b) { return {a[0] + b[0], a[1] + b[1], a[2] + b[2]}; }
inline Vec minus(const Vec& a, const Vec& b) { return {a[0] - b[0], a[1] - b[1], a[2] - b[2]}; }
inline Vec unit(const Vec& a) { return scaled(a, 1 / std::sqrt(dot(a, a))); }
inline Vec times(const Mat& m, const Vec& v) { return {dot(m[0], v), dot(m[1], v), dot(m[2], v)}; }
inline Vec read(const float* p) { return {double(p[0]), double(p[1]), double(p[2])}; }
inline void write(float* p, const Vec& v) {
  for (size_t i = 0; i < 3; ++i) p[i] = float(v[i]);
}

/// The gradient of v for that of u = unit(v).
inline Vec unit_gradient(const Vec& v, const Vec& du) {
  const Vec u = unit(v);
  return scaled(minus(du, scaled(u, dot(u, du))), 1 / std::sqrt(dot(v, v)));
}

/// forward = unit(target - position), right = unit(up x forward), up = unit(forward x right); a ray is
/// forward + x right + y up, x and y in pixels from the middle times `per_pixel` = 1 / focal.
struct Camera {
  Vec position, right, up, forward;
  double focal, near, far;

  Camera(const float* m, const SplatPicture& p)
      : position(read(m)),
        forward(unit(minus(read(m + 3), position))),
        focal(0.5 * double(p.height) / std::tan(double(m[9]) * M_PI / 360)),
        near(double(m[10])),
        far(double(m[11])) {
    right = unit(cross(read(m + 6), forward));
    up = unit(cross(forward, right));
  }
};

/// A quaternion wxyz, normalised, and its length.
struct Quaternion {
  double w, x, y, z, length;
  explicit Quaternion(const float* q) {
    const double a = double(q[0]), b = double(q[1]), c = double(q[2]), d = double(q[3]);
    length = std::sqrt(a * a + b * b + c * c + d * d);
    w = a / length, x = b / length, y = c / length, z = d / length;
  }
  /// The axes of a splat, as rows: the inverse of its rotation.
  Mat axes() const {
    return {Vec{1 - 2 * (y * y + z * z), 2 * (x * y + w * z), 2 * (x * z - w * y)},
            Vec{2 * (x * y - w * z), 1 - 2 * (x * x + z * z), 2 * (y * z + w * x)},
            Vec{2 * (x * z + w * y), 2 * (y * z - w * x), 1 - 2 * (x * x + y * y)}};
  }
};

inline double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

}  // namespace rlx::cpu::splat
