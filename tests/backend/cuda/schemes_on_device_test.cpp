// Products with weights whose scales lie beside their codes: every scheme, equal to the interpreter on a GPU, and without one compiled for processors with and
// without clusters.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "rlx/backend/builder.h"
#include "rlx/ir/sample.h"
#include "rlx/quant/scheme.h"
#include "rlx/runtime/pipeline.h"
#include "tests/backend/cuda/cubin.h"
#include "tests/backend/cuda/on_device.h"
#include "tests/support/graphs.h"

namespace rlx {
namespace {

using quant::SchemeKind;

struct Product {
  const char* scheme;
  int64_t m, k, n;
  const char* type = "f32";
  bool has_zero = false;
};

int64_t groups_of(const Product& p) {
  const int block = quant::scheme_from_text(p.scheme)->block;
  return block > 0 ? (p.k + block - 1) / block : 1;
}

std::string graph_of(const Product& p) {
  const quant::Scheme s = *quant::scheme_from_text(p.scheme);
  const std::string grid = cat("[", groups_of(p), ",", p.n, "]");
  std::string w = cat("u8[", p.k, ",", p.n, "]"), scale = cat("f32", grid);
  if (s.kind == SchemeKind::int8_block || s.kind == SchemeKind::int8_block_asym)
    w = cat("i8[", p.k, ",", p.n, "]");
  if (s.kind == SchemeKind::int4_block) w = cat("u8[", quant::code_bytes(s, p.k, p.n), "]");
  if (s.kind == SchemeKind::fp8_e5m2) w = cat("f8e5m2[", p.k, ",", p.n, "]");
  if (s.block == 0) scale = cat("f32[", p.n, "]");
  if (s.scale_is_fp8()) w = cat("u8[", (p.k + 1) / 2, ",", p.n, "]"), scale = cat("u8", grid);
  const std::string zero = s.scale_is_fp8() ? ", z: f32[1]" : p.has_zero ? cat(", z: f32", grid) : "";
  return cat("graph @f(x: ", p.type, "[", p.m, ",", p.k, "], w: ", w, ", s: ", scale, zero,
             ") { y = dequant_matmul(x, w, s", zero.empty() ? "" : ", z", ", scheme=\"", p.scheme,
             "\") return y }");
}

// Codes of all values that are numbers, and scales that make results of about 1, so that sums of any length are known to as many digits.
NamedLiterals leaves_of(const ir::Graph& g, const Product& p) {
  const quant::Scheme s = *quant::scheme_from_text(p.scheme);
  NamedLiterals out;
  uint64_t seed = 3;
  for (const ir::NodeId id : g.leaves()) {
    const ir::Node& n = g.node(id);
    const std::string name = static_cast<const ir::NamedLeaf*>(n.attrs.get())->name;
    const bool real = n.shapes[0].dtype() == DType::f32 && name != "x";
    Literal l = name == "x" || real ? ir::sample_literal(cat(n.shapes[0], real ? " positive" : ""), seed++)
                                    : Literal::zeros(n.shapes[0]);
    if (name == "w" || (name == "s" && s.scale_is_fp8())) {
      std::mt19937 random{uint32_t(seed++)};
      for (std::byte& b : l.mutable_bytes()) {
        uint32_t code = random() & 255;
        if (name == "s") code = 0x30 + code % 16;                         // 0.5 to 1.875
        if (s.kind == SchemeKind::fp8_e4m3 && name == "w") code &= 0xbf;  // below 2
        if (s.kind == SchemeKind::fp8_e5m2) code &= 0xbf;
        b = std::byte(code);
      }
    }
    const bool bytes = s.kind == SchemeKind::int8_block || s.kind == SchemeKind::int8_block_asym;
    const double usual = bytes ? 75 : s.kind == SchemeKind::int4_block ? 5 : s.scale_is_fp8() ? 3 : 0.7;
    const bool scales = name == "s" ? !s.scale_is_fp8() : name == "z" && s.scale_is_fp8();
    if (real) {
      for (float& v : l.mutable_data<float>())
        v = scales ? float(v / (1.5 * usual * std::sqrt(double(p.k)))) : v * (bytes ? 9 : 5);
    }
    out.emplace(name, std::move(l));
  }
  return out;
}

// Every scheme, with groups that are whole for warps, lanes or neither, with every type at every number of rows; sizes take turns, for each makes a kernel of its own.
std::vector<Product> products() {
  constexpr std::pair<const char*, bool> kSchemes[] = {
      {"int8/32", false}, {"int8/6", false},  {"int8/128", false}, {"int8a/16", true},
      {"int8a/4", true},  {"int4/32", false}, {"int4/32", true},   {"int4/2", false},
      {"fp8e4m3", false}, {"fp8e5m2", false}, {"nvfp4/16", false}};
  constexpr std::pair<int64_t, int64_t> kSizes[] = {{19, 17}, {96, 48}, {1064, 144}};
  std::vector<Product> out;
  size_t turn = 0;
  for (const auto& [scheme, zero] : kSchemes) {
    for (const char* type : {"f32", "f16", "bf16"}) {
      ++turn;
      for (const int64_t m : {1, 2, 5, 8, 33, 130}) {
        const auto& [k, n] = kSizes[turn++ % 3];
        out.push_back({scheme, m, k, n, type, zero});
      }
    }
    // Two tiles of eight rows and more; few columns of long sums, which blocks share; many columns.
    for (const auto& [m, k, n] : {std::tuple(13, 512, 136),
                                  {29, 640, 80},
                                  {64, 256, 300},
                                  {1, 8200, 32},
                                  {20, 4096, 64},
                                  {100, 4104, 40},
                                  {3, 128, 4100}})
      out.push_back({scheme, m, k, n, turn++ % 3 == 0 ? "f32" : "bf16", zero});
  }
  return out;
}

class SchemesOnDevice : public test::OnDevice {
 protected:
  void compare(const std::string& text, const NamedLiterals& leaves, double least) {
    SCOPED_TRACE(text);
    test::expect_as_interpreted(test::graph(text), leaves, least);
  }
  void compare(const Product& p) {
    const std::string text = graph_of(p);
    compare(text, leaves_of(test::graph(text), p), 1e-9);
  }
};

TEST_F(SchemesOnDevice, every_scheme_at_every_number_of_rows) {
  for (const Product& p : products()) compare(p);
}

// So many blocks that Hopper's matrix units of groups of warps are taken: rows, columns and k that are no whole number of tiles.
TEST_F(SchemesOnDevice, many_rows) {
  for (const auto& [scheme, zero] : {std::pair("int8/32", false),
                                     {"int8a/4", true},
                                     {"int8/6", false},
                                     {"int4/32", true},
                                     {"int4/64", false},
                                     {"fp8e4m3", false},
                                     {"fp8e5m2", false},
                                     {"nvfp4/16", false}}) {
    compare({scheme, 1100, 72, 2880, "bf16", zero});
    compare({scheme, 264, 200, 8452, "f16", zero});
  }
}

// NaN codes of E4M3 and infinities of E5M2 come out, NaN scales of nvfp4 count as 0.
TEST_F(SchemesOnDevice, codes_that_are_no_numbers) {
  for (const char* type : {"f32", "f16", "bf16"}) {
    for (const int64_t m : {2, 40}) {
      for (const char* scheme : {"fp8e4m3", "fp8e5m2", "nvfp4/16"}) {
        const Product p{scheme, m, 48, 32, type};
        const ir::Graph g = test::graph(graph_of(p));
        NamedLiterals leaves = leaves_of(g, p);
        const bool scales = p.scheme == std::string("nvfp4/16");
        const auto codes = leaves.at(scales ? "s" : "w").mutable_bytes();
        codes[5] = std::byte(p.scheme == std::string("fp8e5m2") ? 0x7c : 0x7f);
        codes[33] = std::byte(0xff);
        compare(graph_of(p), leaves, 1e-9);
      }
    }
  }
}

// Codes behind an odd number of bytes: nothing may assume more than the alignment of a byte.
TEST_F(SchemesOnDevice, codes_at_any_address) {
  for (const char* type : {"f32", "bf16"}) {
    for (const int64_t m : {1, 40}) {
      const std::string text =
          cat("graph @f(x: ", type, "[", m,
              ",64], w: u8[3075], s: f32[48]) { v = narrow(w, axis=0, start=3, len=3072) ",
              "c = reshape(v, shape=(64,48)) y = dequant_matmul(x, c, s, scheme=\"fp8e4m3\") return y }");
      const ir::Graph g = test::graph(text);
      NamedLiterals leaves;
      uint64_t seed = 5;
      for (const ir::NodeId id : g.leaves()) {
        const ir::Node& n = g.node(id);
        const std::string name = static_cast<const ir::NamedLeaf*>(n.attrs.get())->name;
        leaves.emplace(name, ir::sample_literal(cat(n.shapes[0], name == "w" ? " <60" : ""), seed++));
      }
      compare(text, leaves, 1e-4);
    }
  }
}

// An empty sum is zero, no rows are none.
TEST_F(SchemesOnDevice, nothing_to_multiply) {
  for (const auto& [m, k] : {std::pair(0, 32), {3, 0}}) {
    const Product p{"fp8e4m3", m, k, 16};
    compare(p);
  }
}

// Decoded in the product: one step, of the kernel that is named, and no copy of the weights; for processors with clusters and without.
class SchemeKernels : public testing::TestWithParam<const char*> {
 protected:
};
INSTANTIATE_TEST_SUITE_P(Cuda, SchemeKernels, testing::Values("sm_90a", "sm_80"));

TEST_P(SchemeKernels, are_one_step_that_compiles) {
  if (const std::string why = cuda::compiler_problem(); !why.empty()) GTEST_SKIP() << why;
  const cuda::Device device(GetParam(), nullptr);
  const backend::Builder builder(device, 1);
  for (const char* scheme : {"int8/32", "int8a/6", "int4/32", "fp8e4m3", "fp8e5m2", "nvfp4/16"}) {
    const bool zero = quant::scheme_from_text(scheme)->kind == SchemeKind::int8_block_asym;
    for (const auto& [m, k, n, type, said] : {std::tuple(1, 4096, 4096, "bf16", "few rows on matrix units"),
                                              {12, 512, 130, "f16", "few rows on matrix units"},
                                              {3, 512, 128, "f32", "few rows in f32"},
                                              {30, 512, 128, "bf16", "tiles on matrix units"},
                                              {300, 500, 130, "f16", "tiles on matrix units"},
                                              {2000, 520, 4096, "bf16", "tiles on matrix units"},
                                              {100, 512, 128, "f32", "tiles in f32"}}) {
      const std::string text = graph_of({scheme, m, k, n, type, zero});
      SCOPED_TRACE(text);
      std::vector<passes::Remark> remarks;
      const auto program = builder.build(runtime::specialise(test::graph(text), device, {}, remarks));
      ASSERT_EQ(program->plan().steps.size(), 1u) << program->plan().text();
      EXPECT_EQ(program->plan().steps[0].kernel, "scheme_product");
      EXPECT_NE(program->plan().steps[0].note.find(said), std::string::npos) << program->plan().steps[0].note;
    }
  }
  EXPECT_GT(device.functions().compile_waiting(), 30u);
}

// Also where columns are read one by one, or factors for each row.
TEST_P(SchemeKernels, of_few_rows_keep_their_numbers_in_registers) {
  if (const std::string why = cuda::compiler_problem(); !why.empty()) GTEST_SKIP() << why;
  const cuda::Device device(GetParam(), nullptr);
  const backend::Builder builder(device, 1);
  for (const auto& [scheme, zero] :
       {std::pair("int8a/16", true), {"int8/4", false}, {"int8a/6", true}, {"int4/6", true}}) {
    for (const int64_t n : {36, 131}) {
      for (const auto& [m, type] : {std::pair(2, "f32"), {8, "f32"}, {12, "bf16"}}) {
        std::vector<passes::Remark> remarks;
        builder.build(
            runtime::specialise(test::graph(graph_of({scheme, m, 96, n, type, zero})), device, {}, remarks));
      }
    }
  }
  EXPECT_GT(device.functions().compile_waiting(), 20u);
  for (const cuda::Source& s : device.functions().sources()) {
    EXPECT_EQ(s.entry, "scheme_rows");
    const test::KernelResources r = test::resources_of(cuda::compile(s, GetParam()));
    EXPECT_EQ(r.stack, 0) << r.registers << " registers\n" << s.text.substr(0, s.text.find("inline"));
    EXPECT_LE(r.registers, 128);
  }
}

}  // namespace
}  // namespace rlx
