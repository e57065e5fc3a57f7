// A format of one's own: its record is all that recognising, opening, describing and converting need.
#include "rlx/io/file_format.h"

#include <gtest/gtest.h>

#include "rlx/base/file.h"
#include "rlx/base/json.h"
#include "rlx/base/output_file.h"
#include "rlx/io/byte_reader.h"
#include "rlx/io/convert.h"
#include "tests/support/errors.h"
#include "tests/support/scratch.h"

namespace rlx::io {
namespace {

using test::message_of;

// "TOY1" | count u32 | for each tensor: extent u32, that many bytes.
void open_toy(const Input& input, ModelFile& out) {
  ByteReader in(input.bytes(), cat("toy '", input.path(), "'"));
  in.take(4, "magic");
  const uint32_t count = in.read<uint32_t>("count");
  for (uint32_t i = 0; i < count; ++i) {
    const uint32_t extent = in.read<uint32_t>("extent");
    const auto bytes = in.take(extent, "data");
    out.tensors.push_back({cat("t", i), StorageType::of(DType::u8), {extent}, bytes, input.owner(), {}});
  }
}

void write_toy(const std::string& path, const WriteJob& job) {
  OutputFile out(path);
  const auto number = [&](size_t n) {
    const auto value = uint32_t(n);
    out.write(std::as_bytes(std::span(&value, 1)));
  };
  out.write("TOY1");
  number(job.tensors.size());
  for (size_t i = 0; i < job.tensors.size(); ++i) {
    const auto bytes = bytes_to_write(job.tensors, i, job.load);
    number(bytes.size());
    out.write(bytes);
  }
  out.finish();
  job.notes.push_back("names are lost");
}

const FileFormat kToy{
    .name = "toy",
    .ending = ".toy",
    .summary = "bytes for a test",
    .recognises = [](const Input& input) { return input.text().starts_with("TOY1"); },
    .open = open_toy,
    .can_hold = [](const StorageType& type) { return type.dtype == DType::u8; },
    .write = write_toy,
};

TEST(FileFormat, a_new_format_takes_part_everywhere) {
  const test::Scratch folder;
  const FormatTable table = FormatTable::standard().with(kToy);
  EXPECT_EQ(table.names(), "toy, gguf, safetensors, npy or npz");
  EXPECT_EQ(table.written_endings(), ".toy, .gguf, .safetensors or .npz");

  const std::vector<std::byte> bytes(5, std::byte{7});
  const TensorView t{"a", StorageType::of(DType::u8), {5}, bytes, nullptr, {}};
  write_safetensors(folder.path("a.safetensors"), std::span(&t, 1));
  const ConvertReport there = convert_file(folder.path("a.safetensors"), folder.path("b.toy"), {}, table);
  EXPECT_EQ(there.to, "toy");
  EXPECT_EQ(there.notes, std::vector<std::string>{"names are lost"});
  const ConvertReport back = convert_file(folder.path("b.toy"), folder.path("c.npz"), {}, table);
  EXPECT_EQ(back.from, "toy");

  const ModelFile file = ModelFile::open(folder.path("b.toy"), table);
  EXPECT_EQ(file.format, &kToy);
  const Json described = Json::parse(describe_json(file), "described");
  EXPECT_EQ(described.at("kind").string(), "toy");
  EXPECT_EQ(described.at("bytes").integer(), 5);
  EXPECT_EQ(message_of([&] { file.tokenizer(); }),
            "'" + folder.path("b.toy") + "' is a file of tensors (toy) and holds no tokenizer");

  // A file cut short is recognised by its name and refused by its reader.
  write_file(folder.path("cut.toy"), "TO");
  EXPECT_EQ(message_of([&] { ModelFile::open(folder.path("cut.toy"), table); }),
            "toy '" + folder.path("cut.toy") + "': magic at offset 0: needs 4 bytes, 2 are left");
  const TensorView wide{"w", StorageType::of(DType::i32), {1}, std::span(bytes).first(4), nullptr, {}};
  write_safetensors(folder.path("w.safetensors"), std::span(&wide, 1));
  EXPECT_EQ(message_of([&] { convert_file(folder.path("w.safetensors"), folder.path("w.toy"), {}, table); }),
            "convert: toy files cannot hold, or nothing decodes: 'w' (i32)");
}

TEST(FileFormat, every_format_says_what_help_and_convert_need) {
  for (const FileFormat* f : FormatTable::standard().formats()) {
    EXPECT_FALSE(f->name.empty());
    EXPECT_TRUE(f->ending.starts_with('.')) << f->name;
    EXPECT_FALSE(f->summary.empty()) << f->name;
    EXPECT_EQ(f->write == nullptr, f->can_hold == nullptr) << f->name;
  }
}

}  // namespace
}  // namespace rlx::io
