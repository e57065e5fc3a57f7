// Plan: a few hundred operations for each splat in f64, splats over threads; distances sorted by the kernel
// of order.h; the boxes of all splats in parallel, then one pass in order of distance counts the entries of
// each tile and a second one writes them. Bound: arithmetic, and the two passes over the entries for many
// threads.
#include <algorithm>
#include <cstring>

#include "rlx/backend/cpu/kernels/order.h"
#include "rlx/backend/cpu/kernels/sizes.h"
#include "rlx/backend/cpu/kernels/splat.h"
#include "rlx/backend/cpu/kernels/splat_geometry.h"

namespace rlx::cpu {
namespace {

using namespace splat;

constexpr int64_t kSplatsPerPart = 256;
constexpr int64_t kMaxHarmonics = 16;

TileBox box_of(const SplatCloud& cloud, int64_t i, const Camera& camera, const SplatPicture& p) {
  Splat splat{.position = read(cloud.positions + 3 * i),
              .axes = Quaternion(cloud.rotations + 4 * i).axes(),
              .opacity = sigmoid(double(cloud.opacities[i]))};
  for (int64_t a = 0; a < 3; ++a)
    splat.radii[size_t(a)] = std::exp(double(cloud.scales[3 * i + a])) * p.radius_scale;
  return tile_box(splat, p.alpha_cutoff, camera, {p.width, p.height, p.tile_size});
}

// A polynomial of a unit vector with its gradient.
struct Harmonic {
  double value;
  Vec slope;
};

// Real spherical harmonics with the signs customary in splatting; returns how many of them.
void harmonics_of(const Vec& d, int64_t count, Harmonic* h) {
  const double x = d[0], y = d[1], z = d[2], xx = x * x, yy = y * y, zz = z * z;
  if (count > 0) h[0] = {0.28209479177387814, {}};
  if (count > 1) {
    const double c = 0.4886025119029199;
    h[1] = {-c * y, {0, -c, 0}};
    h[2] = {c * z, {0, 0, c}};
    h[3] = {-c * x, {-c, 0, 0}};
  }
  if (count > 4) {
    const double a = 1.0925484305920792, b = 0.31539156525252005;
    h[4] = {a * x * y, {a * y, a * x, 0}};
    h[5] = {-a * y * z, {0, -a * z, -a * y}};
    h[6] = {b * (2 * zz - xx - yy), {-2 * b * x, -2 * b * y, 4 * b * z}};
    h[7] = {-a * x * z, {-a * z, 0, -a * x}};
    h[8] = {a / 2 * (xx - yy), {a * x, -a * y, 0}};
  }
  if (count > 9) {
    const double b = 0.5900435899266435, c = 2.890611442640554, e = 0.4570457994644658,
                 f = 0.3731763325901154, g = 1.445305721320277;
    h[9] = {-b * y * (3 * xx - yy), {-6 * b * x * y, -3 * b * (xx - yy), 0}};
    h[10] = {c * x * y * z, {c * y * z, c * x * z, c * x * y}};
    h[11] = {-e * y * (4 * zz - xx - yy), {2 * e * x * y, -e * (4 * zz - xx - 3 * yy), -8 * e * y * z}};
    h[12] = {f * z * (2 * zz - 3 * xx - 3 * yy),
             {-6 * f * x * z, -6 * f * y * z, f * (6 * zz - 3 * xx - 3 * yy)}};
    h[13] = {-e * x * (4 * zz - xx - yy), {-e * (4 * zz - 3 * xx - yy), 2 * e * x * y, -8 * e * x * z}};
    h[14] = {g * z * (xx - yy), {2 * g * x * z, -2 * g * y * z, g * (xx - yy)}};
    h[15] = {-b * x * (xx - 3 * yy), {-3 * b * (xx - yy), 6 * b * x * y, 0}};
  }
}

// M, v = camera - position, and o = M v of one splat.
struct View {
  Quaternion rotation;
  Mat axes, transform;
  Vec to_camera, inverse_radii;

