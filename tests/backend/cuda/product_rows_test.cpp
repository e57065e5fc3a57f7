// Products of many rows whose whole rows end in a region of rows: what is taken, that the kernel fits and spills nothing, and, where there is a GPU, that it gives the rows at any size and cut,
// alone and as a part of graphs.
#include <gtest/gtest.h>

#include <cstdlib>

#include "rlx/backend/cuda/nodes/few_rows.h"
#include "rlx/backend/cuda/nodes/product_rows.h"
#include "rlx/base/float16.h"
#include "tests/backend/cuda/texts.h"

namespace rlx {
namespace {

using cuda::ProductRows;
using cuda::RowsCut;
using cuda::TurnsProduct;

constexpr int64_t kProcessors = 132;

TurnsProduct product(DType t, int64_t m, int64_t n, int64_t k, bool turned) {
  return {.dtype = t,
          .m = m,
          .n = n,
          .k = k,
          .a_row = k,
          .b_row = turned ? n : 1,
          .b_column = turned ? 1 : k,
          .b_is_fixed = m % 2 == 0};
}

// y = x + the sum of the row, and the number of the column, so that a wrong place shows.
constexpr char kHooks[] = R"cuda(struct Params { T* y; };
inline void finish_row(const Params& p, const T* products, int row) {
  const T* const from = products + row * i64(kLine);
  f32 sum = 0;
  for (int c = threadIdx.x % kLanes; c < kColumns; c += kLanes) sum += as_f32(from[c]);
  sum = over_warp<Sum, kLanes>(sum);
  for (int c = threadIdx.x % kLanes; c < kColumns; c += kLanes) put(p.y[row * i64(kColumns) + c], as_f32(from[c]) + sum + f32(c % 64));
}
)cuda";

TEST(ProductRows, cuts_fit_into_shared_memory_and_registers) {
  const int64_t room = cuda::shared_memory_of("sm_90a");
  const cuda::Device device("sm_90a", nullptr);
  for (const auto& [m, n, k, turned] : {std::tuple(1024, 384, 384, true),
                                        {1024, 384, 1536, true},
                                        {32768, 384, 1536, true},
                                        {2048, 576, 1536, false},
                                        {8192, 768, 768, true},
                                        {100, 1024, 64, false}}) {
    const TurnsProduct p = product(DType::bf16, m, n, k, turned);
    EXPECT_EQ(rows_problem(p), "");
    const auto all = rows_cuts(p, kProcessors, room);
    ASSERT_FALSE(all.empty());
    for (const RowsCut& c : all) {
      EXPECT_LE(int64_t(c.bytes), room) << c.text();
      EXPECT_LE(c.blocks, kProcessors);
      EXPECT_EQ(c.blocks % c.cluster(), 0);
    }
    if (!cuda::compiler_problem().empty()) continue;
    for (const RowsCut& c : {all.front(), all.back()}) {
      const std::string report =
          cuda::resource_report(ProductRows(device, p, c, 16, kHooks).source(), "sm_90a");
      EXPECT_NE(report.find("0 bytes spill stores"), std::string::npos) << c.text() << report;
    }
  }
  EXPECT_NE(rows_problem(product(DType::bf16, 100, 2048, 64, true)), "");
  EXPECT_NE(rows_problem(product(DType::bf16, 100, 72, 64, true)), "");
}

class ProductRowsOnDevice : public test::OnDevice {
 protected:
  void SetUp() override {
    test::OnDevice::SetUp();
    if (!IsSkipped() && cuda::device().functions().architecture() != "sm_90a")
      GTEST_SKIP() << "the kernel is for compute capability 9.0";
  }

  // Small whole numbers: sums are exact, and every product of a wrong pair shows.
  static float number(int64_t row, int64_t k, int side) {
    return float((row * 7 + k * 3 + row * k + side) % 5 - 2);
  }

