// Products of many rows with packed weights, without a GPU: which ones there are, and that their kernels compile without spills.
#include "rlx/backend/cuda/nodes/packed_groups.h"

#include <gtest/gtest.h>

#include "rlx/backend/cuda/compile/compiler.h"

namespace rlx::cuda {
namespace {

PackedSizes sizes(const char* format, DType type) {
  return {.format = quant::find_format(format), .type = type, .m = 2048, .n = 4096, .k = 4096};
}

TEST(CudaPackedGroups, compile_without_spills) {
  if (const std::string why = compiler_problem(); !why.empty()) GTEST_SKIP() << why;
  const Device device("sm_90a", nullptr);
  for (const char* format : {"q4_k", "q5_k", "q6_k", "q4_0", "q8_0"}) {
    for (const DType type : {DType::f32, DType::bf16}) {
      SCOPED_TRACE(cat(format, " ", type));
      const auto made = PackedGroups::make(device, sizes(format, type));
      ASSERT_TRUE(made);
      const std::string report = resource_report(made->source(), "sm_90a");
      EXPECT_NE(report.find("0 bytes spill stores"), std::string::npos) << report;
    }
  }
}

TEST(CudaPackedGroups, are_for_many_rows_of_known_formats_on_hopper) {
  const Device hopper("sm_90a", nullptr), ampere("sm_80", nullptr);
  PackedSizes p = sizes("q4_k", DType::bf16);
  EXPECT_TRUE(PackedGroups::make(hopper, p));
  EXPECT_FALSE(PackedGroups::make(ampere, p));
  p.m = 64;
  EXPECT_FALSE(PackedGroups::make(hopper, p));
  EXPECT_FALSE(PackedGroups::make(hopper, sizes("q2_k", DType::bf16)));
  p = sizes("q4_0", DType::bf16);
  p.k = 96;  // no whole number of chunks
  EXPECT_FALSE(PackedGroups::make(hopper, p));
}

}  // namespace
}  // namespace rlx::cuda
