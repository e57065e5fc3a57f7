// Resampling by every rule, to more and to fewer elements, and its transpose.
#include "tests/backend/cuda/texts.h"

namespace rlx {
namespace {

using test::TextCase;

std::vector<TextCase> resampled() {
  std::vector<TextCase> out;
  for (const char* type : {"f32", "f16", "c64"}) {
    for (const char* rule : {"mode=nearest", "mode=linear", "mode=linear, align_corners=true"}) {
      out.push_back(
          {cat("graph @f(x: ", type, "[2,3,17,20]) { y = resize(x, ", rule, ", size=(40,31)) return y }")});
      out.push_back({cat("graph @f(x: ", type, "[5,60]) { y = resize(x, ", rule, ", size=(7)) return y }")});
      out.push_back({cat("graph @f(x: ", type, "[2,40,31]) { y = resize_backward(x, ", rule,
                         ", size=(17,20)) return y }")});
      out.push_back(
          {cat("graph @f(x: ", type, "[5,7]) { y = resize_backward(x, ", rule, ", size=(60)) return y }")});
    }
  }
  out.push_back({"graph @f(x: f32[2,4,5,6]) { y = resize(x, mode=linear, size=(9,3,11)) return y }"});
  out.push_back(
      {"graph @f(x: f32[2,9,3,11]) { y = resize_backward(x, mode=linear, size=(4,5,6)) return y }"});
  return out;
}

TEST(CudaResize, has_kernels_for_every_rule) { test::expect_kernels(resampled()); }

class ResizeOnDevice : public test::OnDevice {};
TEST_F(ResizeOnDevice, and_its_transpose) { test::expect_same_on_device(resampled()); }

}  // namespace
}  // namespace rlx
