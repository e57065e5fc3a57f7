// What the GGUF reader, writer and values share about the encoding.
#pragma once

#include "rlx/io/byte_reader.h"
#include "rlx/io/gguf.h"

namespace rlx::io::detail {

inline constexpr std::string_view kGgufMagic = "GGUF";
inline constexpr uint32_t kGgufTypeCount = 13;
inline constexpr uint32_t kGgufMaxRank = 4;      // what ggml has
inline constexpr int kGgufMaxNesting = 8;        // arrays of arrays; files in use have one level
inline constexpr uint64_t kGgufMaxName = 65535;  // bytes of a key or a tensor name

/// Bytes of a scalar; 0 for strings and arrays.
size_t gguf_scalar_size(GgufType);
/// A count or length: u64, or u32 in version 1.
uint64_t read_gguf_size(ByteReader&, bool wide, std::string_view field);
/// Steps over one value and returns its bytes, all lengths checked.
std::span<const std::byte> take_gguf_value(ByteReader&, GgufType, bool wide, int nesting);

inline uint64_t align_up(uint64_t offset, uint64_t alignment) {
  return (offset + alignment - 1) / alignment * alignment;
}

}  // namespace rlx::io::detail
