#include "rlx/base/base64.h"

#include <array>
#include <cstdint>

#include "rlx/base/error.h"

namespace rlx {
namespace {

constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

constexpr std::array<int8_t, 256> make_values() {
  std::array<int8_t, 256> values{};
  for (auto& v : values) v = -1;
  for (size_t i = 0; i < kDigits.size(); ++i) values[uint8_t(kDigits[i])] = int8_t(i);
  return values;
}
constexpr auto kValues = make_values();

}  // namespace

std::string encode_base64(std::span<const std::byte> data) {
  std::string out;
  out.reserve((data.size() + 2) / 3 * 4);
  for (size_t i = 0; i < data.size(); i += 3) {
    const size_t left = std::min<size_t>(3, data.size() - i);
    uint32_t word = 0;
    for (size_t j = 0; j < 3; ++j) word = word << 8 | (j < left ? uint32_t(data[i + j]) : 0);
    for (size_t j = 0; j < 4; ++j) out.push_back(j <= left ? kDigits[word >> (18 - 6 * j) & 63] : '=');
  }
  return out;
}

std::vector<std::byte> decode_base64(std::string_view text) {
  if (text.size() % 4 != 0) throw invalid("base64: length ", text.size(), " is not a multiple of 4");
  std::vector<std::byte> out;
  out.reserve(text.size() / 4 * 3);
  for (size_t i = 0; i < text.size(); i += 4) {
    const bool last = i + 4 == text.size();
    size_t digits = 4;
    if (last && text[i + 3] == '=') digits = text[i + 2] == '=' ? 2 : 3;
    uint32_t word = 0;
    for (size_t j = 0; j < 4; ++j) {
      const int value = j < digits ? kValues[uint8_t(text[i + j])] : 0;
      if (value < 0)
        throw invalid("base64: character ", int(uint8_t(text[i + j])), " at ", i + j, " is not a digit");
      word = word << 6 | uint32_t(value);
    }
    if (digits < 4 && (word & (digits == 3 ? 0xffu : 0xffffu)) != 0)
      throw invalid("base64: padding bits are not zero");
    for (size_t j = 0; j + 1 < digits; ++j) out.push_back(std::byte(word >> (16 - 8 * j)));
  }
  return out;
}

}  // namespace rlx
