#include "rlx/ir/literal.h"

#include <gtest/gtest.h>

#include <cmath>

namespace rlx {
namespace {

TEST(Literal, casts_truncate_saturate_and_round_half_to_even) {
  const Literal x = Literal::of<double>({5}, {2.9, -2.9, 300, -300, NAN});
  EXPECT_EQ(cat(x.cast(DType::i8)), "i8[5]{2, -2, 127, -128, 0}");
  EXPECT_EQ(cat(x.cast(DType::u8)), "u8[5]{2, 0, 255, 0, 0}");
  EXPECT_EQ(cat(x.cast(DType::bool_)), "bool[5]{true ...}");
  // 2049 lies between two f16 values, 2048 and 2050: the even one.
  EXPECT_EQ(cat(Literal::of<float>({2}, {2049, 2051}).cast(DType::f16)), "f16[2]{2048.0, 2052.0}");
  // Rounding through f32 first would go the other way.
  EXPECT_EQ(cat(Literal::of<double>({1}, {2049 + 1e-12}).cast(DType::f16)), "f16[1]{2050.0}");
  EXPECT_EQ(cat(Literal::of<int64_t>({1}, {int64_t(1) << 60}).cast(DType::i32)), "i32[1]{2147483647}");
}

TEST(Literal, copies_share_until_one_is_written) {
  Literal a = Literal::of<float>({2}, {1, 2});
  const Literal b = a;
  EXPECT_EQ(a.bytes().data(), b.bytes().data());
  a.mutable_data<float>()[0] = 5;
  EXPECT_EQ(cat(b), "f32[2]{1.0, 2.0}");
  EXPECT_EQ(cat(a), "f32[2]{5.0, 2.0}");
}

TEST(Literal, borrowed_bytes_keep_their_owner_and_are_never_written) {
  auto owner = std::make_shared<std::vector<float>>(std::vector<float>{1, 2});
  std::weak_ptr<std::vector<float>> alive = owner;
  Literal x = Literal::borrow(parse_shape("f32[2]"), std::as_bytes(std::span(*owner)), owner);
  const float* original = owner->data();
  owner.reset();
  EXPECT_FALSE(alive.expired());
  x.mutable_data<float>()[0] = 9;
  EXPECT_TRUE(alive.expired()) << "after the copy nothing holds the old bytes";
  EXPECT_NE(reinterpret_cast<const float*>(x.bytes().data()), original);
}

TEST(Literal, refuses_what_does_not_fit) {
  EXPECT_THROW(Literal::zeros(parse_shape("f32[n]")), Error);
  EXPECT_THROW(Literal::of<float>({3}, {1, 2}), Error);
  EXPECT_THROW(Literal::borrow(parse_shape("f32[2]"), {}, nullptr), Error);
  EXPECT_THROW(Literal::of<complex64>({1}, {complex64(1, 2)}).cast(DType::f32), Error);
}

}  // namespace
}  // namespace rlx
