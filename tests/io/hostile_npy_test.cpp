#include "rlx/base/file.h"
#include "rlx/io/byte_reader.h"
#include "rlx/io/model_file.h"
#include "rlx/io/npy.h"
#include "rlx/io/zip.h"
#include "tests/support/hostile.h"
#include "tests/support/scratch.h"

namespace rlx::io {
namespace {

using test::Attack, test::attack_name, test::expect_only_errors_near;

std::string npy(const std::string& header, size_t data = 0, int major = 1) {
  std::string out = "\x93NUMPY";
  out += char(major);
  out += '\0';
  for (int i = 0; i < (major == 1 ? 2 : 4); ++i) out += char(header.size() >> (8 * i) & 255);
  return out + header + std::string(data, '\0');
}

std::string shaped(const std::string& shape, size_t data = 0) {
  return npy("{'descr': '<f4', 'fortran_order': False, 'shape': " + shape + ", }", data);
}

const Attack kNpyAttacks[] = {
    {"empty_file", [] { return std::string(); }, "magic at offset 0: needs 6 bytes"},
    {"wrong_magic", [] { return std::string("\x93NUMPX\1\0", 8); }, "does not begin with"},
    {"version_unknown", [] { return npy("{}", 0, 9); }, "version 9.0 at offset 6 is unknown"},
    {"header_beyond_the_end", [] { return npy("{}").substr(0, 11); },
     "header at offset 10: needs 2 bytes, 1 are left"},
    {"header_length_absurd", [] { return std::string("\x93NUMPY\2\0\xff\xff\xff\x7f", 12); },
     "is above the limit"},
    {"header_is_code", [] { return npy("__import__('os').system('x')"); }, "expected '{'"},
    {"header_without_end", [] { return npy("{'descr': '<f4"); }, "the string has no end"},
    {"header_with_text_behind",
     [] { return npy("{'descr': '<f4', 'fortran_order': False, 'shape': ()} x", 4); },
     "text follows the dictionary"},
    {"key_unknown", [] { return npy("{'evil': 1}"); }, "the key 'evil' is unknown or repeated"},
    {"key_twice", [] { return npy("{'descr': '<f4', 'descr': '<f4'}"); },
     "the key 'descr' is unknown or repeated"},
    {"key_missing", [] { return npy("{'descr': '<f4', 'shape': ()}", 4); },
     "descr, fortran_order and shape are needed"},
    {"dtype_is_python_objects", [] { return npy("{'descr': '|O', 'fortran_order': False, 'shape': ()}", 8); },
     "dtype '|O' is not read"},
    {"dtype_structured",
     [] { return npy("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': ()}", 4); },
     "the structure with field 'a' is not read"},
    {"shape_negative", [] { return shaped("(-1,)", 4); }, "expected an extent"},
    {"shape_overflows", [] { return shaped("(4611686018427387904, 4611686018427387904)", 4); },
     "too many bytes"},
    {"shape_number_too_long", [] { return shaped("(99999999999999999999999,)", 4); }, "expected an extent"},
    {"shape_rank_absurd",
     [] {
       std::string shape = "(";
       for (int i = 0; i < 1000; ++i) shape += "1,";
       return shaped(shape + ")", 4);
     },
     "more than 64 dimensions"},
    {"shape_larger_than_data", [] { return shaped("(1000000,)", 4); }, "takes 4000000 bytes, the file has 4"},
    {"data_longer_than_shape", [] { return shaped("(1,)", 5); }, "takes 4 bytes, the file has 5"},
};

class HostileNpy : public testing::TestWithParam<Attack> {};

TEST_P(HostileNpy, is_refused_with_place_and_reason) {
  const std::string bytes = GetParam().bytes();
  const std::string message =
      test::message_of([&] { parse_npy(std::as_bytes(std::span(bytes)), nullptr, "evil"); });
  EXPECT_NE(message.find(GetParam().refusal), std::string::npos) << message;
  EXPECT_TRUE(message.starts_with("npy 'evil': ")) << message;
}

INSTANTIATE_TEST_SUITE_P(Io, HostileNpy, testing::ValuesIn(kNpyAttacks), attack_name);

// A good archive of one array, to be damaged. Layout: local header 30 + name, npy, central record 46 + name,
// end 22.
std::string good_npz(bool deflate = false) {
  const test::Scratch folder;
  const std::vector<std::byte> data(64, std::byte{5});
  const TensorView t{"abc", StorageType::of(DType::u8), {64}, data, nullptr};
  write_npz(folder.path("x.npz"), std::span(&t, 1), deflate);
  return read_file(folder.path("x.npz"));
}

std::string patched(std::string bytes, size_t from_end, std::string_view with) {
  bytes.replace(bytes.size() - from_end, with.size(), with);
  return bytes;
}

constexpr size_t kEnd = 22, kCentral = kEnd + 46 + 7;  // distances of the records from the end

const Attack kNpzAttacks[] = {
    {"empty_file", [] { return std::string(); }, "has no zip end record"},
    {"no_end_record", [] { return std::string(1000, 'x'); }, "has no zip end record"},
    {"directory_offset_absurd", [] { return patched(good_npz(), 6, "\xf0\xff\xff\xff"); },
     "reach beyond the end record"},
    {"directory_size_absurd", [] { return patched(good_npz(), 10, "\xf0\xff\xff\xff"); },
     "reach beyond the end record"},
    {"entry_count_absurd", [] { return patched(good_npz(), 14, "\xf0\xff\xf0\xff"); },
     "65520 entries do not fit"},
    {"central_signature_missing", [] { return patched(good_npz(), kCentral, "XXXX"); }, "signature missing"},
    {"encrypted", [] { return patched(good_npz(), kCentral - 8, std::string_view("\1\0", 2)); },
     "'abc.npy' is encrypted"},
    {"compression_unknown", [] { return patched(good_npz(), kCentral - 10, std::string_view("\x0e\0", 2)); },
     "uses compression method 14"},
    {"stored_with_two_sizes", [] { return patched(good_npz(), kCentral - 24, "\x01"); },
     "is stored, but has sizes"},
    {"content_beyond_the_end",
     [] { return patched(good_npz(), kCentral - 20, std::string_view("\xff\xff\0\0\xff\xff\0\0", 8)); },
     "content of 'abc.npy'"},
    {"bomb_claims_more_than_deflate_can_give",
     [] { return patched(good_npz(true), kCentral - 24, "\xf0\xff\xff\x7f"); }, "more than deflate can give"},
    {"inflates_to_another_size",
     [] { return patched(good_npz(true), kCentral - 24, std::string_view("\x10\x01", 2)); },
     "does not inflate to its 272 bytes"},
    {"local_offset_absurd", [] { return patched(good_npz(), kCentral - 42, "\xf0\xff\xff\xff"); },
     "lies beyond the data"},
    {"local_header_missing",
     [] { return patched(good_npz(), kCentral - 42, std::string_view("\1\0\0\0", 4)); },
     "local header of 'abc.npy'"},
    {"names_disagree", [] { return patched(good_npz(), kCentral - 46, "xyz"); },
     "another name than the central directory"},
    {"checksum_wrong", [] { return patched(good_npz(), kCentral - 16, "\xff\xff"); }, "fails its checksum"},
    {"extra_field_beyond_its_end",
     [] { return patched(good_npz(), kCentral - 30, std::string_view("\xff\0", 2)); }, "needs"},
    {"not_an_array",
     [] {
       std::string bytes = good_npz();
       for (size_t at; (at = bytes.find("abc.npy")) != bytes.npos;) bytes.replace(at, 7, "abc.exe");
       return bytes;
     },
     "entry 'abc.exe' is not called NAME.npy"},
    {"entries_overlap",
     [] {
       // The one central record given twice: both entries lie on the same bytes.
       std::string bytes = good_npz();
       const std::string record = bytes.substr(bytes.size() - kCentral, kCentral - kEnd);
       bytes.insert(bytes.size() - kEnd, record);
       bytes = patched(bytes, 14, std::string_view("\2\0\2\0", 4));
       bytes[bytes.size() - 10] = char(2 * record.size());
       return bytes;
     },
     "overlap"},
};

class HostileNpz : public testing::TestWithParam<Attack> {};

TEST_P(HostileNpz, is_refused_with_place_and_reason) {
  const std::string bytes = GetParam().bytes();
  const std::string message =
      test::message_of([&] { parse_npz(std::as_bytes(std::span(bytes)), nullptr, "evil"); });
  EXPECT_NE(message.find(GetParam().refusal), std::string::npos) << message;
  EXPECT_TRUE(message.starts_with("npz 'evil")) << message;
}

INSTANTIATE_TEST_SUITE_P(Io, HostileNpz, testing::ValuesIn(kNpzAttacks), attack_name);

TEST(HostileNpz, prefixes_and_changed_bytes_give_errors_only) {
  for (const bool deflate : {false, true}) {
    expect_only_errors_near(good_npz(deflate), [](const std::string& bytes) {
      parse_npz(std::as_bytes(std::span(bytes)), nullptr, "x");
    });
  }
  expect_only_errors_near(
      npy("{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3), }", 24),
      [](const std::string& bytes) { parse_npy(std::as_bytes(std::span(bytes)), nullptr, "x"); });
}

// An archive of 2 MB that claims 2 GiB, no more than deflate could give.
TEST(HostileNpz, a_bomb_is_listed_without_inflating_it_and_then_refused) {
  const test::Scratch folder;
  const std::string path = folder.path("bomb.npz");
  const std::string head = npy("{'descr': '|u1', 'fortran_order': False, 'shape': (2147483648,), }");
  std::string body(2200000, '\0');
  uint64_t state = 1;
  for (char& c : body) c = char((state = state * 6364136223846793005u + 1442695040888963407u) >> 56);
  ZipWriter zip(path);
  zip.add("zeros.npy", std::as_bytes(std::span(head)), std::as_bytes(std::span(body)), true);
  zip.finish();
  const auto claimed = uint32_t((uint64_t(1) << 31) + head.size());
  write_file(path, patched(read_file(path), kEnd + 46 + 9 - 24,
                           {reinterpret_cast<const char*>(&claimed), sizeof claimed}));

  const ModelFile file = ModelFile::open(path);
  ASSERT_EQ(file.tensors.size(), 1u);
  EXPECT_EQ(cat(file.tensors[0]), "u8[2147483648]");
  EXPECT_EQ(file.tensors[0].stored_bytes(), int64_t(1) << 31);
  const std::string refusal =
      cat("npz '", path, "': entry 'zeros.npy' inflates to ", claimed, " bytes; at most ",
          "1073741824 are allowed for this file (1 GiB, or 32 times its size)");
  EXPECT_EQ(test::message_of([&] { to_f32(file.tensors[0]); }), refusal);
  EXPECT_EQ(test::message_of([&] { read_npz(path); }), refusal);
}

TEST(Npz, listed_arrays_are_unpacked_when_asked_for) {
  const std::string bytes = good_npz(true);
  const auto listed = list_npz(std::as_bytes(std::span(bytes)), nullptr, "x");
  const auto read = parse_npz(std::as_bytes(std::span(bytes)), nullptr, "x");
  ASSERT_EQ(listed.size(), 1u);
  EXPECT_TRUE(listed[0].bytes.empty());
  EXPECT_EQ(listed[0].name, "abc");
  EXPECT_EQ(listed[0].stored_bytes(), 64);
  EXPECT_EQ(to_f32(listed[0]), to_f32(read[0]));
  EXPECT_EQ(as_text(unpacked(listed[0]).bytes), as_text(read[0].bytes));
}

}  // namespace
}  // namespace rlx::io
