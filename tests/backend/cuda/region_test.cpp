// Regions as CUDA C++: how they are spread over threads, and that the text compiles.
#include <gtest/gtest.h>

#include "rlx/backend/cuda/region/printer.h"
#include "rlx/ops/all.h"
#include "rlx/region/from_graph.h"
#include "tests/support/graphs.h"

namespace rlx::cuda {
namespace {

region::Region region_of(const char* text) {
  const region::Built built = region::from_graph(test::graph(text));
  EXPECT_TRUE(bool(built)) << built.refusal;
  return *built.region;
}

PrintedRegion printed(const region::Region& r) { return print_region(r, schedule_of(r, true)); }

void expect_compiles(const PrintedRegion& p) {
  if (!compiler_problem().empty()) return;
  for (const auto& k : p.kernels) {
    for (const char* arch : {"sm_90a", "sm_80"}) EXPECT_NO_THROW(compile(k.source, arch)) << k.source.text;
    const std::string report = resource_report(k.source, "sm_90a");
    EXPECT_NE(report.find("0 bytes spill stores"), std::string::npos) << report << k.source.text;
  }
}

constexpr char kSoftmax[] = R"(graph @softmax(x: f32[640,1000]) {
  m = reduce(x, kind=max, axes=[1], keep_dim=true)
  d = sub(x, m)
  e = exp(d)
  s = reduce(e, kind=sum, axes=[1], keep_dim=true)
  y = div(e, s)
  return y
})";

TEST(Region, of_elements_has_a_thread_for_each_vector) {
  const auto p =
      printed(region_of("graph @f(x: f32[128,4], b: f32[4]) { a = add(x, b) y = gelu(a) return y }"));
  EXPECT_EQ(p.schedule.spread, Spread::elements);
  EXPECT_EQ(p.schedule.vector, 4);
  ASSERT_EQ(p.kernels.size(), 1u);
  EXPECT_NE(p.kernels[0].source.text.find("load<4>"), std::string::npos);
  EXPECT_NE(p.kernels[0].source.text.find("op_gelu"), std::string::npos);
  EXPECT_EQ(p.kernels[0].grid.x, 1);
  expect_compiles(p);
}

TEST(Region, of_odd_rows_has_no_vectors) {
  const auto p = printed(region_of("graph @f(x: f32[5,3]) { a = exp(x) y = mul(a, x) return y }"));
  EXPECT_EQ(p.schedule.vector, 1);
  expect_compiles(p);
}

TEST(Region, narrow_types_have_wider_vectors) {
  const auto p = printed(region_of("graph @f(x: bf16[64,64]) { a = exp(x) y = mul(a, x) return y }"));
  EXPECT_EQ(p.schedule.vector, 8);
  expect_compiles(p);
}

TEST(Region, softmax_is_one_kernel_that_reads_once) {
  const auto p = printed(region_of(kSoftmax));
  EXPECT_EQ(p.schedule.spread, Spread::warp);
  EXPECT_TRUE(p.schedule.in_registers);
  EXPECT_EQ(p.workspace, 0u);
  const std::string& text = p.kernels[0].source.text;
  EXPECT_EQ(text.find("load<4>(a0"), text.rfind("load<4>(a0")) << text;
  expect_compiles(p);
}

TEST(Region, short_rows_share_a_warp) {
  const auto lanes_of = [](const char* text) {
    const auto p = printed(region_of(text));
    EXPECT_EQ(p.schedule.spread, Spread::warp);
    EXPECT_EQ(p.schedule.rows_per_block * p.schedule.lanes, p.schedule.threads);
    expect_compiles(p);
    return p.schedule.lanes;
  };
  EXPECT_EQ(lanes_of("graph @f(x: bf16[1000,64], y: bf16[1000,64]) { p = mul(x, y) "
                     "s = reduce(p, kind=sum, axes=[1]) return s }"),
            8);
  EXPECT_EQ(lanes_of("graph @f(x: f32[1000,3]) { s = reduce(x, kind=max, axes=[1]) return s }"), 4);
  EXPECT_EQ(lanes_of("graph @f(x: f32[1000,4]) { s = reduce(x, kind=max, axes=[1]) return s }"), 1);
  // Sixteen lanes are at work three times, a warp would be half idle in the second round.
  EXPECT_EQ(lanes_of("graph @f(x: bf16[1000,384]) { s = reduce(x, kind=max, axes=[1]) return s }"), 16);
  EXPECT_EQ(lanes_of("graph @f(x: f32[1000,76]) { s = reduce(x, kind=max, axes=[1]) return s }"), 8);
  EXPECT_EQ(lanes_of("graph @f(x: f32[1000,116]) { s = reduce(x, kind=max, axes=[1]) return s }"), 32);
}

