// What the splat kernels add to the geometry of rlx/math/splat_view.h: f32 results and a gradient.
#pragma once

#include "rlx/backend/cpu/kernels/splat.h"
#include "rlx/math/splat_view.h"

namespace rlx::cpu::splat {

using rlx::splat::Camera;
using rlx::splat::cross;
using rlx::splat::dot;
using rlx::splat::Mat;
using rlx::splat::minus;
using rlx::splat::plus;
using rlx::splat::Quaternion;
using rlx::splat::read;
using rlx::splat::scaled;
using rlx::splat::Screen;
using rlx::splat::sigmoid;
using rlx::splat::Splat;
using rlx::splat::tile_box;
using rlx::splat::TileBox;
using rlx::splat::times;
using rlx::splat::unit;
using rlx::splat::Vec;

inline void write(float* p, const Vec& v) {
  for (size_t i = 0; i < 3; ++i) p[i] = float(v[i]);
}

/// The gradient of v for that of u = unit(v).
inline Vec unit_gradient(const Vec& v, const Vec& du) {
  const Vec u = unit(v);
  return scaled(minus(du, scaled(u, dot(u, du))), 1 / std::sqrt(dot(v, v)));
}

}  // namespace rlx::cpu::splat
