// Without a GPU: every operator's every sample is built for a device that only compiles, and every kernel
// it asks for compiles.
#include <gtest/gtest.h>

#include <set>

#include "rlx/backend/builder.h"
#include "rlx/backend/cuda/device.h"
#include "rlx/ops/all.h"
#include "rlx/runtime/pipeline.h"
#include "tests/support/samples.h"

namespace rlx::cuda {
namespace {

class Compiler : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (const std::string why = compiler_problem(); !why.empty()) GTEST_SKIP() << why;
  }
};

// One architecture in each run of the whole table: the texts are the same, and compiling all takes a minute.
INSTANTIATE_TEST_SUITE_P(Cuda, Compiler, testing::Values("sm_90a"));

// Operators that some sample may leave to the host. The list only becomes shorter.
const std::set<std::string> kMayRunOnHost = {"eigh", "qr", "svd"};

TEST_P(Compiler, makes_code_of_every_operator) {
  const Device device(GetParam(), nullptr);
  const backend::Builder builder(device, 1);
  size_t on_host = 0, on_device = 0;
  std::set<std::string> names;
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
          ++(s.kernel == "on_host" ? on_host : on_device);
          if (s.kernel != "on_host") continue;
          names.insert(s.op);
          EXPECT_TRUE(kMayRunOnHost.contains(s.op))
              << s.op << " runs on the host; it must have a kernel, see docs/cuda.md";
        }
      } catch (const std::exception& e) {
        ADD_FAILURE() << e.what();
      }
    }
  }
  RecordProperty("operators_on_host", join(std::vector<std::string>(names.begin(), names.end())));
  RecordProperty("steps_on_host", int(on_host));
  RecordProperty("steps_on_device", int(on_device));
  EXPECT_GT(on_device, 10 * on_host);
  EXPECT_GT(device.functions().compile_waiting(), 100u);
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