  View(const SplatCloud& cloud, int64_t i, const Vec& camera, double radius_scale)
      : rotation(cloud.rotations + 4 * i),
        axes(rotation.axes()),
        to_camera(minus(camera, read(cloud.positions + 3 * i))) {
    for (size_t a = 0; a < 3; ++a) {
      inverse_radii[a] = std::exp(-double(cloud.scales[3 * i + int64_t(a)])) / radius_scale;
      transform[a] = scaled(axes[a], inverse_radii[a]);
    }
  }
};

void prepare_splat(const SplatCloud& cloud, int64_t i, const Camera& camera, const SplatPicture& p,
                   const SplatPrepared& out) {
  const View view(cloud, i, camera.position, p.radius_scale);
  out.opacity[i] = float(sigmoid(double(cloud.opacities[i])));
  write(out.origin + 3 * i, times(view.transform, view.to_camera));
  for (int64_t a = 0; a < 3; ++a) write(out.transform + 9 * i + 3 * a, view.transform[size_t(a)]);
  if (cloud.harmonics == 0) {
    std::copy_n(cloud.colors + 3 * i, 3, out.color + 3 * i);
    return;
  }
  Harmonic h[kMaxHarmonics];
  harmonics_of(unit(view.to_camera), cloud.harmonics, h);
  Vec color{0.5, 0.5, 0.5};
  for (int64_t k = 0; k < cloud.harmonics; ++k)
    color = plus(color, scaled(read(cloud.sh + (i * cloud.harmonics + k) * 3), h[k].value));
  write(out.color + 3 * i, color);
}

// Distances, their order, boxes, and one cursor for each tile.
struct ListWork {
  double* distance;
  int32_t* order;
  TileBox* boxes;
  std::byte* sorting;

  static size_t bytes(int64_t count, int threads) {
    const auto n = size_t(count);
    return round_up(n * 8) + round_up(n * 4) + round_up(n * sizeof(TileBox)) +
           sort_workspace({.dtype = DType::f64, .n = count}, threads);
  }
  ListWork(std::byte* area, int64_t count) {
    const auto n = size_t(count);
    distance = reinterpret_cast<double*>(area);
    order = reinterpret_cast<int32_t*>(area += round_up(n * 8));
    boxes = reinterpret_cast<TileBox*>(area += round_up(n * 4));
    sorting = area + round_up(n * sizeof(TileBox));
  }
};

// While they are written, ranges[t] holds where the list of t begins and where its next entry goes.
void fill_lists(const SplatPicture& p, int64_t count, const ListWork& work, const SplatPrepared& out) {
  const int64_t across = p.tiles_x(), tiles = p.tiles();
  const auto each_entry = [&](auto body) {
    int64_t used = 0, dropped = 0;
    for (int64_t k = 0; k < count; ++k) {
      const int32_t i = work.order[k];
      const TileBox& box = work.boxes[i];
      for (int64_t y = box.top; y < box.bottom; ++y) {
        for (int64_t x = box.left; x < box.right; ++x) {
          if (used == p.max_list_entries) {
            ++dropped;
          } else {
            body(y * across + x, i), ++used;
          }
        }
      }
    }
    return dropped;
  };
  std::fill_n(out.ranges, 2 * tiles, 0);
  *out.dropped = int32_t(each_entry([&](int64_t tile, int32_t) { ++out.ranges[2 * tile + 1]; }));
  int32_t begin = 0;
  for (int64_t t = 0; t < tiles; ++t) {
    const int32_t length = out.ranges[2 * t + 1];
    out.ranges[2 * t] = out.ranges[2 * t + 1] = begin;
    begin += length;
  }
  each_entry([&](int64_t tile, int32_t i) { out.ids[out.ranges[2 * tile + 1]++] = i; });
  std::fill(out.ids + begin, out.ids + p.max_list_entries, int32_t(count));
}

double pixel_centre(int64_t i, int64_t count) { return double(i) + 0.5 - 0.5 * double(count); }

}  // namespace

size_t splat_prepare_workspace(const SplatPicture&, const SplatCloud& cloud, int threads) {
  return ListWork::bytes(cloud.count, threads);
}

void splat_prepare(Team team, const SplatPicture& p, const SplatCloud& cloud, const SplatPrepared& out,
                   std::byte* workspace) {
  const Camera camera(cloud.meta, p.height);
  const ListWork work(workspace, cloud.count);
  team.parallel_for(cloud.count, kSplatsPerPart, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      prepare_splat(cloud, i, camera, p, out);
      const Vec v = minus(read(cloud.positions + 3 * i), camera.position);
      work.distance[i] = std::isnan(dot(v, v)) ? INFINITY : dot(v, v);  // never listed, but it has a place
      work.boxes[i] = box_of(cloud, i, camera, p);
    }
  });
  sort(team, {.dtype = DType::f64, .n = cloud.count, .x = work.distance, .indices = work.order},
       work.sorting);
  fill_lists(p, cloud.count, work, out);
  const double per_pixel = 1 / camera.focal;
  team.parallel_for(p.height, ceil_div(4096, p.width), [&](int64_t begin, int64_t end) {
    for (int64_t y = begin; y < end; ++y) {
      const Vec row = plus(camera.forward, scaled(camera.up, pixel_centre(y, p.height) * per_pixel));
      for (int64_t x = 0; x < p.width; ++x) {
        const Vec ray = plus(row, scaled(camera.right, pixel_centre(x, p.width) * per_pixel));
        write(out.rays + (y * p.width + x) * 3, ray);
      }
    }
  });
}

