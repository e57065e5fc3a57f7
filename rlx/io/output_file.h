// A file written piece by piece; it appears under its name only when complete.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace rlx::io {

/// Writes to a temporary name beside `path` and renames at `finish`. Destroyed unfinished, it leaves nothing.
/// A pipe or device is written directly.
class OutputFile {
 public:
  explicit OutputFile(std::string path);
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  void write(std::span<const std::byte> bytes);
  void write(std::string_view text) { write(std::as_bytes(std::span(text.data(), text.size()))); }
  void write_zeros(uint64_t count);
  uint64_t written() const { return written_; }

  void finish();

 private:
  std::string path_, target_;
  int fd_ = -1;
  uint64_t written_ = 0;
};

}  // namespace rlx::io
