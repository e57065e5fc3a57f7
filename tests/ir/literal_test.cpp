#include "rlx/ir/literal.h"

#include <gtest/gtest.h>

#include <cmath>

#include "rlx/ir/named_literals.h"
#include "tests/support/errors.h"

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

TEST(Literal, another_element_type_than_its_own_is_a_user_error) {
  Literal x = Literal::zeros(Shape(DType::f32, {3, 4}));
  const std::string says =
      "literal: elements of f32[3,4] were asked for as f64; cast(DType::f64) converts them";
  EXPECT_EQ(test::message_of([&] { x.data<double>(); }), says);
  EXPECT_EQ(test::message_of([&] { x.mutable_data<double>(); }), says);
  EXPECT_EQ(x.cast(DType::f64).data<double>().size(), 12u);
}

TEST(Literal, an_element_beyond_the_end_is_a_user_error) {
  const Literal x = Literal::of<float>({2}, {1, 2});
  EXPECT_EQ(test::message_of([&] { x.real_at(2); }), "literal: element 2 of f32[2] was asked for; it has 2");
  EXPECT_EQ(test::message_of([&] { x.integer_at(-1); }),
            "literal: element -1 of f32[2] was asked for; it has 2");
  EXPECT_EQ(test::message_of([&] { x.complex_at(9); }),
            "literal: element 9 of f32[2] was asked for; it has 2");
  EXPECT_EQ(test::message_of([&] { Literal::zeros(Shape(DType::c64, {1})).real_at(0); }),
            "literal: a complex element has no real form; complex_at reads it");
}

TEST(Literal, a_wrong_number_of_values_is_a_user_error) {
  const Shape shape(DType::f32, {3});
  EXPECT_EQ(test::message_of([&] { Literal::reals(shape, std::vector<double>{1, 2}); }),
            "literal: 2 values for f32[3]; it has 3");
  EXPECT_EQ(test::message_of([&] { Literal::integers(shape, std::vector<int64_t>{1}); }),
            "literal: 1 values for f32[3]; it has 3");
  EXPECT_EQ(test::message_of([&] { Literal::zeros(shape).reshaped({2}); }),
            "literal: f32[3] cannot be seen as f32[2]; it has 3 elements");
}

TEST(NamedLiterals, an_unknown_name_tells_those_there_are) {
  const ir::NamedLiterals out = {{"loss", Literal()}, {"logits", Literal()}};
  EXPECT_EQ(test::message_of([&] { out.at("out"); }), "tensors: none is named 'out'; there are logits, loss");
  EXPECT_EQ(test::message_of([&] { ir::NamedLiterals().at("y"); }),
            "tensors: none is named 'y'; there are none");
  EXPECT_EQ(out.at("loss"), Literal());
}

TEST(Literal, refuses_what_does_not_fit) {
  EXPECT_THROW(Literal::zeros(parse_shape("f32[n]")), Error);
  EXPECT_THROW(Literal::of<float>({3}, {1, 2}), Error);
  EXPECT_THROW(Literal::borrow(parse_shape("f32[2]"), {}, nullptr), Error);
  EXPECT_THROW(Literal::of<complex64>({1}, {complex64(1, 2)}).cast(DType::f32), Error);
}

}  // namespace
}  // namespace rlx
