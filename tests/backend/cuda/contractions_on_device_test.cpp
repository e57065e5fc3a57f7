// Contractions whose axes no stride joins.
#include "tests/backend/cuda/texts.h"

namespace rlx {
namespace {

using test::TextCase;

std::vector<TextCase> contractions() {
  std::vector<TextCase> out;
  for (const char* type : {"f32", "f64", "f16", "c64", "i32"}) {
    // Free axes around a contracted one, contracted axes in another order, batch axes inside.
    out.push_back(
        {cat("graph @f(a: ", type, "[7,20,9], b: ", type,
             "[20,33]) { y = dot_general(a, b, lhs_contracting=[1], rhs_contracting=[0]) return y }"),
         {},
         1e-4});
    out.push_back(
        {cat("graph @f(a: ", type, "[6,5,8,11], b: ", type,
             "[8,70,5]) { y = dot_general(a, b, lhs_contracting=[1,2], rhs_contracting=[2,0]) return y }"),
         {},
         1e-4});
    out.push_back(
        {cat("graph @f(a: ", type, "[6,3,8,4,5], b: ", type,
             "[8,9,3,5,10]) { y = dot_general(a, b, lhs_contracting=[2,4], rhs_contracting=[0,3], lhs_batch=[1], rhs_batch=[2]) return y }"),
         {},
         1e-4});
  }
  return out;
}

TEST(CudaContractions, have_kernels_for_axes_in_any_order) { test::expect_kernels(contractions()); }

class ContractionsOnDevice : public test::OnDevice {};
TEST_F(ContractionsOnDevice, over_axes_in_any_order) { test::expect_same_on_device(contractions()); }

}  // namespace
}  // namespace rlx
