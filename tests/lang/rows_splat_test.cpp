// Rows of the public surface: Gaussian splatting. One splat, one pixel whose ray meets its centre, so its
// opacity there is the sigmoid of the logit and the colour is blended over the background.
#include <cmath>

#include "tests/lang/rows.h"

namespace rlx {
namespace {

using namespace test;

const double kLogit = 0.4, kAlpha = 1 / (1 + std::exp(-kLogit));
const Literals kSplat = {f64({1, 3}, {0, 0, 0}),       f64({1, 3}, {-1, -1, -1}),
                         f64({1, 4}, {1, 0, 0, 0}),    f64({1}, {kLogit}),
                         f64({1, 3}, {0.9, 0.5, 0.1}), Literal::zeros(Shape(DType::f64, {1, 0, 3}))};
const ops::SplatVector kBackground = {0.2, 0.2, 0.6};

ops::SplatParams one_pixel() {
  ops::SplatParams p;
  p.width = p.height = p.tile_size = 1;
  return p;
}
SplatValues operands(Graph& g, const Values& v) {
  const Value meta =
      g.gaussian_splat_render_meta({0, 0, -3}, {0, 0, 0}, {0, 1, 0}, 60, 0.1, 100, kBackground);
  return {v[0], v[1], v[2], v[3], v[4], v[5], g.cast(meta, DType::f64)};
}
Literal expected() {
  const auto blend = [](double color, double background) {
    return kAlpha * color + (1 - kAlpha) * background;
  };
  return f64({1, 1, 4}, {blend(0.9, 0.2), blend(0.5, 0.2), blend(0.1, 0.6), kAlpha});
}

TEST(GraphRow, gaussian_splat_render) {
  const Literals out = run(kSplat, [](Graph& g, const Values& v) {
    const auto picture = g.gaussian_splat_render(operands(g, v), one_pixel());
    return Values{picture.rgba, picture.dropped, picture.stopped};
  });
  expect_close(out[0], expected(), 1e-6);
  EXPECT_EQ(out[1].integer_at(0), 0);
  EXPECT_EQ(out[2].integer_at(0), 0);
}
TEST(GraphRow, gaussian_splat_render_decomposed) {
  expect_row(
      kSplat,
      [](Graph& g, const Values& v) {
        return g.gaussian_splat_render_decomposed(operands(g, v), one_pixel()).rgba;
      },
      expected(), 1e-6);
}
TEST(GraphRow, gaussian_splat_render_meta) {
  const Literal meta = run({}, [](Graph& g, const Values&) {
    return g.gaussian_splat_render_meta({1, 2, 3}, {0, 0, 0}, {0, 1, 0}, 60, 0.1, 100, kBackground);
  })[0];
  EXPECT_EQ(cat(meta.shape()), "f32[15]");
  EXPECT_EQ(meta.real_at(0), 1);
  EXPECT_EQ(meta.real_at(2), 3);
}
TEST(GraphRow, gaussian_splat_prepare) {
  expect_row(
      kSplat,
      [](Graph& g, const Values& v) { return g.gaussian_splat_prepare(operands(g, v), one_pixel()).opacity; },
      f64({1}, {kAlpha}), 1e-9);
}
TEST(GraphRow, gaussian_splat_rasterize) {
  expect_row(
      kSplat,
      [](Graph& g, const Values& v) {
        const SplatValues in = operands(g, v);
        return g.gaussian_splat_rasterize(g.gaussian_splat_prepare(in, one_pixel()), in.meta, one_pixel())
            .rgba;
      },
      expected(), 1e-6);
}
TEST(GraphRow, gaussian_splat_render_backward) {
  // Of red: d / d logit = (color - background) a (1 - a), d / d color = a.
  Literals in = kSplat;
  in.push_back(f64({1, 1, 4}, {1, 0, 0, 0}));
  const Literals out = run(in, [](Graph& g, const Values& v) {
    const SplatValues d = g.gaussian_splat_render_backward(operands(g, v), v[6], one_pixel());
    return Values{d.opacities, d.colors};
  });
  expect_close(out[0], f64({1}, {0.7 * kAlpha * (1 - kAlpha)}), 1e-6);
  expect_close(out[1], f64({1, 3}, {kAlpha, 0, 0}), 1e-6);
}

}  // namespace
}  // namespace rlx
