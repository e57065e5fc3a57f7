// Products of some rows whose weights the copy engine brings: every way to cut them, beside sums in f64.
#include <cmath>

#include "rlx/backend/cuda/compile/architecture.h"
#include "rlx/backend/cuda/nodes/copied_tiles.h"
#include "rlx/base/float16.h"
#include "tests/backend/cuda/on_device.h"
#include "tests/backend/cuda/untried.h"

namespace rlx::test {
namespace {

using cuda::CopiedTiles;
using cuda::CopiedTiling;
using cuda::FewRows;

class CopiedTilesOnDevice : public OnDevice {
 protected:
  void SetUp() override {
    OnDevice::SetUp();
    if (!IsSkipped() && cuda::device().functions().architecture() != cuda::kHopper)
      GTEST_SKIP() << "no copy engine";
  }
  Untried untried_;
};

// 16 bits of small whole numbers, whose products and sums are exact.
std::vector<uint16_t> numbers(int64_t count, DType t, uint32_t seed) {
  std::vector<uint16_t> out(static_cast<size_t>(count));
  for (uint16_t& x : out) {
    seed = seed * 1664525u + 1013904223u;
    const float v = float(int(seed >> 24) % 7 - 3);
    x = t == DType::bf16 ? f32_to_bf16(v) : f32_to_f16(v);
  }
  return out;
}
double value_of(uint16_t bits, DType t) {
  return t == DType::bf16 ? double(bf16_to_f32(bits)) : double(f16_to_f32(bits));
}

// Memory of the GPU that holds these numbers.
backend::Block sent(const std::vector<uint16_t>& from) {
  backend::Block to(cuda::device().memory(), from.size() * 2);
  cuda::check(
      cuda::device().gpu()->use().MemcpyHtoD(cuda::device_pointer(to.get()), from.data(), from.size() * 2),
      "a copy");
  return to;
}

struct Cut {
  FewRows p;
  CopiedTiling t;
};

void expect_product(const FewRows& p, const CopiedTiling& t) {
  SCOPED_TRACE(cat(p.dtype, " ", p.m, " x ", p.n, " x ", p.k, p.b_row == 1 ? "" : ", turned", ", ", t.text(),
                   ", ", t.clusters, " clusters"));
  const auto a = numbers(p.m * p.a_row, p.dtype, 7),
             b = numbers(std::max(p.b_row * p.k, p.b_column * p.n), p.dtype, 11);
  const backend::Block at_a = sent(a), at_b = sent(b),
                       at_c = sent(std::vector<uint16_t>(size_t(p.m * p.c_row)));
  const cuda::Driver& d = cuda::device().gpu()->use();
  cuda::Stream_* stream = nullptr;
  cuda::check(d.StreamCreate(&stream, 1), "a stream");
  const CopiedTiles product = CopiedTiles::plain(cuda::device(), p, 1, t);
  const backend::Block workspace(cuda::device().memory(), std::max<size_t>(product.workspace(), 1));
  // Twice: words that count blocks are as they were behind a run.
  for (int run = 0; run < 2; ++run)
    product.run(stream, at_a.get(), {at_b.get(), at_b.get()}, at_c.get(), workspace.get());
  cuda::check(d.StreamSynchronize(stream), "a product");
  d.StreamDestroy(stream);
  std::vector<uint16_t> c(size_t(p.m * p.c_row));
  cuda::check(d.MemcpyDtoH(c.data(), cuda::device_pointer(at_c.get()), c.size() * 2), "a copy");
  const double least = p.dtype == DType::bf16 ? 1.0 / 256 : 1.0 / 2048;
  int wrong = 0;
  for (int64_t row = 0; row < p.m; ++row) {
    for (int64_t column = 0; column < p.n; ++column) {
      double want = 0;
      for (int64_t k = 0; k < p.k; ++k)
        want += value_of(a[size_t(row * p.a_row + k)], p.dtype) *
                value_of(b[size_t(k * p.b_row + column * p.b_column)], p.dtype);
      const double got = value_of(c[size_t(row * p.c_row + column)], p.dtype);
      if (std::abs(got - want) > least * std::abs(want) && ++wrong < 4)
        ADD_FAILURE() << "row " << row << ", column " << column << ": " << got << " instead of " << want;
    }
  }
  EXPECT_EQ(wrong, 0);
}

// All of them are compiled together.
void expect_products(const std::vector<Cut>& all) {
  std::vector<CopiedTiles> made;
  for (const Cut& c : all) made.push_back(CopiedTiles::plain(cuda::device(), c.p, 1, c.t));
  cuda::device().functions().compile_waiting();
  for (const Cut& c : all) expect_product(c.p, c.t);
}

FewRows sizes(DType t, int64_t m, int64_t n, int64_t k, bool turned) {
  return {.dtype = t,
          .m = m,
          .n = n,
          .k = k,
          .a_row = k + 8,
          .c_row = n + 3,
          .b_row = turned ? (n + 15) / 8 * 8 : 1,
          .b_column = turned ? 1 : k + 16,
          .b_is_fixed = m % 2 == 0};
}

// Rows of every number of fragments; columns and k that are no whole number of tiles and slices.
TEST_F(CopiedTilesOnDevice, rows_and_types) {
  std::vector<Cut> all;
  for (const DType t : {DType::bf16, DType::f16}) {
    for (const int64_t m : {5, 8, 17, 32, 33, 64}) {
      all.push_back({sizes(t, m, 203, 328, false), {.tile = 64, .cluster = 2, .clusters = 3, .places = 3}});
      all.push_back({sizes(t, m, 203, 328, true), {.tile = 64, .cluster = 2, .clusters = 3, .places = 3}});
    }
  }
  expect_products(all);
}

// Tiles of one and two rows of fragments, of groups that share slices by four, by two and not at all; blocks with several units.
TEST_F(CopiedTilesOnDevice, every_tiling) {
  std::vector<Cut> all;
  for (const int64_t tile : {32, 48, 64, 80, 96, 128, 192, 256}) {
    for (const int64_t cluster : {1, 2, 4, 8}) {
      const FewRows p = sizes(DType::bf16, 12, 3 * tile - 9, 64 * cluster + 72, false);
      all.push_back({p, {.tile = tile, .cluster = cluster, .clusters = 2, .places = 3, .blocks = 1}});
      if (tile % 64 == 0)
        all.push_back({sizes(DType::f16, 9, 2 * tile - 8, 64 * cluster + 72, true),
                       {.tile = tile, .cluster = cluster, .clusters = 1, .places = 4, .blocks = 1}});
    }
  }
  expect_products(all);
}

// Runs that end inside of units, units of one run, of two and of many; rows and columns that are no whole number of tiles.
TEST_F(CopiedTilesOnDevice, equal_runs) {
  std::vector<Cut> all;
  for (const int64_t tile : {32, 64, 128, 256}) {
    for (const int64_t runs : {1, 2, 5, 12}) {
      all.push_back({sizes(DType::bf16, 12, 3 * tile - 9, 328, false),
                     {.tile = tile, .places = 3, .blocks = 1, .runs = runs}});
      if (tile % 64 == 0)
        all.push_back({sizes(DType::f16, 33, 2 * tile - 8, 456, true),
                       {.tile = tile, .places = 3, .blocks = 1, .runs = runs}});
    }
  }
  for (const int64_t m : {5, 17, 64})
    all.push_back(
        {sizes(DType::bf16, m, 203, 392, false), {.tile = 64, .places = 3, .blocks = 1, .runs = 7}});
  expect_products(all);
}

// The kernels of runs for the shapes of language models keep their sums in registers.
TEST(CopiedTilesChosen, runs_compile_without_spills) {
  if (const std::string why = cuda::compiler_problem(); !why.empty()) GTEST_SKIP() << why;
  const cuda::Device device(std::string(cuda::kHopper), nullptr);
  for (const auto& [n, k, sides] : {std::tuple(4096, 14336, 1), {14336, 4096, 2}}) {
    for (const int64_t m : {32, 64}) {
      const FewRows p{
          .dtype = DType::bf16, .m = m, .n = n, .k = k, .a_row = k, .c_row = n, .b_row = 1, .b_column = k};
      int found = 0;
      for (const CopiedTiling& t : CopiedTiles::tilings(device, p, sides)) {
        if (t.runs == 0) continue;
        ++found;
        const std::string report =
            cuda::resource_report(CopiedTiles::plain(device, p, sides, t).source(), "sm_90a");
        EXPECT_NE(report.find("0 bytes spill stores"), std::string::npos) << t.text() << report;
      }
      EXPECT_GE(found, 3) << m;
    }
  }
}

// What is chosen for a shape has room and covers all columns; nothing is chosen for few rows, many rows and odd strides.
TEST(CopiedTilesChosen, tilings) {
  const Untried untried;
  const cuda::Device device(std::string(cuda::kHopper), nullptr);
  for (const auto& [n, k] :
       {std::pair(6144, 4096), {4096, 4096}, {14336, 4096}, {4096, 14336}, {128256, 2048}, {2048, 2048}}) {
    for (const int64_t sides : {1, 2}) {
      for (const int64_t m : {5, 32, 64}) {
        const FewRows p{
            .dtype = DType::bf16, .m = m, .n = n, .k = k, .a_row = k, .c_row = n, .b_row = 1, .b_column = k};
        const auto found = CopiedTiles::tilings(device, p, sides);
        EXPECT_FALSE(found.empty()) << n << " " << k << " " << m;
        for (const CopiedTiling& t : found) {
          EXPECT_LE(t.clusters * t.cluster, t.runs > 0 ? 264 : 132);
          EXPECT_GE(t.places, 3);
        }
      }
    }
  }
  const FewRows p{.dtype = DType::bf16,
                  .m = 32,
                  .n = 4096,
                  .k = 4096,
                  .a_row = 4096,
                  .c_row = 4096,
                  .b_row = 1,
                  .b_column = 4096};
  EXPECT_TRUE(CopiedTiles::suits(p, 1));
  for (const auto& change : {+[](FewRows& x) { x.m = 4; }, +[](FewRows& x) { x.m = 65; },
                             +[](FewRows& x) { x.k = 4090; }, +[](FewRows& x) { x.b_row = 2; },
                             +[](FewRows& x) { x.dtype = DType::f32; }, +[](FewRows& x) { x.n = 8; }}) {
    FewRows other = p;
    change(other);
    EXPECT_FALSE(CopiedTiles::suits(other, 1));
  }
}

}  // namespace
}  // namespace rlx::test
