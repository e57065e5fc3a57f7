#include "rlx/transform/splat_backward.h"

#include <gtest/gtest.h>

#include "rlx/ir/sample.h"
#include "tests/support/compare.h"
#include "tests/support/errors.h"
#include "tests/support/evaluate.h"

namespace rlx::transform {
namespace {

using namespace ops;

SplatInputs inputs(const ir::Exprs& t) { return {t[0], t[1], t[2], t[3], t[4], t[5], t[6]}; }

// Every gradient against central differences of the same forward function, camera included.
TEST(GaussianSplatBackward, is_the_exact_derivative_of_the_picture) {
  const SplatParams p{
      .width = 4, .height = 3, .tile_size = 2, .alpha_cutoff = 1e-7, .transmittance_threshold = 0};
  Literals in;
  const auto types = ops::detail::splat_sample("f64", 3, 4);
  for (size_t i = 0; i < types.size(); ++i) in.push_back(ir::sample_literal(types[i], i));
  const Literal weights = ir::sample_literal("f64[3,4,4]", 99);
  const auto loss = [&] {
    const Literal y =
        test::evaluate(in, [&](const ir::Exprs& t) { return gaussian_splat_render(inputs(t), p).rgba; })[0];
    double sum = 0;
    for (int64_t i = 0; i < y.elements(); ++i) sum += y.real_at(i) * weights.real_at(i);
    return sum;
  };
  Literals all = in;
  all.push_back(weights);
  const Literals d = test::evaluate(all, [&](const ir::Exprs& t) {
    const auto g = gaussian_splat_render_backward(inputs(t), t[7], p);
    return ir::Exprs{g.positions, g.scales, g.rotations, g.opacities, g.colors, g.sh, g.meta};
  });
  for (size_t k = 0; k < in.size(); ++k) {
    SCOPED_TRACE(k);
    Literal want = Literal::zeros(in[k].shape());
    for (int64_t i = 0; i < want.elements(); ++i) {
      const double x = in[k].real_at(i), h = 1e-5;
      in[k].mutable_data<double>()[size_t(i)] = x + h;
      const double above = loss();
      in[k].mutable_data<double>()[size_t(i)] = x - h;
      want.mutable_data<double>()[size_t(i)] = (above - loss()) / (2 * h);
      in[k].mutable_data<double>()[size_t(i)] = x;
    }
    test::expect_close(d[k], want, 1e-7);
  }
}

TEST(GaussianSplatBackward, wants_a_gradient_per_pixel) {
  ir::Graph g;
  ir::Exprs t;
  for (const char* type :
       {"f32[1,3]", "f32[1,3]", "f32[1,4]", "f32[1]", "f32[1,3]", "f32[1,0,3]", "f32[15]", "f32[2,2,3]"})
    t.push_back({&g, g.input(cat("x", t.size()), parse_shape(type))});
  EXPECT_EQ(
      test::message_of([&] { gaussian_splat_render_backward(inputs(t), t[7], {.width = 2, .height = 2}); }),
      "gaussian_splat_render_backward: d_loss_rgba is f32[2,2,3]; it must be f32[2,2,4]");
}

}  // namespace
}  // namespace rlx::transform
