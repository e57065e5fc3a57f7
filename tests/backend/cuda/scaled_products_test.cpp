// Products of fp8 with fp8: which kernel takes them, that it compiles without spills, and, on a GPU, that sums of any size, layout, scales and codes are those of the interpreter.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "rlx/backend/builder.h"
#include "rlx/ir/sample.h"
#include "rlx/runtime/pipeline.h"
#include "tests/backend/cuda/on_device.h"
#include "tests/backend/cuda/texts.h"
#include "tests/backend/cuda/untried.h"
#include "tests/support/graphs.h"

namespace rlx {
namespace {

enum class Scaled { no, tensor, rows, blocks, fine };  // fine: blocks along k of every column

struct Product {
  int64_t m, k, n;
  const char* y = "bf16";
  const char *x_type = "f8e4m3", *w_type = "f8e4m3";
  Scaled scaled = Scaled::no;
  bool turned = false;  // w lies as [k, n]
  int64_t block = 128;
};

std::string graph_of(const Product& p) {
  const auto blocks = [&](int64_t size) { return (size + p.block - 1) / p.block; };
  std::string scales, names;
  const auto add = [&](int64_t xr, int64_t xk, int64_t wk, int64_t wn) {
    scales = cat(", s: f32[", xr, ",", xk, "], t: f32[", wk, ",", wn, "]");
    names = ", s, t";
  };
  if (p.scaled == Scaled::tensor) add(1, 1, 1, 1);
  if (p.scaled == Scaled::rows) add(p.m, 1, 1, p.n);
  if (p.scaled == Scaled::blocks) add(p.m, blocks(p.k), blocks(p.k), blocks(p.n));
  if (p.scaled == Scaled::fine) add(1, blocks(p.k), blocks(p.k), p.n);
  return cat("graph @f(x: ", p.x_type, "[", p.m, ",", p.k, "], w: ", p.w_type, "[",
             p.turned ? cat(p.k, ",", p.n) : cat(p.n, ",", p.k), "]", scales, ") {\n  ",
             p.turned ? "" : "v = transpose(w, perm=[1,0]) ", "y = scaled_matmul(x, ", p.turned ? "w" : "v",
             names, ", to=", p.y, ", block=", p.block, ")\n  return y\n}");
}

// Codes of all sizes below 2 and of both signs, numbers below the least normal one among them.
NamedLiterals leaves_of(const ir::Graph& g, int64_t k) {
  NamedLiterals out;
  uint64_t seed = 3;
  for (const ir::NodeId id : g.leaves()) {
    const ir::Node& n = g.node(id);
    const bool codes = is_storage_only(n.shapes[0].dtype());
    Literal l = ir::sample_literal(cat(n.shapes[0], codes ? "" : " positive"), seed++);
    if (codes) {
      std::mt19937 random{uint32_t(seed++)};
      for (std::byte& b : l.mutable_bytes()) b = std::byte(random() & 0xbf);
    } else if (n.shapes[0].dtype() == DType::f32) {
      for (float& v : l.mutable_data<float>()) v /= std::sqrt(std::sqrt(float(k)));
    }
    out.emplace(static_cast<const ir::NamedLeaf*>(n.attrs.get())->name, std::move(l));
  }
  return out;
}

class ScaledProductsOnDevice : public test::OnDevice {
 protected:
  void compare(const Product& p) {
    const std::string text = graph_of(p);
    const ir::Graph g = test::graph(text);
    compare(text, leaves_of(g, p.k));
  }
  void compare(const std::string& text, const NamedLiterals& leaves) {
    SCOPED_TRACE(text);
    test::expect_as_interpreted(test::graph(text), leaves, least_);
  }
  double least_ = 1e-9;
};

constexpr Scaled kAllScales[] = {Scaled::no, Scaled::tensor, Scaled::rows, Scaled::blocks, Scaled::fine};

// Rows of one and of several tiles, columns and k that end within a tile, pieces of 16 bytes and none.
TEST_F(ScaledProductsOnDevice, every_size) {
  constexpr std::tuple<int64_t, int64_t, int64_t> kSizes[] = {
      {1, 1, 1}, {3, 33, 5}, {16, 128, 64}, {17, 130, 65}, {70, 257, 24}, {2, 1040, 130}, {129, 96, 8}};
  size_t turn = 0;
  for (const auto& [m, k, n] : kSizes) {
    for (const Scaled scaled : kAllScales) {
      const char* const type = turn % 3 == 0 ? "f32" : turn % 3 == 1 ? "bf16" : "f16";
      compare({m, k, n, type, turn % 4 == 1 ? "f8e5m2" : "f8e4m3", turn % 5 < 2 ? "f8e5m2" : "f8e4m3", scaled,
               turn % 7 < 3, turn % 2 ? 128 : 32});
      ++turn;
    }
  }
}

// Few rows and columns of long sums, which blocks of a cluster share.
TEST_F(ScaledProductsOnDevice, long_sums) {
  compare({1, 4096, 64, "f32"});
  compare({5, 8200, 40, "f32", "f8e4m3", "f8e4m3", Scaled::blocks});
  compare({40, 2064, 72, "bf16", "f8e5m2", "f8e4m3", Scaled::rows, true});
}

TEST_F(ScaledProductsOnDevice, batches) {
  for (
      const char* text :
      {"graph @f(x: f8e4m3[3,5,48], w: f8e4m3[48,24]) { y = scaled_matmul(x, w, to=f32) return y }",
       "graph @f(x: f8e4m3[4,1,48], w: f8e4m3[48,24], s: f32[4,1,1]) { y = scaled_matmul(x, w, s, to=f32) return y }",
       "graph @f(x: f8e4m3[3,5,48], w: f8e5m2[3,48,24], s: f32[3,5,2], t: f32[1,2,24]) { y = scaled_matmul(x, w, s, t, to=f32, block=32) return y }",
       "graph @f(x: f8e4m3[2,1,5,40], w: f8e4m3[3,40,8], s: f32[5,1], t: f32[3,1,8]) { y = scaled_matmul(x, w, s, t, to=f32) return y }",
       "graph @f(x: f8e4m3[6,5,40], w: f8e4m3[2,8,40]) { a = transpose(x, perm=[1,0,2]) r = narrow(a, axis=0, start=1, len=2) "
       "v = transpose(w, perm=[0,2,1]) y = scaled_matmul(r, v, to=f32) return y }"}) {
    compare(text, leaves_of(test::graph(text), 48));
  }
}

// Codes that are no numbers, infinities, the largest and the least ones.
TEST_F(ScaledProductsOnDevice, special_codes) {
  for (const char* y : {"f32", "bf16", "f16"}) {
    for (const char* type : {"f8e4m3", "f8e5m2"}) {
      for (const int64_t m : {2, 40}) {
        const Product p{m, 48, 32, y, type, "f8e4m3", Scaled::tensor};
        const std::string text = graph_of(p);
        NamedLiterals leaves = leaves_of(test::graph(text), p.k);
        for (float& v : leaves.at("s").mutable_data<float>()) v = y == std::string("f16") ? 0x1p-10f : 1.0f;
        const bool wide = type == std::string("f8e5m2");
        const auto x = leaves.at("x").mutable_bytes(), w = leaves.at("w").mutable_bytes();
        x[0] = std::byte(wide ? 0x7b : 0x7e), x[1] = std::byte(wide ? 0xfb : 0xfe);  // the largest
        x[2] = std::byte(0x01), x[3] = std::byte(0x83);                              // below normal ones
        x[48] = std::byte(wide ? 0x7c : 0x7f);                                       // infinite, or NaN
        w[0] = std::byte(0x7e), w[5 * 48] = std::byte(0xff), w[7 * 48 + 2] = std::byte(0x07);
        compare(text, leaves);
      }
    }
  }
}

// Codes behind an odd number of bytes, and rows that do not begin at multiples of 16.
TEST_F(ScaledProductsOnDevice, codes_at_any_address) {
  const std::string text =
      "graph @f(x: f8e4m3[643], w: f8e4m3[1539]) { v = narrow(x, axis=0, start=3, len=640) a = reshape(v, shape=(20,32)) "
      "u = narrow(w, axis=0, start=1, len=1536) c = reshape(u, shape=(48,32)) b = transpose(c, perm=[1,0]) "
      "y = scaled_matmul(a, b, to=f32) return y }";
  compare(text, leaves_of(test::graph(text), 32));
}

TEST_F(ScaledProductsOnDevice, nothing_to_multiply) {
  compare({0, 32, 8});
  compare({3, 0, 8});
}

// Groups of warps: rows and columns that end within a tile, one slice of k and many, every kind of scales and of codes, every cut.
class ScaledTurnsOnDevice : public ScaledProductsOnDevice {
 protected:
  void SetUp() override {
    ScaledProductsOnDevice::SetUp();
    if (!IsSkipped() && cuda::device().functions().architecture() != "sm_90a")
      GTEST_SKIP() << "the kernel is for compute capability 9.0";
  }
  void TearDown() override { unsetenv("RLX_CUDA_TURNS"); }
  ScaledTurnsOnDevice() { least_ = 4e-3; }  // the units cut terms to 13 binary places of the largest
  static void cut(int way) { setenv("RLX_CUDA_TURNS", cat(way).c_str(), 1); }
  test::Untried untried_{"scaled_turns"};
};

TEST_F(ScaledTurnsOnDevice, every_scale) {
  cut(1);
  size_t turn = 0;
  for (const Scaled scaled : kAllScales) {
    for (const auto& [m, k, n] : {std::tuple(130, 400, 200), {65, 64, 72}}) {
      compare({m, k, n, turn % 2 ? "f16" : "bf16", turn % 3 == 0 ? "f8e5m2" : "f8e4m3",
               turn % 3 == 1 ? "f8e5m2" : "f8e4m3", scaled, false});
      ++turn;
    }
  }
}

TEST_F(ScaledTurnsOnDevice, every_cut) {
  for (int way = 1; way <= 6; ++way) {
    cut(way);
    compare({300, 272, 520, "bf16", "f8e4m3", "f8e4m3", way % 2 ? Scaled::blocks : Scaled::rows});
  }
}

// Weights that lie turned and rows of an odd number of bytes come as copies.
TEST_F(ScaledTurnsOnDevice, of_copies) {
  cut(1);
  compare({70, 48, 72, "bf16", "f8e4m3", "f8e4m3", Scaled::rows, true});
  compare({70, 45, 72, "bf16", "f8e4m3", "f8e4m3", Scaled::tensor, false});
  compare({70, 45, 72, "f16", "f8e5m2", "f8e4m3", Scaled::no, true});
}

TEST_F(ScaledTurnsOnDevice, special_codes) {
  cut(1);
  const Product p{70, 160, 72, "bf16", "f8e5m2", "f8e4m3", Scaled::no};
  const std::string text = graph_of(p);
  NamedLiterals leaves = leaves_of(test::graph(text), p.k);
  leaves.at("x").mutable_bytes()[160 * 3] = std::byte(0x7c),
                                       leaves.at("x").mutable_bytes()[160 * 69 + 159] = std::byte(0xfe);
  leaves.at("w").mutable_bytes()[160 * 5 + 7] = std::byte(0x7f),
                                           leaves.at("w").mutable_bytes()[160 * 6] = std::byte(0x7e);
  compare(text, leaves);
}

// Elements behind a product, and gate and up with what joins them: one step.
const char* const kBehind[] = {
    "graph @bias(x: f8e4m3[2,70,160], w: f8e4m3[136,160], s: f32[2,70,2], t: f32[2,2], b: bf16[136]) {\n"
    "  v = transpose(w, perm=[1,0]) p = scaled_matmul(x, v, s, t) a = add(p, b) y = gelu(a)\n  return y\n}",
    "graph @gate(x: f8e4m3[140,96], w: f8e4m3[72,96], u: f8e4m3[72,96], s: f32[140,1], t: f32[1,72], r: f32[1,72]) {\n"
    "  v = transpose(w, perm=[1,0]) o = transpose(u, perm=[1,0]) p = scaled_matmul(x, v, s, t) q = scaled_matmul(x, o, s, r)\n"
    "  h = silu(p) y = mul(h, q)\n  return y\n}",
    "graph @plain(x: f8e5m2[140,96], w: f8e4m3[72,96], c: f16[140,72]) {\n"
    "  v = transpose(w, perm=[1,0]) p = scaled_matmul(x, v, to=f16) y = add(p, c)\n  return y\n}"};

TEST_F(ScaledTurnsOnDevice, elements_behind) {
  cut(1);
  for (const char* text : kBehind) compare(text, leaves_of(test::graph(text), 160));
}

// ---- without a GPU ----

void expect_no_spills(const cuda::Device& device) {
  if (!cuda::compiler_problem().empty()) return;
  const std::string& architecture = device.functions().architecture();
  for (const cuda::Source& source : device.functions().sources()) {
    const std::string report = cuda::resource_report(source, architecture);
    EXPECT_NE(report.find("0 bytes spill stores"), std::string::npos) << source.entry << report;
  }
}

TEST(ScaledProducts, have_elements_behind_them) {
  const test::Untried untried("scaled_turns");
  const cuda::Device device("sm_90a", nullptr);
  for (const char* text : kBehind) {
    std::vector<passes::Remark> remarks;
    const auto program =
        backend::Builder(device, 1).build(runtime::specialise(test::graph(text), device, {}, remarks));
    EXPECT_EQ(program->plan().steps.size(), 1u) << program->plan().text();
    EXPECT_EQ(program->plan().steps.back().kernel, "product_elements") << program->plan().text();
  }
  expect_no_spills(device);
}

class ScaledKernels : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Cuda, ScaledKernels, testing::Values("sm_90a", "sm_80", "sm_89"));

TEST_P(ScaledKernels, are_one_step_that_compiles_without_spills) {
  const test::Untried untried("scaled_turns");
  const std::string architecture = GetParam();
  for (const Product& p : {Product{1, 4096, 4096, "bf16", "f8e4m3", "f8e4m3", Scaled::blocks},
                           {64, 500, 130, "f32", "f8e5m2", "f8e4m3", Scaled::rows, true},
                           {2048, 4096, 4096, "bf16", "f8e4m3", "f8e4m3", Scaled::blocks},
                           {2048, 4096, 4096, "bf16", "f8e4m3", "f8e4m3", Scaled::rows},
                           {2048, 4096, 4096, "f16", "f8e5m2", "f8e4m3"}}) {
    const cuda::Device device(architecture, nullptr);
    const std::string text = graph_of(p);
    SCOPED_TRACE(text);
    std::vector<passes::Remark> remarks;
    const auto program =
        backend::Builder(device, 1).build(runtime::specialise(test::graph(text), device, {}, remarks));
    const auto& steps = program->plan().steps;
    ASSERT_EQ(steps.size(), 1u) << program->plan().text();
    EXPECT_EQ(steps[0].kernel, "scaled_product");
    EXPECT_EQ(steps[0].note.find("groups of warps") != std::string::npos,
              architecture == "sm_90a" && p.m == 2048)
        << steps[0].note;
    expect_no_spills(device);
  }
}

TEST(ScaledProducts, what_has_no_kernel_is_taken_apart) {
  const cuda::Device device("sm_90a", nullptr);
  for (
      const char* text :
      {"graph @f(x: f8e4m3[5,6], w: f8e4m3[6,3], s: f32[5,2]) { y = scaled_matmul(x, w, s, to=f32, block=4) return y }",
       "graph @f(x: f8e4m3[5,6], w: f8e4m3[6,3], s: f64[1,1]) { y = scaled_matmul(x, w, s, to=f32) return y }"}) {
    std::vector<passes::Remark> remarks;
    const auto program =
        backend::Builder(device, 1).build(runtime::specialise(test::graph(text), device, {}, remarks));
    for (const auto& s : program->plan().steps) {
      EXPECT_NE(s.kernel, "scaled_product");
      EXPECT_NE(s.kernel, "on_host") << program->plan().text();
    }
  }
}

}  // namespace
}  // namespace rlx