namespace {

// The gradient of one splat; returns that of camera - position.
Vec splat_gradient(const SplatPicture& p, const SplatPrepareGradient& g, int64_t i, const Vec& camera) {
  const SplatCloud& cloud = g.cloud;
  const View view(cloud, i, camera, p.radius_scale);
  const Vec dorigin = read(g.dorigin + 3 * i);
  Vec dv{};
  Mat da;  // of the axes
  for (size_t a = 0; a < 3; ++a) {
    dv = plus(dv, scaled(view.transform[a], dorigin[a]));
    const Vec dm = plus(read(g.dtransform + 9 * i + 3 * int64_t(a)), scaled(view.to_camera, dorigin[a]));
    g.dscales[3 * i + int64_t(a)] = float(-dot(dm, view.transform[a]));
    da[a] = scaled(dm, view.inverse_radii[a]);
  }
  const auto [w, x, y, z, length] = view.rotation;
  const double dq[4] = {
      2 * (z * (da[0][1] - da[1][0]) + y * (da[2][0] - da[0][2]) + x * (da[1][2] - da[2][1])),
      2 * (y * (da[0][1] + da[1][0]) + z * (da[0][2] + da[2][0]) + w * (da[1][2] - da[2][1]) -
           2 * x * (da[1][1] + da[2][2])),
      2 * (x * (da[0][1] + da[1][0]) + z * (da[1][2] + da[2][1]) + w * (da[2][0] - da[0][2]) -
           2 * y * (da[0][0] + da[2][2])),
      2 * (x * (da[0][2] + da[2][0]) + y * (da[1][2] + da[2][1]) + w * (da[0][1] - da[1][0]) -
           2 * z * (da[0][0] + da[1][1]))};
  const double q[4] = {w, x, y, z};
  const double radial = q[0] * dq[0] + q[1] * dq[1] + q[2] * dq[2] + q[3] * dq[3];
  for (int64_t a = 0; a < 4; ++a) g.drotations[4 * i + a] = float((dq[a] - q[a] * radial) / length);
  const double opacity = sigmoid(double(cloud.opacities[i]));
  g.dopacities[i] = float(double(g.dopacity[i]) * opacity * (1 - opacity));

  const Vec dcolor = read(g.dcolor + 3 * i);
  write(g.dcolors + 3 * i, cloud.harmonics == 0 ? dcolor : Vec{});
  if (cloud.harmonics > 0) {
    Harmonic h[kMaxHarmonics];
    harmonics_of(unit(view.to_camera), cloud.harmonics, h);
    Vec direction{};
    for (int64_t k = 0; k < cloud.harmonics; ++k) {
      const int64_t at = (i * cloud.harmonics + k) * 3;
      write(g.dsh + at, scaled(dcolor, h[k].value));
      direction = plus(direction, scaled(h[k].slope, dot(dcolor, read(cloud.sh + at))));
    }
    dv = plus(dv, unit_gradient(view.to_camera, direction));
  }
  write(g.dpositions + 3 * i, scaled(dv, -1));
  return dv;
}

// Sums over fixed slices of splats or rows of pixels, so that their bits do not depend on the threads.
constexpr int64_t kSlices = 64;

// What the rays say about the camera: sums of dray, x dray and y dray.
struct RaySums {
  Vec all{}, by_x{}, by_y{};
};

// forward, right and up from the gradients of the rays, and from them what made them.
void camera_gradient(const SplatPicture& p, const SplatCloud& cloud, const RaySums& sums,
                     const Vec& dposition, float* dmeta) {
  const Camera camera(cloud.meta, p.height);
  const double per_pixel = 1 / camera.focal;
  const Vec up = read(cloud.meta + 6);
  Vec dforward = sums.all, dright = scaled(sums.by_x, per_pixel);
  const Vec dup = scaled(sums.by_y, per_pixel);
  // up' = unit(f x r), r = unit(up x f); for c = a x b: da = b x dc, db = dc x a.
  const Vec dc = unit_gradient(cross(camera.forward, camera.right), dup);
  dforward = plus(dforward, cross(camera.right, dc));
  dright = plus(dright, cross(dc, camera.forward));
  const Vec dr = unit_gradient(cross(up, camera.forward), dright);
  const Vec dup_given = cross(camera.forward, dr);
  dforward = plus(dforward, cross(dr, up));
  const Vec dtarget = unit_gradient(minus(read(cloud.meta + 3), camera.position), dforward);
  write(dmeta, minus(dposition, dtarget));
  write(dmeta + 3, dtarget);
  write(dmeta + 6, dup_given);
  const double tangent = std::tan(double(cloud.meta[9]) * M_PI / 360);
  const double dper_pixel = dot(sums.by_x, camera.right) + dot(sums.by_y, camera.up);
  dmeta[9] = float(dper_pixel * (1 + tangent * tangent) * (M_PI / 360) / (0.5 * double(p.height)));
  std::fill_n(dmeta + 10, 5, 0.0f);
}

}  // namespace

