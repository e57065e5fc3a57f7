// Whole files: mapped read-only, read into memory, or written in one piece.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace rlx {

/// A file mapped read-only. Copies share the mapping; it ends with the last copy.
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

/// Reads all of a file; one larger than `limit` bytes is an error. Works for pipes too.
std::string read_file(const std::string& path, uint64_t limit = uint64_t(1) << 40);

/// Writes to a temporary name beside `path`, then renames: readers see the old file or the whole new one.
void write_file(const std::string& path, std::span<const std::byte> data);
void write_file(const std::string& path, std::string_view data);

}  // namespace rlx
