#include "rlx/io/literal.h"

#include <gtest/gtest.h>

#include "rlx/io/npy.h"
#include "rlx/io/safetensors.h"
#include "tests/support/data.h"
#include "tests/support/errors.h"
#include "tests/support/scratch.h"

namespace rlx::io {
namespace {

TEST(IoLiteral, goes_to_a_file_and_back_equal) {
  const test::Scratch folder;
  std::vector<Literal> literals;
  std::vector<TensorView> views;
  for (int d = 0; d < kDTypeCount; ++d) {
    const Shape shape(DType(d), Dims{2, 3});
    literals.push_back(DType(d) == DType::c64
                           ? Literal::complexes(shape, std::vector<std::complex<double>>(6, {1, -2}))
                           : Literal::reals(shape, std::vector<double>{0, 1, 1, 0, 1, 0}));
    views.push_back(to_view(std::string(dtype_name(DType(d))), literals.back()));
  }
  write_safetensors(folder.path("x.safetensors"), views);
  write_npz(folder.path("x.npz"), views);
  const SafetensorsFile file = SafetensorsFile::open(folder.path("x.safetensors"));
  const auto arrays = read_npz(folder.path("x.npz"));
  for (size_t i = 0; i < views.size(); ++i) {
    EXPECT_TRUE(to_literal(file.tensor(views[i].name)) == literals[i]) << views[i].name;
    EXPECT_TRUE(to_literal(arrays[i]) == literals[i]) << views[i].name;
  }
}

TEST(IoLiteral, borrows_aligned_bytes_and_copies_others) {
  const auto buffer = std::make_shared<std::vector<std::byte>>(16);
  const std::span<const std::byte> bytes(*buffer);
  const StorageType f32 = StorageType::of(DType::f32);
  EXPECT_EQ(to_literal({"a", f32, {2}, bytes.subspan(4, 8), buffer}).bytes().data(), bytes.data() + 4);
  const Literal copy = to_literal({"a", f32, {2}, bytes.subspan(1, 8), buffer});
  EXPECT_EQ(reinterpret_cast<uintptr_t>(copy.bytes().data()) % 4, 0u);
  // Bytes nobody owns may go away: copied.
  EXPECT_NE(to_literal({"a", f32, {2}, bytes.subspan(4, 8), nullptr}).bytes().data(), bytes.data() + 4);
}

TEST(IoLiteral, decodes_block_formats) {
  std::vector<float> values(32);
  for (size_t i = 0; i < 32; ++i) values[i] = float(i) - 16;
  const quant::BlockFormat& q8 = *quant::find_format("q8_0");
  std::vector<std::byte> packed(34);
  quant::encode(q8, values, packed);
  const Literal literal = to_literal({"q", StorageType::of(q8), {1, 32}, packed, nullptr});
  EXPECT_EQ(literal.dtype(), DType::f32);
  EXPECT_NEAR(literal.real_at(31), 15, 0.1);
}

TEST(IoLiteral, refuses_what_no_literal_can_be) {
  const std::vector<std::byte> bytes(4, std::byte{2});
  EXPECT_EQ(test::message_of([&] { to_literal({"u", {"u16", 1, 2}, {2}, bytes, nullptr}); }),
            "io: tensor 'u' has type u16, which no tensor of a graph can have");
  EXPECT_EQ(test::message_of([&] { to_literal({"b", StorageType::of(DType::bool_), {4}, bytes, nullptr}); }),
            "io: bool tensor 'b' has the byte 2 at element 0; 0 or 1 expected");
}

}  // namespace
}  // namespace rlx::io