size_t splat_prepare_backward_workspace(const SplatPicture&, const SplatPrepareGradient&, int) {
  return size_t(kSlices) * (sizeof(Vec) + sizeof(RaySums));
}

void splat_prepare_backward(Team team, const SplatPicture& p, const SplatPrepareGradient& g,
                            std::byte* workspace) {
  auto* positions = reinterpret_cast<Vec*>(workspace);
  auto* rays = reinterpret_cast<RaySums*>(positions + kSlices);
  const Vec camera = read(g.cloud.meta);
  team.run(int(kSlices), [&](int slice) {
    const Range r = split_range(g.cloud.count, 1, int(kSlices), slice);
    Vec sum{};
    for (int64_t i = r.begin; i < r.end; ++i) sum = plus(sum, splat_gradient(p, g, i, camera));
    positions[slice] = sum;
    const Range lines = split_range(p.height, 1, int(kSlices), slice);
    RaySums s;
    for (int64_t y = lines.begin; y < lines.end; ++y) {
      Vec row{};
      for (int64_t x = 0; x < p.width; ++x) {
        const Vec d = read(g.drays + (y * p.width + x) * 3);
        row = plus(row, d);
        s.by_x = plus(s.by_x, scaled(d, pixel_centre(x, p.width)));
      }
      s.all = plus(s.all, row);
      s.by_y = plus(s.by_y, scaled(row, pixel_centre(y, p.height)));
    }
    rays[slice] = s;
  });
  Vec dposition{};
  RaySums sums;
  for (int64_t slice = 0; slice < kSlices; ++slice) {
    dposition = plus(dposition, positions[slice]);
    sums = {plus(sums.all, rays[slice].all), plus(sums.by_x, rays[slice].by_x),
            plus(sums.by_y, rays[slice].by_y)};
  }
  camera_gradient(p, g.cloud, sums, dposition, g.dmeta);
}

}  // namespace rlx::cpu
