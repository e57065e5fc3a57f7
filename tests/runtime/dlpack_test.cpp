// Tensors of others as operands and results, without copies.
#include "rlx/runtime/dlpack.h"

#include <gtest/gtest.h>

#include "rlx/base/error.h"
#include "tests/support/graphs.h"

namespace rlx {
namespace {

constexpr DlType kF32{2, 32, 1};

DlTensor tensor(void* data, std::vector<int64_t>& dims, DlType type = kF32) {
  return {data, {1, 0}, int32_t(dims.size()), type, dims.data(), nullptr, 0};
}

std::string error_of(DeviceCall& f, std::initializer_list<DlInput> inputs) {
  try {
    f.run(inputs);
    return "";
  } catch (const Error& e) {
    return e.message();
  }
}

TEST(Dlpack, operands_are_read_and_results_written_where_they_lie) {
  const ir::Graph g =
      test::graph("graph @f(x: f32[N,2], w: f32[2]) { y = mul(x, w) z = neg(x) return y, z }");
  float x[] = {1, 2, 3, 4, 5, 6, 7, 8}, w[] = {10, 100};
  std::vector<int64_t> dims{3, 2}, two{2};
  DlTensor tx = tensor(x, dims);
  tx.byte_offset = 2 * sizeof(float);  // from 3 on
  std::vector<DlTensorOwner> out;
  {
    DeviceCall f(g);
    out = f.run({{"x", tx}, {"w", tensor(w, two)}});
    x[2] = -1;  // nobody kept a copy
    EXPECT_EQ(static_cast<float*>(f.run({{"x", tx}, {"w", tensor(w, two)}})[0]->tensor.data)[0], -10);
  }
  ASSERT_EQ(out.size(), 2u);
  const DlTensor& y = out[0]->tensor;
  EXPECT_EQ(y.rank, 2);
  EXPECT_EQ(y.dims[0], 3);
  EXPECT_EQ(y.dims[1], 2);
  EXPECT_EQ(y.type.code, 2);
  EXPECT_EQ(y.type.bits, 32);
  EXPECT_EQ(y.device.type, 1);
  const float want[] = {30, 400, 50, 600, 70, 800};
  for (int i = 0; i < 6; ++i) EXPECT_EQ(static_cast<const float*>(y.data)[i], want[i]);
  EXPECT_EQ(static_cast<const float*>(out[1]->tensor.data)[5], -8);
  DlManagedTensor* const given = out[1].release();  // as another library takes it
  given->deleter(given);
}

TEST(Dlpack, what_is_wrong_is_told_in_one_error) {
  const ir::Graph g = test::graph("graph @f(x: f32[2,2], y: i32[2]) { z = neg(x) return z, y }");
  DeviceCall f(g);
  float x[4] = {};
  std::vector<int64_t> dims{2, 2}, turned{1, 2}, two{2};
  DlTensor t = tensor(x, dims), other = tensor(x, two);
  t.strides = turned.data();
  EXPECT_EQ(error_of(f, {{"x", t}, {"y", other}}),
            "dlpack: 'x' is strided; it must be dense and row-major; 'y' is i32[2], the value is f32[2]");
  t.strides = nullptr;
  t.device = {2, 0};
  EXPECT_EQ(
      error_of(f, {{"x", t}, {"q", other}}),
      "dlpack: input 'y' (i32[2]) is given 0 times; 'x' lies on device (2, 0), not on (1, 0); 'q' is no input");
  other.type = {2, 32, 4};
  EXPECT_EQ(error_of(f, {{"x", tensor(x, dims)}, {"y", other}}),
            "dlpack: 'y' has a type that is not known: code 2, 32 bits, 4 lanes");
}

}  // namespace
}  // namespace rlx
