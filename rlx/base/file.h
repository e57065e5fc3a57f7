// Whole files: mapped read-only, read into memory, or written in one piece. output_file.h writes in pieces.
//
// Only regular files are read: opening a pipe would wait for a writer, a device may never end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "rlx/base/error.h"

namespace rlx {

enum class PathKind { missing, file, folder, other };

/// What a path leads to, links followed. One that cannot be looked at (a loop of links, a folder without
/// permission) is an environment error.
PathKind path_kind(const std::string& path);

/// A file mapped read-only. Copies share the mapping; it ends with the last copy.
///
/// A file may become shorter while it is mapped. Its lost bytes then read as zeros instead of ending the
/// process, and `check_mapped` tells: whoever makes something lasting out of mapped bytes asks it afterwards.
class MappedFile {
 public:
  /// Throws an environment error naming path and reason.
  static MappedFile open(const std::string& path);

  std::span<const std::byte> bytes() const { return bytes_; }
  std::string_view text() const { return {reinterpret_cast<const char*>(bytes_.data()), bytes_.size()}; }
  size_t size() const { return bytes_.size(); }
  const std::string& path() const { return path_; }
  /// Keeps the mapping alive; for views that outlive this object.
  std::shared_ptr<const void> owner() const { return owner_; }

 private:
  std::string path_;
  std::shared_ptr<const void> owner_;
  std::span<const std::byte> bytes_;
};

/// Throws an environment error that names the file when bytes of a mapped file were lost where `bytes` lie,
/// or anywhere. Bytes of no mapped file are fine. Costs one look at a counter as long as no file was cut.
void check_mapped(std::span<const std::byte> bytes);
void check_mapped_files();
/// Reads a byte of every page, so that a file that was cut is noticed.
void touch_mapped(std::span<const std::byte> bytes);

/// Reads all of a file; one larger than `limit` bytes is an error.
std::string read_file(const std::string& path, uint64_t limit = uint64_t(1) << 40);

/// The whole file at once, as OutputFile does it.
void write_file(const std::string& path, std::span<const std::byte> data);
void write_file(const std::string& path, std::string_view data);

/// With the folders above it; one that is there already stays as it is.
void make_folders(const std::string& path);

/// "file: cannot ACTION 'PATH': REASON", with the reason of errno.
[[nodiscard]] Error file_error(const std::string& path, std::string_view action);

}  // namespace rlx
