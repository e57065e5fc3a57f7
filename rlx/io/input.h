// A path that somebody gave: looked at once, and mapped once when it is a file.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "rlx/base/file.h"

namespace rlx::io {

class Input {
 public:
  /// A missing path, a pipe and a device are environment errors.
  static Input open(const std::string& path);
  /// Bytes in memory under a name, kept alive by `owner`.
  static Input of_bytes(std::span<const std::byte> bytes, std::shared_ptr<const void> owner,
                        std::string name);

  /// As given.
  const std::string& path() const { return path_; }
  bool is_folder() const { return folder_; }
  /// The whole file; empty for a folder.
  std::span<const std::byte> bytes() const { return bytes_; }
  /// The same as characters.
  std::string_view text() const { return {reinterpret_cast<const char*>(bytes_.data()), bytes_.size()}; }
  /// Keeps the bytes alive.
  const std::shared_ptr<const void>& owner() const { return owner_; }
  /// Whether a folder has something of that name in it.
  bool contains(const std::string& name) const;

 private:
  std::string path_;
  bool folder_ = false;
  std::span<const std::byte> bytes_;
  std::shared_ptr<const void> owner_;
};

}  // namespace rlx::io
