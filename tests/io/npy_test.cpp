#include "rlx/io/npy.h"

#include <cstring>

#include "rlx/base/file.h"
#include "rlx/io/zip.h"
#include "tests/support/errors.h"
#include "tests/support/scratch.h"

#include <gtest/gtest.h>

namespace rlx::io {
namespace {

using test::message_of;

// Files written by NumPy, see tests/io/data/make_numpy.py.
std::string numpy_file(const std::string& name) { return "tests/io/data/" + name; }

template <class T>
std::vector<T> values(const TensorView& t) {
  std::vector<T> out(t.bytes.size() / sizeof(T));
  std::memcpy(out.data(), t.bytes.data(), t.bytes.size());
  return out;
}

const TensorView& named(const std::vector<TensorView>& all, std::string_view name) {
  for (const TensorView& t : all) {
    if (t.name == name) return t;
  }
  throw invalid("test: no array '", name, "'");
}

TEST(Npy, converts_fortran_order) {
  const TensorView t = read_npy(numpy_file("fortran.npy"));
  EXPECT_EQ(t.name, "fortran");
  EXPECT_EQ(t.dims, (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(values<float>(t), (std::vector<float>{0, 1, 2, 3, 4, 5}));
  const auto cube = values<int16_t>(read_npy(numpy_file("fortran3.npy")));
  for (int16_t i = 0; i < 24; ++i) EXPECT_EQ(cube[size_t(i)], i);
}

TEST(Npy, converts_big_endian) {
  EXPECT_EQ(values<float>(read_npy(numpy_file("big_endian.npy"))), (std::vector<float>{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(values<float>(read_npy(numpy_file("big_endian_complex.npy"))),
            (std::vector<float>{1, 2, -0.0f, -3.5}));
}

TEST(Npz, reads_what_numpy_wrote_stored_and_deflated) {
  for (const char* file : {"stored.npz", "deflated.npz"}) {
    const auto all = read_npz(numpy_file(file));
    EXPECT_EQ(values<uint8_t>(named(all, "bool_")), (std::vector<uint8_t>{1, 0}));
    EXPECT_EQ(named(all, "bool_").type.dtype, DType::bool_);
    EXPECT_EQ(values<uint8_t>(named(all, "u8")), (std::vector<uint8_t>{1, 255}));
    EXPECT_EQ(values<int8_t>(named(all, "i8")), (std::vector<int8_t>{-128, 127}));
    EXPECT_EQ(values<int16_t>(named(all, "i16")), (std::vector<int16_t>{-300, 300}));
    EXPECT_EQ(values<int32_t>(named(all, "i32")), (std::vector<int32_t>{-70000, 70000}));
    EXPECT_EQ(values<int64_t>(named(all, "i64")),
              (std::vector<int64_t>{-(int64_t(1) << 40), int64_t(1) << 40}));
    EXPECT_EQ(values<uint32_t>(named(all, "u32")), (std::vector<uint32_t>{0, UINT32_MAX}));
    EXPECT_EQ(to_f32(named(all, "f16")), (std::vector<float>{0.5, -65504}));
    EXPECT_EQ(values<float>(named(all, "f32")), (std::vector<float>{0, 1, 2, 3, 4, 5}));
    EXPECT_EQ(values<double>(named(all, "f64")), (std::vector<double>{0.1}));
    EXPECT_TRUE(named(all, "f64").dims.empty());
    EXPECT_EQ(values<float>(named(all, "c64")), (std::vector<float>{1, 2}));
    EXPECT_EQ(named(all, "c64").type.dtype, DType::c64);
    EXPECT_EQ(named(all, "empty").dims, (std::vector<int64_t>{0, 3}));
  }
  EXPECT_EQ(values<float>(named(read_npz(numpy_file("deflated.npz")), "zeros")),
            std::vector<float>(4096, 0.0f));
}

TEST(Npy, every_dtype_of_ours_survives_a_round_trip) {
  const test::Scratch folder;
  std::vector<std::byte> data(48);
  for (size_t i = 0; i < data.size(); ++i) data[i] = std::byte(i * 37);
  std::vector<TensorView> all;
  for (int d = 0; d < kDTypeCount; ++d) {
    const StorageType type = StorageType::of(DType(d));
    const TensorView t{
        std::string(type.name), type, {2, 3}, std::span(data).first(size_t(6 * type.bytes)), nullptr};
    const std::string path = folder.path(t.name + ".npy");
    write_npy(path, t);
    const TensorView back = read_npy(path);
    EXPECT_TRUE(back.type == t.type) << t.name;
    EXPECT_EQ(back.dims, t.dims);
    EXPECT_EQ(values<uint8_t>(back), values<uint8_t>(t));
    EXPECT_EQ(reinterpret_cast<uintptr_t>(back.bytes.data()) % 64, 0u);
    all.push_back(t);
  }
  for (const bool deflate : {false, true}) {
    write_npz(folder.path("all.npz"), all, deflate);
    const auto back = read_npz(folder.path("all.npz"));
    ASSERT_EQ(back.size(), all.size());
    for (size_t i = 0; i < all.size(); ++i) {
      EXPECT_EQ(back[i].name, all[i].name);
      EXPECT_TRUE(back[i].type == all[i].type);
      EXPECT_EQ(values<uint8_t>(back[i]), values<uint8_t>(all[i]));
    }
  }
}

TEST(Npz, equal_content_gives_equal_bytes) {
  const test::Scratch folder;
  const std::vector<std::byte> data(4000, std::byte{3});
  const TensorView t{"caf\xc3\xa9/x", StorageType::of(DType::f32), {1000}, data, nullptr};
  write_npz(folder.path("a.npz"), std::span(&t, 1), true);
  write_npz(folder.path("b.npz"), std::span(&t, 1), true);
  const std::string a = read_file(folder.path("a.npz"));
  EXPECT_EQ(a, read_file(folder.path("b.npz")));
  EXPECT_LT(a.size(), 500u);
  EXPECT_EQ(read_npz(folder.path("a.npz"))[0].name, t.name);
}

TEST(Zip, holds_more_entries_than_16_bits_count) {
  const test::Scratch folder;
  const size_t count = 66000;
  ZipWriter zip(folder.path("many.zip"));
  for (size_t i = 0; i < count; ++i) zip.add(cat(i), {}, {}, false);
  zip.finish();
  const std::string bytes = read_file(folder.path("many.zip"));
  const auto entries = read_zip(std::as_bytes(std::span(bytes)), "zip");
  ASSERT_EQ(entries.size(), count);
  EXPECT_EQ(entries.back().name, cat(count - 1));
}

TEST(Npy, writer_refuses_what_the_format_cannot_hold) {
  const test::Scratch folder;
  const std::vector<std::byte> data(18);
  const TensorView q{"q", StorageType::of(*quant::find_format("q4_0")), {32}, data, nullptr};
  EXPECT_EQ(message_of([&] { write_npy(folder.path("q.npy"), q); }),
            "npy write: tensor 'q' has type q4_0, which .npy cannot hold; decode it first");
  const TensorView x{"x", StorageType::of(DType::f32), {4}, data, nullptr};
  EXPECT_EQ(message_of([&] { write_npy(folder.path("x.npy"), x); }),
            "npy write: tensor 'x' f32[4] does not fit its 18 bytes");
  const TensorView y{"y", StorageType::of(DType::i8), {18}, data, nullptr}, twice[] = {y, y};
  EXPECT_EQ(message_of([&] { write_npz(folder.path("y.npz"), twice); }),
            "npz write: tensor 'y' was given twice");
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

}  // namespace
}  // namespace rlx::io
