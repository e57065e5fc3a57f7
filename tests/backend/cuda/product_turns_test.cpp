// Products of many rows with the elements behind them: what is taken, that the kernel fits and spills nothing, and, where there is a GPU, that it gives the sums at any size and cut,
// alone and as a part of graphs.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>

#include "rlx/backend/cuda/nodes/few_rows.h"
#include "rlx/backend/cuda/nodes/product_turns.h"
#include "rlx/base/float16.h"
#include "tests/backend/cuda/texts.h"

namespace rlx {
namespace {

using cuda::ProductTurns;
using cuda::TurnsProduct;
using cuda::TurnsTiles;

constexpr int64_t kProcessors = 132;

TurnsProduct product(DType t, int64_t m, int64_t n, int64_t k, bool turned, int sides = 1) {
  return {.dtype = t,
          .m = m,
          .n = n,
          .k = k,
          .a_row = k,
          .b_row = turned ? n : 1,
          .b_column = turned ? 1 : k,
          .sides = sides,
          .vector = 8,
          .b_is_fixed = m % 2 == 0};
}

// y = first + 2 second, and the number of the column, so that a wrong place shows.
std::string hooks(int sides) {
  return cat(
      "struct Params { T* y; };\ninline void finish(const Params& p, int row, int column, const Pack<T, kVector> (&v)[kSides]) {\n",
      "  Pack<T, kVector> q;\n  #pragma unroll\n  for (int u = 0; u < kVector; ++u) put(q.v[u], as_f32(v[0].v[u])",
      sides > 1 ? " + 2.0f * as_f32(v[1].v[u])" : "",
      " + f32(column + u));\n  store(p.y + i64(row) * kColumns + column, q);\n}\n");
}

TEST(ProductTurns, says_what_the_copy_engine_cannot_read) {
  const TurnsProduct good = product(DType::bf16, 100, 64, 64, true);
  EXPECT_EQ(turns_problem(good), "");
  const auto problem = [&](auto change) {
    TurnsProduct p = good;
    change(p);
    return turns_problem(p);
  };
  EXPECT_EQ(problem([](auto& p) { p.dtype = DType::f32; }), "no product of 16 bits");
  EXPECT_EQ(problem([](auto& p) { p.a_row = 68; }),
            "rows of the input do not begin at multiples of 16 bytes");
  const std::string odd = "neither rows nor columns of the weights begin at multiples of 16 bytes";
  EXPECT_EQ(problem([](auto& p) { p.b_row = 68; }), odd);
  EXPECT_EQ(problem([](auto& p) { p.b_row = 128, p.b_column = 2; }), odd);
  EXPECT_EQ(problem([](auto& p) { p.b_row = 1, p.b_column = 60; }), odd);
  EXPECT_EQ(problem([](auto& p) { p.n = 60, p.b_row = 64; }), "columns are no whole number of vectors");
}

TEST(ProductTurns, cuts_fit_into_shared_memory_and_registers) {
  const int64_t room = cuda::shared_memory_of("sm_90a");
  const cuda::Device device("sm_90a", nullptr);
  for (const auto& [m, n, k, turned, sides] : {std::tuple(32768, 1536, 384, true, 1),
                                               {1024, 1152, 384, true, 1},
                                               {8192, 3072, 768, true, 1},
                                               {2048, 1536, 576, false, 2},
                                               {2048, 14336, 4096, false, 2},
                                               {33, 8, 8, true, 1}}) {
    const TurnsProduct p = product(DType::bf16, m, n, k, turned, sides);
    const auto all = turns_tiles(p, kProcessors, room);
    ASSERT_FALSE(all.empty());
    for (const TurnsTiles& t : all) {
      EXPECT_LE(int64_t(t.shared), room) << t.text();
      EXPECT_GE(t.cycles, all.front().cycles);
      EXPECT_LE(t.blocks, kProcessors);
    }
    if (!cuda::compiler_problem().empty()) continue;
    for (const TurnsTiles& t : {all.front(), all.back()}) {
      const std::string report =
          cuda::resource_report(ProductTurns(device, p, t, hooks(sides)).source(), "sm_90a");
      EXPECT_NE(report.find("0 bytes spill stores"), std::string::npos) << t.text() << report;
    }
  }
}

class ProductTurnsOnDevice : public test::OnDevice {
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

