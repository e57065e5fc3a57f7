// A file written piece by piece; it appears under its name only when complete.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace rlx {

/// Writes to a new file of an unpredictable name beside `path`; `finish` brings it to the disk and renames it.
/// Readers see the old file or the whole new one, and a machine that stops keeps one of them. A file that is
/// replaced leaves its permissions to the new one; a link is replaced, not followed. Destroyed unfinished, it
/// leaves nothing. A pipe or device is written directly.
class OutputFile {
 public:
  explicit OutputFile(std::string path);
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  /// Bytes of a mapped file that became shorter are an error that names that file.
  void write(std::span<const std::byte> bytes);
  void write(std::string_view text) { write(std::as_bytes(std::span(text.data(), text.size()))); }
  void write_zeros(uint64_t count);
  uint64_t written() const { return written_; }

  void finish();

 private:
  bool replaces() const { return target_ != path_; }
  void create_beside(const void* old_status);
  void forget();

  std::string path_, target_;
  int fd_ = -1;
  uint64_t written_ = 0;
  void* listed_ = nullptr;  // in the list of unfinished files
};

/// Deletes what unfinished OutputFiles have written so far. Only for a process that is about to end: it may be
/// called from a signal handler.
void remove_unfinished_files() noexcept;

}  // namespace rlx
