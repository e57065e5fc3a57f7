// What machine code says of the resources that its kernels need: the notes of a cubin, which is an ELF file.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>

namespace rlx::test {

struct KernelResources {
  int registers = 0;  // of a thread
  int stack =
      0;  // bytes of memory that a thread has of its own: what is spilled, and what is not kept in registers
};

inline KernelResources resources_of(const std::string& cubin) {
  // Places in the header of an ELF file of 64 bits and of its sections; sections of notes; notes, of which these two are a symbol and a number.
  constexpr size_t kSections = 0x28, kSectionCount = 0x3c, kSectionBytes = 64, kType = 4, kOffset = 24,
                   kSize = 32;
  constexpr uint32_t kNotes = 0x70000000;
  constexpr uint8_t kWithValue = 4, kRegisters = 0x2f, kLeastStack = 0x12;
  const auto read = [&](auto number, size_t at) {
    if (at + sizeof number <= cubin.size()) std::memcpy(&number, cubin.data() + at, sizeof number);
    return number;
  };
  KernelResources out;
  const auto sections = size_t(read(uint64_t{}, kSections));
  const size_t count = read(uint16_t{}, kSectionCount);
  for (size_t s = 0; s < count; ++s) {
    const size_t section = sections + s * kSectionBytes;
    if (read(uint32_t{}, section + kType) != kNotes) continue;
    const auto begin = size_t(read(uint64_t{}, section + kOffset)),
               end = begin + size_t(read(uint64_t{}, section + kSize));
    for (size_t at = begin; at + 4 <= end;) {
      const auto format = read(uint8_t{}, at), note = read(uint8_t{}, at + 1);
      const bool valued = format == kWithValue;
      const int value = valued ? int(read(uint32_t{}, at + 8)) : 0;
      if (valued && note == kRegisters) out.registers = std::max(out.registers, value);
      if (valued && note == kLeastStack) out.stack = std::max(out.stack, value);
      at += 4 + (valued ? read(uint16_t{}, at + 2) : 0);
    }
  }
  return out;
}

}  // namespace rlx::test