  static void expect_sums(const TurnsProduct& p, TurnsTiles wanted, int64_t blocks) {
    const auto cut = turns_cut(p, wanted, blocks, cuda::shared_memory_of("sm_90a"));
    ASSERT_TRUE(cut);
    SCOPED_TRACE(cat(p.dtype, " ", p.m, " x ", p.n, " x ", p.k, p.is_turned() ? ", turned" : "", ", sides ",
                     p.sides, ", ", cut->text(), ", blocks ", cut->blocks));
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
    std::vector<backend::Block> sides;
    std::vector<const std::byte*> b;
    for (int side = 0; side < p.sides; ++side) {
      sides.push_back(p.is_turned()
                          ? send(p.k, p.n, [=](int64_t k, int64_t j) { return number(j, k, side); })
                          : send(p.n, p.k, [=](int64_t j, int64_t k) { return number(j, k, side); }));
      b.push_back(sides.back().get());
    }
    const auto count = size_t(p.m * p.n);
    backend::Block y(memory, count * 2);
    const ProductTurns kernel(cuda::device(), p, *cut, hooks(p.sides));
    std::byte* params = y.get();
    kernel.run(*cuda::device().gpu(), nullptr, &params, a.get(), b);
    std::vector<uint16_t> got(count);
    memory.download(reinterpret_cast<std::byte*>(got.data()), y.get(), count * 2);
    int wrong = 0;
    for (int64_t i = 0; i < p.m && wrong < 5; ++i) {
      for (int64_t j = 0; j < p.n && wrong < 5; ++j) {
        float sums[2] = {};
        for (int side = 0; side < p.sides; ++side)
          for (int64_t k = 0; k < p.k; ++k) sums[side] += number(i, k, 3) * number(j, k, side);
        const auto rounded = [&](float x) { return decode(p.dtype, encode(p.dtype, x)); };
        const float want = rounded(rounded(sums[0]) + (p.sides > 1 ? 2 * rounded(sums[1]) : 0.0f) + float(j));
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

TEST_F(ProductTurnsOnDevice, sums_of_every_cut) {
  for (const bool turned : {true, false}) {
    for (const bool resident : {true, false}) {
      for (const auto& [halves, wide] : {std::pair(2, 128), {2, 64}, {1, 96}, {1, 256}})
        expect_sums(product(turned ? DType::bf16 : DType::f16, 200, 520, 200, turned),
                    {.halves = halves, .wide = wide, .item = 2, .resident = resident}, 2);
    }
  }
}

// Two blocks send parts of the columns to each other; rows that end within the first tile of a pair.
TEST_F(ProductTurnsOnDevice, sums_of_clusters) {
  for (const bool turned : {true, false}) {
    for (const bool resident : {true, false}) {
      expect_sums(product(DType::bf16, 330, 304, 200, turned),
                  {.halves = 1, .wide = 64, .item = 3, .cluster = 2, .resident = resident}, 2);
      expect_sums(product(DType::bf16, 300, 520, 136, turned),
                  {.halves = 2, .wide = 192, .item = 2, .cluster = 2, .resident = resident}, 4);
    }
    expect_sums(product(DType::bf16, 200, 200, 328, turned, 2),
                {.halves = 2, .wide = 64, .item = 1, .cluster = 2, .resident = false}, 4);
  }
}

TEST_F(ProductTurnsOnDevice, sums_of_odd_sizes) {
  for (const DType t : {DType::bf16, DType::f16}) {
    for (const auto& [m, n, k] : {std::tuple(33, 8, 8), {129, 72, 64}, {64, 264, 392}, {300, 40, 1000}})
      for (const bool turned : {true, false})
        expect_sums(product(t, m, n, k, turned), {.halves = 2, .wide = 128, .item = 1, .resident = k <= 512},
                    3);
  }
}

TEST_F(ProductTurnsOnDevice, two_sides_share_rows) {
  for (const bool turned : {true, false})
    for (const int64_t item : {1, 3})
      expect_sums(product(DType::bf16, 140, 200, 136, turned, 2),
                  {.halves = 2, .wide = 64, .item = item, .resident = true}, 2);
}

// One block has all tiles: the groups take turns many times, and rows that stay are changed for others.
TEST_F(ProductTurnsOnDevice, many_tiles_of_one_block) {
  expect_sums(product(DType::bf16, 520, 200, 128, true),
              {.halves = 1, .wide = 64, .item = 3, .resident = true}, 1);
  expect_sums(product(DType::bf16, 520, 200, 320, false),
              {.halves = 1, .wide = 64, .item = 4, .resident = false}, 1);
}

// Whole graphs, with the kernel wherever it can be.
class Turns {
 public:
  Turns() { setenv("RLX_CUDA_TURNS", "1", 1); }
  ~Turns() { unsetenv("RLX_CUDA_TURNS"); }
};

std::vector<test::TextCase> graphs() {
  std::vector<test::TextCase> out;
  for (const char* type : {"bf16", "f16"}) {
    const double least = type == std::string("bf16") ? 2e-2 : 4e-3;
    const auto t = [&](const char* dims) { return cat(type, "[", dims, "]"); };
    const std::string scaled = cat("  s = full(shape=", type, "[], value=0.05) v = mul(x, s)\n");
    out.push_back({cat("graph @bias_gelu(x: ", t("2,70,96"), ", w: ", t("96,136"), ", b: ", t("136"), ") {\n",
                       scaled, "  p = matmul(v, w) a = add(p, b) y = gelu(a)\n  return y\n}"),
                   {},
                   least});
    out.push_back(
        {cat("graph @residual(x: ", t("2,70,96"), ", w: ", t("72,96"), ", r: ", t("2,70,72"),
             ", b: ", t("72"), ") {\n", scaled,
             "  o = transpose(w, perm=[1,0]) p = matmul(v, o) a = add(p, b) y = add(a, r)\n  return y\n}"),
         {},
         least});
    out.push_back(
        {cat("graph @gate(x: ", t("2,70,96"), ", w: ", t("72,96"), ", u: ", t("72,96"), ") {\n", scaled,
             "  o = transpose(w, perm=[1,0]) g = matmul(v, o) q = transpose(u, perm=[1,0]) p = matmul(v, q)\n",
             "  h = silu(g) y = mul(h, p)\n  return y\n}"),
         {},
         2 * least});
    out.push_back({cat("graph @kept(x: ", t("2,70,96"), ", w: ", t("96,136"), ", c: f32[136]) {\n", scaled,
                       "  p = matmul(v, w) b = cast(c, to=", type,
                       ") a = add(p, b) y = gelu_approx(a)\n  return y, a=a\n}"),
                   {},
                   least});
    out.push_back({cat("graph @wide(x: ", t("2,70,96"), ", w: ", t("96,136"), ", r: f32[2,70,136]) {\n",
                       scaled, "  p = matmul(v, w) f = cast(p, to=f32) y = add(f, r)\n  return y\n}"),
                   {},
                   least});
  }
  return out;
}

TEST(ProductTurns, is_chosen_for_graphs) {
  const Turns turns;
  for (const char* architecture : {"sm_90a", "sm_80"}) {
    const cuda::Device device(architecture, nullptr);
    for (const test::TextCase& c : graphs()) {
      SCOPED_TRACE(c.text);
      std::vector<passes::Remark> remarks;
      const auto program =
          backend::Builder(device, 1).build(runtime::specialise(test::graph(c.text), device, {}, remarks));
      for (const std::string& wrong : backend::verify_plan(program->plan())) ADD_FAILURE() << wrong;
      EXPECT_EQ(program->plan().steps.back().kernel,
                architecture == std::string("sm_90a") ? "product_elements" : "region")
          << program->plan().text();
    }
    if (cuda::compiler_problem().empty()) {
      EXPECT_GT(device.functions().compile_waiting(), 0u);
    }
  }
}

TEST_F(ProductTurnsOnDevice, graphs_give_what_the_interpreter_gives) {
  const Turns turns;
  test::expect_same_on_device(graphs());
}

// Weights and operands at odd addresses take the way around it.
TEST_F(ProductTurnsOnDevice, addresses_that_the_copy_engine_cannot_read) {
  const Turns turns;
  test::expect_same_on_device(
      {{"graph @f(x: bf16[70,96], w: bf16[13059], b: bf16[136]) {\n  s = full(shape=bf16[], value=0.05) v = mul(x, s)\n"
        "  o = narrow(w, axis=0, start=3, len=13056) m = reshape(o, shape=(96,136)) p = matmul(v, m) a = add(p, b)\n"
        "  y = tanh(a)\n  return y\n}",
        {},
        2e-2}});
}

}  // namespace
}  // namespace rlx
