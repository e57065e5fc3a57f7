// GGUF files built byte by byte, so that tests can write what no writer would.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "rlx/io/gguf.h"

namespace rlx::io {

struct GgufBytes {
  std::string bytes;
  bool wide = true;  // 64-bit lengths

  explicit GgufBytes(uint32_t version = 3, uint64_t tensors = 0, uint64_t entries = 0) : wide(version != 1) {
    raw("GGUF").put(version).size(tensors).size(entries);
  }

  GgufBytes& raw(std::string_view s) { return bytes.append(s), *this; }
  template <class T>
  GgufBytes& put(T value) {
    return raw({reinterpret_cast<const char*>(&value), sizeof value});
  }
  GgufBytes& size(uint64_t n) { return wide ? put(n) : put(uint32_t(n)); }
  GgufBytes& text(std::string_view s) { return size(s.size()).raw(s); }
  GgufBytes& key(std::string_view name, GgufType type) { return text(name).put(uint32_t(type)); }
  /// Extents fastest first, as in the file.
  GgufBytes& tensor(std::string_view name, std::initializer_list<uint64_t> extents, uint32_t type,
                    uint64_t offset) {
    text(name).put(uint32_t(extents.size()));
    for (const uint64_t e : extents) size(e);
    return put(type).put(offset);
  }
  GgufBytes& pad(size_t alignment = 32) {
    return bytes.resize((bytes.size() + alignment - 1) / alignment * alignment), *this;
  }
  GgufBytes& zeros(size_t count) { return bytes.append(count, '\0'), *this; }

  GgufFile parse() const { return GgufFile::parse(std::as_bytes(std::span(bytes)), nullptr, "test"); }
};

}  // namespace rlx::io
