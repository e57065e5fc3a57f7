// A cursor over the bytes of a file that never reads past the end and says where it stopped.
#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

#include "rlx/base/error.h"

namespace rlx::io {

/// Little-endian. Errors read `gguf 'model.gguf': tensor count at offset 8: needs 8 bytes, 3 are left`.
class ByteReader {
 public:
  ByteReader(std::span<const std::byte> bytes, std::string_view source) : bytes_(bytes), source_(source) {}

  size_t offset() const { return offset_; }
  size_t remaining() const { return bytes_.size() - offset_; }
  std::string_view source() const { return source_; }

  std::span<const std::byte> take(uint64_t count, std::string_view field) {
    if (count > remaining()) throw fail(field, "needs ", count, " bytes, ", remaining(), " are left");
    const auto out = bytes_.subspan(offset_, size_t(count));
    offset_ += size_t(count);
    return out;
  }

  template <class T>
  T read(std::string_view field) {
    T value;
    std::memcpy(&value, take(sizeof(T), field).data(), sizeof(T));
    return value;
  }

  void seek(size_t offset) { offset_ = offset; }

  /// A user error about the field at the present offset.
  template <class... Args>
  [[nodiscard]] Error fail(std::string_view field, const Args&... what) const {
    return invalid(source_, ": ", field, " at offset ", offset_, ": ", what...);
  }

 private:
  std::span<const std::byte> bytes_;
  std::string source_;
  size_t offset_ = 0;
};

inline std::string_view as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace rlx::io
