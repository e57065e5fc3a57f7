#include "rlx/io/input.h"

namespace rlx::io {

Input Input::open(const std::string& path) {
  Input out;
  out.path_ = path;
  out.folder_ = path_kind(path) == PathKind::folder;
  if (out.folder_) return out;
  const MappedFile file = MappedFile::open(path);
  out.bytes_ = file.bytes();
  out.owner_ = file.owner();
  return out;
}

Input Input::of_bytes(std::span<const std::byte> bytes, std::shared_ptr<const void> owner, std::string name) {
  Input out;
  out.path_ = std::move(name);
  out.bytes_ = bytes;
  out.owner_ = std::move(owner);
  return out;
}

bool Input::contains(const std::string& name) const {
  return folder_ && path_kind(path_ + "/" + name) != PathKind::missing;
}

}  // namespace rlx::io