TEST(Region, few_rows_have_a_block_each) {
  const auto p = printed(region_of(
      "graph @f(x: f32[64,1000]) { s = reduce(x, kind=sum, axes=[1], keep_dim=true) y = sub(x, s) return y }"));
  EXPECT_EQ(p.schedule.spread, Spread::block);
  EXPECT_EQ(p.schedule.threads, 256);  // a vector of four for each
  EXPECT_EQ(p.kernels[0].grid.x, 64);
  expect_compiles(p);
}

TEST(Region, long_rows_have_a_block) {
  const auto p = printed(region_of(
      "graph @f(x: f32[1000,8192]) { s = reduce(x, kind=sum, axes=[1], keep_dim=true) y = sub(x, s) return y }"));
  EXPECT_EQ(p.schedule.spread, Spread::block);
  expect_compiles(p);
}

TEST(Region, sums_over_the_first_axis_have_threads_along_rows) {
  const auto p = printed(
      region_of("graph @f(x: f32[64,5000]) { a = exp(x) y = reduce(a, kind=sum, axes=[0]) return y }"));
  EXPECT_EQ(p.schedule.spread, Spread::columns);
  expect_compiles(p);
}

TEST(Region, a_few_long_rows_are_shared_by_blocks) {
  for (const char* text :
       {"graph @f(x: f32[1048576]) { a = exp(x) y = reduce(a, kind=sum, axes=[0]) return y }",
        "graph @f(x: f32[65536,96]) { a = exp(x) y = reduce(a, kind=mean, axes=[0]) return y }"}) {
    const auto p = printed(region_of(text));
    EXPECT_EQ(p.schedule.spread, Spread::split);
    EXPECT_EQ(p.kernels.size(), 2u);
    EXPECT_GT(p.workspace, 0u);
    expect_compiles(p);
  }
}

// The next round is asked for before this one stores.
TEST(Region, sums_over_the_first_axis_with_elements_ask_ahead) {
  const auto p = printed(region_of(
      "graph @f(x: bf16[8192,3072], d: bf16[8192,3072]) { y = mul(x, d) s = reduce(y, kind=sum, axes=[0]) return y, s }"));
  EXPECT_EQ(p.schedule.row_vector, 8);
  EXPECT_NE(p.kernels[0].source.text.find("ask(c + "), std::string::npos) << p.kernels[0].source.text;
  expect_compiles(p);
}

// Sums over rows of a matrix: a thread has neighbouring columns of it, which are the rows of the region.
TEST(Region, sums_over_the_first_axis_read_vectors) {
  const auto vector_of = [](const char* text) {
    const auto p = printed(region_of(text));
    EXPECT_TRUE(p.schedule.threads_along_rows) << text;
    EXPECT_EQ(p.kernels[0].source.text.find(" = load") != std::string::npos, p.schedule.row_vector > 1);
    expect_compiles(p);
    return p.schedule.row_vector;
  };
  EXPECT_EQ(vector_of("graph @f(x: f32[64,5000]) { a = exp(x) y = reduce(a, kind=sum, axes=[0]) return y }"),
            4);
  EXPECT_EQ(
      vector_of("graph @f(x: f32[65536,96]) { a = exp(x) y = reduce(a, kind=mean, axes=[0]) return y }"), 4);
  EXPECT_EQ(vector_of("graph @f(x: bf16[4096,96]) { y = reduce(x, kind=max, axes=[0]) return y }"), 8);
  EXPECT_EQ(vector_of("graph @f(x: bf16[4096,70]) { y = reduce(x, kind=sum, axes=[0]) return y }"), 2);
  EXPECT_EQ(vector_of("graph @f(x: f32[4096,71]) { y = reduce(x, kind=sum, axes=[0]) return y }"), 1);
  // Rows of two sizes, numbers for each row and column, elements written beside the sums.
  EXPECT_EQ(
      vector_of(
          "graph @f(x: bf16[4096,96], z: f32[4096,96], a: f32[4096,1], g: f32[96]) { s = cast(x, to=f32) "
          "t = mul(s, a) u = mul(t, g) v = add(u, z) w = cast(v, to=bf16) m = reduce(v, kind=max, axes=[0]) "
          "y = reduce(v, kind=sum, axes=[0]) r = mul(y, g) return w, m=m, r=r }"),
      4);
}

TEST(Region, text_for_other_addresses_has_no_vectors) {
  const region::Region r = region_of("graph @f(x: f32[128,4]) { a = exp(x) y = mul(a, x) return y }");
  const auto p = print_region(r, schedule_of(r, false));
  EXPECT_EQ(p.schedule.vector, 1);
  EXPECT_EQ(p.kernels[0].source.text.find("load<"), std::string::npos);
  const region::Region columns =
      region_of("graph @f(x: f32[640,64]) { y = reduce(x, kind=sum, axes=[0]) return y }");
  EXPECT_EQ(schedule_of(columns, true).row_vector, 4);
  EXPECT_EQ(schedule_of(columns, false).row_vector, 1);
}

}  // namespace
}  // namespace rlx::cuda
