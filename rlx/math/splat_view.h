// The geometry of splats that the operators and the kernels share: vectors of three doubles, the camera, the
// axes of a splat, and the tiles of the screen that it may touch.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>

namespace rlx::splat {

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
template <class Real>
Vec read(const Real* p) {
  return {double(p[0]), double(p[1]), double(p[2])};
}
inline double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

/// The camera of 15 numbers: position 0-2, target 3-5, up 6-8, vertical field of view in degrees 9, near 10,
/// far 11, background 12-14. forward = unit(target - position), right = unit(up x forward), up =
/// unit(forward x right); a ray is forward + x right + y up, x and y in pixels from the middle over `focal`.
struct Camera {
  Vec position, right, up, forward;
  double focal, near, far;

  template <class Real>
  Camera(const Real* m, int64_t height)
      : position(read(m)),
        forward(unit(minus(read(m + 3), position))),
        focal(0.5 * double(height) / std::tan(double(m[9]) * M_PI / 360)),
        near(double(m[10])),
        far(double(m[11])) {
    right = unit(cross(read(m + 6), forward));
    up = unit(cross(forward, right));
  }
};

/// A quaternion wxyz, normalised, and its length.
struct Quaternion {
  double w, x, y, z, length;
  template <class Real>
  explicit Quaternion(const Real* q) {
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

/// Pixels, and the square tiles that share a list.
struct Screen {
  int64_t width, height, tile_size;
  int64_t tiles_x() const { return (width + tile_size - 1) / tile_size; }
  int64_t tiles_y() const { return (height + tile_size - 1) / tile_size; }
};

/// Tiles, ends excluded; empty when nothing is seen.
struct TileBox {
  int64_t left = 0, right = 0, top = 0, bottom = 0;
};

struct Splat {
  Vec position, radii;
  Mat axes;
  double opacity;
};

/// The tiles whose pixels the splat may reach with an opacity of at least `cutoff`.
TileBox tile_box(const Splat&, double cutoff, const Camera&, const Screen&);

}  // namespace rlx::splat
