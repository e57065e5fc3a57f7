#include "rlx/ops/splat/lists.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "rlx/math/splat_view.h"

namespace rlx::ops {
Shapes GaussianSplatLists::infer(Infer& c, Attrs& a) {
  detail::check_splat_params(c, a);
  detail::check_splats(c, 4);
  return {Shape(DType::i32, {a.max_list_entries}), Shape(DType::i32, {a.tiles(), 2}), Shape(DType::i32, {})};
}

Literals GaussianSplatLists::reference(const Eval& c, const Attrs& a) {
  const auto positions = c.in(0).to_reals(), scales = c.in(1).to_reals(), rotations = c.in(2).to_reals(),
             logits = c.in(3).to_reals();
  const splat::Camera camera(c.in(4).to_reals().data(), a.height);
  const splat::Screen screen{a.width, a.height, a.tile_size};
  const size_t count = logits.size();
  std::vector<double> distance(count);
  for (size_t i = 0; i < count; ++i) {
    const splat::Vec v = splat::minus(splat::read(&positions[3 * i]), camera.position);
    const double square = splat::dot(v, v);
    distance[i] = std::isnan(square) ? INFINITY : square;  // never listed, but it must have a place
  }
  std::vector<size_t> order(count);
  std::iota(order.begin(), order.end(), size_t(0));
  std::stable_sort(order.begin(), order.end(), [&](size_t i, size_t j) { return distance[i] < distance[j]; });
  std::vector<std::vector<int64_t>> lists(size_t(a.tiles()));
  int64_t used = 0, dropped = 0;
  for (const size_t i : order) {
    splat::Splat shape{.position = splat::read(&positions[3 * i]),
                       .axes = splat::Quaternion(&rotations[4 * i]).axes(),
                       .opacity = splat::sigmoid(logits[i])};
    for (size_t k = 0; k < 3; ++k) shape.radii[k] = std::exp(scales[3 * i + k]) * a.radius_scale;
    const splat::TileBox box = tile_box(shape, a.alpha_cutoff, camera, screen);
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