  static void expect_rows(const TurnsProduct& p, RowsCut wanted, int64_t blocks, int lanes) {
    const auto cut = rows_cut(p, wanted, blocks, cuda::shared_memory_of("sm_90a"));
    ASSERT_TRUE(cut);
    SCOPED_TRACE(cat(p.dtype, " ", p.m, " x ", p.n, " x ", p.k, p.is_turned() ? ", turned, " : ", ",
                     cut->text(), ", blocks ", cut->blocks));
    const backend::Memory& memory = cuda::device().memory();
    const auto send = [&](int64_t rows, int64_t columns, auto value) {
      std::vector<uint16_t> bits;
      for (int64_t i = 0; i < rows; ++i)
        for (int64_t j = 0; j < columns; ++j) bits.push_back(encode(p.dtype, value(i, j)));
      backend::Block block(memory, bits.size() * 2);
      memory.upload(block.get(), reinterpret_cast<const std::byte*>(bits.data()), bits.size() * 2);
      return block;
    };
    const backend::Block a = send(p.m, p.k, [](int64_t i, int64_t k) { return number(i, k, 3); });
    const backend::Block b = p.is_turned()
                                 ? send(p.k, p.n, [](int64_t k, int64_t j) { return number(j, k, 0); })
                                 : send(p.n, p.k, [](int64_t j, int64_t k) { return number(j, k, 0); });
    const auto count = size_t(p.m * p.n);
    backend::Block y(memory, count * 2);
    const ProductRows kernel(cuda::device(), p, *cut, lanes, kHooks);
    std::byte* params = y.get();
    kernel.run(*cuda::device().gpu(), nullptr, &params, a.get(), b.get());
    std::vector<uint16_t> got(count);
    memory.download(reinterpret_cast<std::byte*>(got.data()), y.get(), count * 2);
    int wrong = 0;
    for (int64_t i = 0; i < p.m && wrong < 5; ++i) {
      std::vector<float> row;
      float sum = 0;
      for (int64_t j = 0; j < p.n; ++j) {
        float x = 0;
        for (int64_t k = 0; k < p.k; ++k) x += number(i, k, 3) * number(j, k, 0);
        row.push_back(decode(p.dtype, encode(p.dtype, x)));
        sum += row.back();
      }
      for (int64_t j = 0; j < p.n && wrong < 5; ++j) {
        const float want = decode(p.dtype, encode(p.dtype, row[size_t(j)] + sum + float(j % 64)));
        const float is = decode(p.dtype, got[size_t(i * p.n + j)]);
        if (is == want) continue;
        ADD_FAILURE() << "row " << i << ", column " << j << ": " << is << " instead of " << want;
        ++wrong;
      }
    }
  }
  static uint16_t encode(DType t, float x) { return t == DType::f16 ? f32_to_f16(x) : f32_to_bf16(x); }
  static float decode(DType t, uint16_t x) { return t == DType::f16 ? f16_to_f32(x) : bf16_to_f32(x); }
};

// One tile for each cluster: columns beside each other, parts of k, rows that end within a tile.
TEST_F(ProductRowsOnDevice, rows_of_every_cut) {
  for (const bool turned : {true, false}) {
    const DType t = turned ? DType::bf16 : DType::f16;
    expect_rows(product(t, 70, 144, 200, turned), {.halves = 1, .across = 1}, 8, 16);
    for (const bool shared : {false, true}) {
      expect_rows(product(t, 70, 192, 200, turned), {.halves = 1, .across = 3, .shared = shared}, 6, 32);
      expect_rows(product(t, 100, 192, 328, turned), {.halves = 2, .across = 2, .parts = 2, .shared = shared},
                  8, 16);
      expect_rows(product(t, 33, 96, 520, turned), {.halves = 1, .across = 2, .parts = 4, .shared = shared},
                  8, 8);
    }
  }
}

// Clusters with several tiles: the groups take turns, and sums wait until the rows of the tile before are finished.
TEST_F(ProductRowsOnDevice, many_tiles_of_a_cluster) {
  for (const bool shared : {false, true}) {
    expect_rows(product(DType::bf16, 300, 192, 200, true), {.halves = 1, .across = 3, .shared = shared}, 3,
                16);
    expect_rows(product(DType::bf16, 300, 128, 264, false),
                {.halves = 1, .across = 2, .parts = 2, .shared = shared}, 4, 16);
  }
  expect_rows(product(DType::f16, 500, 64, 72, true), {.halves = 2, .across = 1}, 1, 32);
}

// Whole graphs, with the kernel wherever it can be.
class Rows {
 public:
  Rows() { setenv("RLX_CUDA_ROWS", "1", 1); }
  ~Rows() { unsetenv("RLX_CUDA_ROWS"); }
};

std::vector<test::TextCase> graphs() {
  std::vector<test::TextCase> out;
  for (const char* type : {"bf16", "f16"}) {
    const double least = type == std::string("bf16") ? 5e-2 : 8e-3;
    const auto t = [&](const char* dims) { return cat(type, "[", dims, "]"); };
    const std::string scaled = cat("  s = full(shape=", type, "[], value=0.05) v = mul(x, s)\n");
    out.push_back(
        {cat("graph @layer(x: ", t("2,35,96"), ", w: ", t("96,144"), ", b: ", t("144"),
             ", r: ", t("2,35,144"), ", g: ", t("144"), ", c: ", t("144"), ") {\n", scaled,
             "  p = matmul(v, w) a = add(p, b) h = add(a, r) y = layer_norm(h, g, c)\n  return y\n}"),
         {},
         least});
    out.push_back(
        {cat("graph @rms(x: ", t("2,35,96"), ", w: ", t("144,96"), ", r: ", t("2,35,144"), ", g: ", t("144"),
             ") {\n", scaled,
             "  o = transpose(w, perm=[1,0]) p = matmul(v, o) h = add(p, r) y = rms_norm(h, g)\n  return y, h=h\n}"),
         {},
         least});
  }
  return out;
}

TEST(ProductRows, is_chosen_for_graphs) {
  const Rows rows;
  for (const char* architecture : {"sm_90a", "sm_80"}) {
    const cuda::Device device(architecture, nullptr);
    for (const test::TextCase& c : graphs()) {
      SCOPED_TRACE(c.text);
      std::vector<passes::Remark> remarks;
      const auto program =
          backend::Builder(device, 1).build(runtime::specialise(test::graph(c.text), device, {}, remarks));
      for (const std::string& wrong : backend::verify_plan(program->plan())) ADD_FAILURE() << wrong;
      EXPECT_EQ(program->plan().steps.back().kernel,
                architecture == std::string("sm_90a") ? "product_rows" : "region")
          << program->plan().text();
    }
    if (cuda::compiler_problem().empty()) {
      EXPECT_GT(device.functions().compile_waiting(), 0u);
    }
  }
}

TEST_F(ProductRowsOnDevice, graphs_give_what_the_interpreter_gives) {
  const Rows rows;
  test::expect_same_on_device(graphs());
}

}  // namespace
}  // namespace rlx
