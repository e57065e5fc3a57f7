#include <gtest/gtest.h>

#include "rlx/ops/splat/lists.h"
#include "rlx/ops/splat/prepare.h"
#include "rlx/ops/splat/rasterize.h"
#include "rlx/ops/splat/render.h"
#include "tests/support/errors.h"
#include "tests/support/evaluate.h"

namespace rlx::ops {
namespace {

template <class Op>
std::string refusal(const std::vector<std::string>& types, SplatParams p = {}) {
  return test::message_of([&] {
    Graph g;
    Values in;
    for (const auto& t : types) in.push_back(g.input(cat("x", in.size()), parse_shape(t)));
    make<Op>(g, p, in);
  });
}

TEST(SplatErrors, operands_that_do_not_fit) {
  EXPECT_EQ(refusal<GaussianSplatRender>(
                {"f32[2,3]", "f32[2,3]", "f32[2,3]", "f32[2]", "f32[2,3]", "f32[2,0,3]", "f32[15]"}),
            "gaussian_splat_render: rotations: f32[2,3] must be f32[2,4] (splats, wxyz)");
  EXPECT_EQ(
      refusal<GaussianSplatPrepare>(
          {"f32[2,3]", "f32[2,3]", "f32[2,4]", "f32[2]", "f32[2,3]", "f32[2,5,3]", "f32[15]"}),
      "gaussian_splat_prepare: sh: f32[2,5,3] has 5 harmonics; it must have 0, 1, 4, 9 or 16 (bands 0 to 3)");
  EXPECT_EQ(refusal<GaussianSplatLists>({"f32[2,3]", "f32[2,3]", "f32[2,4]", "f32[2]", "f32[23]"}),
            "gaussian_splat_lists: meta: f32[23] must be f32[15] (see gaussian_splat_render_meta)");
  EXPECT_EQ(refusal<GaussianSplatRasterize>({"f32[2,3]", "f32[2]", "f32[2,3]", "f32[2,3,3]", "f32[64,64,3]",
                                             "f32[576]", "i32[16,2]", "f32[3]"}),
            "gaussian_splat_rasterize: ids: f32[576] must hold integers");
}

TEST(SplatErrors, lists_that_point_nowhere) {
  const auto run = [](int64_t id, int64_t end) {
    const auto floats = [](Dims dims) { return Literal::full(Shape(DType::f32, std::move(dims)), 1); };
    const auto whole = [](Dims dims, std::vector<int64_t> v) {
      return Literal::integers(Shape(DType::i32, std::move(dims)), v);
    };
    return test::message_of([&] {
      test::evaluate({floats({1, 3}), floats({1}), floats({1, 3}), floats({1, 3, 3}), floats({1, 1, 3}),
                      whole({1}, {id}), whole({1, 2}, {0, end}), floats({3})},
                     [](const Exprs& t) {
                       return make<GaussianSplatRasterize>(*t[0].graph,
                                                           {.width = 1, .height = 1, .max_list_entries = 1},
                                                           Values(t.begin(), t.end()));
                     });
    });
  };
  EXPECT_EQ(run(0, 1), "no error");
  EXPECT_EQ(run(-1, 1), "gaussian_splat_rasterize: entry 0 of ids is -1; there are 1 splats");
  EXPECT_EQ(run(0, 2), "gaussian_splat_rasterize: ranges hold 2; ids have 1 entries");
}

TEST(SplatErrors, settings_that_make_no_sense) {
  const std::vector<std::string> in{"f32[2,3]", "f32[2,3]",   "f32[2,4]", "f32[2]",
                                    "f32[2,3]", "f32[2,0,3]", "f32[15]"};
  EXPECT_EQ(refusal<GaussianSplatRender>(in, {.width = 0}),
            "gaussian_splat_render: width 0, height 64, tile_size 16; they must be 1 or more");
  EXPECT_EQ(refusal<GaussianSplatRender>(in, {.alpha_cutoff = 0.0}),
            "gaussian_splat_render: radius_scale 1.6, alpha_cutoff 0.0; they must be positive");
  EXPECT_EQ(refusal<GaussianSplatRender>(in, {.max_splat_steps = 0}),
            "gaussian_splat_render: max_splat_steps 0, max_list_entries 576; they must be 1 or more");
  Graph g;
  EXPECT_EQ(
      test::message_of([&] { gaussian_splat_render_meta(g, {}, {0, 0, 1}, {0, 1, 0}, 180, 0.1, 10, {}); }),
      "gaussian_splat_render_meta: fov_y_degrees is 180.0; it must lie between 0 and 180");
  EXPECT_EQ(test::message_of([&] { gaussian_splat_render_meta(g, {}, {0, 0, 1}, {0, 1, 0}, 60, 10, 1, {}); }),
            "gaussian_splat_render_meta: near is 10.0 and far 1.0; 0 <= near < far is needed");
}

}  // namespace
}  // namespace rlx::ops
