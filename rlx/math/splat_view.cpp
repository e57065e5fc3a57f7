#include "rlx/math/splat_view.h"

#include <algorithm>

namespace rlx::splat {
namespace {

// Tiles between two screen coordinates in units of the focal length, with a pixel of slack on either side.
void tile_span(double low, double high, double focal, int64_t pixels, int64_t tile, int64_t& first,
               int64_t& last) {
  const double middle = 0.5 * double(pixels);
  const double from = std::clamp(middle + focal * low - 1.5, 0.0, double(pixels));
  const double to = std::clamp(middle + focal * high + 1.5, 0.0, double(pixels));
  first = int64_t(from) / tile;
  last = to <= 0 || from >= double(pixels) ? first : (int64_t(std::ceil(to)) + tile - 1) / tile;
}

}  // namespace

// The rays that meet the splat within the radius r at which its opacity falls below the cutoff form the cone
// ray^T Q ray <= 0, Q = M^T ((|o|^2 - r^2) I - o o^T) M with M the axes over the radii and o = M (camera -
// position); the box around that conic on the screen gives the tiles.
TileBox tile_box(const Splat& s, double cutoff, const Camera& camera, const Screen& screen) {
  const TileBox nowhere, everywhere{0, screen.tiles_x(), 0, screen.tiles_y()};
  const Vec to_splat = minus(s.position, camera.position);
  const double depth = dot(to_splat, camera.forward);
  if (!(s.opacity >= cutoff) || !(depth >= camera.near && depth <= camera.far)) return nowhere;
  const double reach = -2 * std::log(cutoff / s.opacity);  // r^2, r in standard deviations
  Mat m;
  for (size_t i = 0; i < 3; ++i) m[i] = scaled(s.axes[i], 1 / s.radii[i]);
  const Vec o = times(m, scaled(to_splat, -1));
  const Vec along = times(s.axes, camera.forward);
  const Vec spread{s.radii[0] * along[0], s.radii[1] * along[1], s.radii[2] * along[2]};
  // Its nearest point is behind the camera's plane: the conic on the screen is not an ellipse.
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
  TileBox box;
  tile_span(xz / zz - half_x, xz / zz + half_x, camera.focal, screen.width, screen.tile_size, box.left,
            box.right);
  tile_span(yz / zz - half_y, yz / zz + half_y, camera.focal, screen.height, screen.tile_size, box.top,
            box.bottom);
  return box;
}

}  // namespace rlx::splat
