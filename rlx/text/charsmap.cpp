#include "rlx/text/charsmap.h"

#include <cstring>

#include "rlx/base/error.h"

namespace rlx::text {

Charsmap::Charsmap(std::string_view bytes, std::string_view where) {
  if (bytes.empty()) return;
  uint32_t trie_bytes = 0;
  if (bytes.size() < 4) throw invalid(where, ": charsmap has ", bytes.size(), " bytes; at least 4");
  std::memcpy(&trie_bytes, bytes.data(), 4);
  if (trie_bytes % 4 != 0 || trie_bytes < 4 || trie_bytes > bytes.size() - 4)
    throw invalid(where, ": charsmap says its trie has ", trie_bytes, " bytes, the table has ", bytes.size());
  units_.resize(trie_bytes / 4);
  std::memcpy(units_.data(), bytes.data() + 4, trie_bytes);
  replacements_ = bytes.substr(4 + trie_bytes);
  if (replacements_.empty() || replacements_.back() != '\0')
    throw invalid(where, ": charsmap replacements do not end with a NUL byte");
}

std::optional<Charsmap::Match> Charsmap::prefix(std::string_view text, bool longest) const {
  if (units_.empty()) return std::nullopt;
  const auto offset = [](uint32_t unit) { return (unit >> 10) << ((unit & (1u << 9)) >> 6); };
  const auto label = [](uint32_t unit) { return unit & (1u << 31 | 0xFF); };
  std::optional<Match> found;
  size_t node = offset(units_[0]);
  for (size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    node ^= byte;
    if (byte == 0 || node >= units_.size()) break;
    const uint32_t unit = units_[node];
    if (label(unit) != byte) break;
    node ^= offset(unit);
    if (node >= units_.size()) break;
    if (unit >> 8 & 1) {  // a key ends here; its value lies at the node with label 0
      const uint32_t value = units_[node] & 0x7FFFFFFF;
      if (value >= replacements_.size()) break;
      found = Match{i + 1, std::string_view(replacements_.c_str() + value)};
      if (!longest) break;
    }
  }
  return found;
}

}  // namespace rlx::text
