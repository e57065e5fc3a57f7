#include "rlx/text/base64.h"

#include <cstdint>

#include "rlx/base/error.h"

namespace rlx::text {

std::string decode_base64(std::string_view text, std::string_view where) {
  const auto value = [](char c) -> int {
    if (c >= 'A' && c <= 'Z') return c - 'A';
    if (c >= 'a' && c <= 'z') return c - 'a' + 26;
    if (c >= '0' && c <= '9') return c - '0' + 52;
    return c == '+' ? 62 : c == '/' ? 63 : -1;
  };
  while (!text.empty() && text.back() == '=') text.remove_suffix(1);
  std::string out;
  out.reserve(text.size() * 3 / 4);
  uint32_t bits = 0;
  int held = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const int v = value(text[i]);
    if (v < 0) throw invalid(where, ": byte ", i, " is not base64");
    bits = bits << 6 | uint32_t(v);
    if ((held += 6) >= 8) out.push_back(char(bits >> (held -= 8) & 0xFF));
  }
  return out;
}

}  // namespace rlx::text
