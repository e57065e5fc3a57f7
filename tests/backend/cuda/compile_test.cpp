// Without a GPU: every operator's every sample is built for devices that only compile, and every kernel it asks for compiles, for the oldest
// processor and for Hopper, and keeps its numbers in registers.
#include <gtest/gtest.h>

#include <map>

#include "rlx/backend/builder.h"
#include "rlx/backend/cuda/device.h"
#include "rlx/ops/all.h"
#include "rlx/runtime/pipeline.h"
#include "tests/backend/cuda/cubin.h"
#include "tests/support/graphs.h"
#include "tests/support/samples.h"

namespace rlx::cuda {
namespace {

class Compiler : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (const std::string why = compiler_problem(); !why.empty()) GTEST_SKIP() << why;
  }
};

INSTANTIATE_TEST_SUITE_P(Cuda, Compiler, testing::Values("sm_90a", "sm_80"));

// Kernels whose threads may have memory of their own, which is slow, and how many bytes. Others keep all numbers in registers. Sines and cosines of
// large numbers have a table there. The list only becomes shorter.
const std::map<std::string, int> kMayHaveStack = {
    {"region", 40}, {"complex_elements", 40}, {"rotations", 32},  {"splat_boxes", 40},
    {"apply", 8},   {"substitute", 8},        {"splat_blend", 8},
};

TEST_P(Compiler, makes_code_of_every_operator) {
  const Device device(GetParam(), nullptr);
  const backend::Builder builder(device, 1);
  for (const ir::OpDef* op : test::ops_of(ops::table())) {
    if (op->traits.leaf) continue;
    for (size_t i = 0; i < op->samples().size(); ++i) {
      SCOPED_TRACE(cat(op->name, " sample ", i));
      try {
        const auto c = test::make_case(*op, i);
        std::vector<passes::Remark> remarks;
        const auto program = builder.build(runtime::specialise(c.graph, device, {}, remarks));
        for (const std::string& wrong : backend::verify_plan(program->plan())) ADD_FAILURE() << wrong;
        for (const auto& s : program->plan().steps) {
          EXPECT_FALSE(backend::runs_by_rule(s) || s.kernel == "on_host")
              << s.op << " runs on the host; it must have a kernel, see docs/cuda.md";
        }
      } catch (const std::exception& e) {
        ADD_FAILURE() << e.what();
      }
    }
  }
  EXPECT_GT(device.functions().compile_waiting(), 100u);
  for (const Source& source : device.functions().sources()) {
    const test::KernelResources r = test::resources_of(compile(source, GetParam()));
    EXPECT_GT(r.registers, 0) << source.entry;
    const auto allowed = kMayHaveStack.find(source.entry);
    EXPECT_LE(r.stack, allowed == kMayHaveStack.end() ? 0 : allowed->second)
        << source.entry << ": bytes of a thread in memory, beside " << r.registers << " registers\n"
        << source.text;
  }
}

TEST(Compiler, steps_keep_the_texts_of_their_kernels) {
  const Device device("sm_90a", nullptr);
  std::vector<passes::Remark> remarks;
  const ir::Graph g = test::graph(
      "graph @f(x: f32[64,1000], i: i32[3]) { y = softmax(x, axis=1) z = gather(y, i, axis=0) return z, y }");
  const auto program = backend::Builder(device, 1).build(runtime::specialise(g, device, {}, remarks));
  for (const auto& step : program->plan().steps) {
    ASSERT_FALSE(step.sources.empty()) << program->plan().text();
    EXPECT_NE(step.sources[0]->find("__global__"), std::string::npos) << *step.sources[0];
  }
}

TEST(Compiler, says_what_it_could_not_compile) {
  if (!compiler_problem().empty()) GTEST_SKIP() << compiler_problem();
  try {
    compile({"broken", "extern \"C\" __global__ void broken() { nonsense; }"}, "sm_90a");
    FAIL() << "it compiled";
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::internal);
    EXPECT_NE(e.message().find("kernel 'broken' does not compile for sm_90a"), std::string::npos)
        << e.message();
    EXPECT_NE(e.message().find("nonsense"), std::string::npos);
  }
}

}  // namespace
}  // namespace rlx::cuda
