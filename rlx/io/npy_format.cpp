// NumPy's files in the table of file formats. They have no place for metadata.
#include <filesystem>

#include "rlx/io/model_file.h"
#include "rlx/io/npy.h"

namespace rlx::io {
namespace {

std::string stem(const std::string& path) { return std::filesystem::path(path).stem().string(); }

void open_npy(const Input& input, ModelFile& out) {
  out.tensors.push_back(parse_npy(input.bytes(), input.owner(), input.path()));
  out.tensors.back().name = stem(input.path());
}

void write(const std::string& path, const WriteJob& job) {
  const size_t entries = job.in.gguf ? job.in.gguf->entries().size() : job.in.metadata.size();
  if (entries > 0)
    job.notes.push_back(cat(entries, " metadata entries have no place in .npz and were left out"));
  write_npz(path, job.tensors, job.deflate, job.load);
}

}  // namespace

extern const FileFormat kNpyFormat{
    .name = "npy",
    .ending = ".npy",
    .summary = "array of NumPy",
    .recognises = [](const Input& input) { return input.text().starts_with("\x93NUMPY"); },
    .open = open_npy,
};

extern const FileFormat kNpzFormat{
    .name = "npz",
    .ending = ".npz",
    .summary = "arrays of NumPy in one archive",
    .recognises =
        [](const Input& input) {
          return input.text().starts_with("PK\x03\x04") || input.text().starts_with("PK\x05\x06");
        },
    .open = [](const Input& input,
               ModelFile& out) { out.tensors = list_npz(input.bytes(), input.owner(), input.path()); },
    .can_hold = npy_can_hold,
    .write = write,
    .deflates = true,
};

}  // namespace rlx::io
