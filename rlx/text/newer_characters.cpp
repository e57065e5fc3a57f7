#include "rlx/text/newer_characters.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <utf8proc.h>

#include <algorithm>
#include <array>

#include "rlx/base/error.h"

namespace rlx::text {

namespace {

// The places in `text` where PCRE2 sees a character that is not assigned.
std::vector<size_t> unassigned_places(std::string_view text) {
  int error = 0;
  PCRE2_SIZE at = 0;
  pcre2_code* code = pcre2_compile(reinterpret_cast<PCRE2_SPTR>("\\p{Cn}"), PCRE2_ZERO_TERMINATED, PCRE2_UTF,
                                   &error, &at, nullptr);
  RLX_CHECK(code, "pcre2 does not know \\p{Cn}: error ", error);
  pcre2_jit_compile(code, PCRE2_JIT_COMPLETE);
  pcre2_match_data* data = pcre2_match_data_create(1, nullptr);
  std::vector<size_t> places;
  for (size_t from = 0; pcre2_match(code, reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), from,
                                    PCRE2_NO_UTF_CHECK, data, nullptr) >= 0;) {
    const PCRE2_SIZE* ends = pcre2_get_ovector_pointer(data);
    places.push_back(ends[0]);
    from = ends[1];
  }
  pcre2_match_data_free(data);
  pcre2_code_free(code);
  return places;
}

bool same_version() {
  char pcre2[64] = {};
  pcre2_config(PCRE2_CONFIG_UNICODE_VERSION, pcre2);
  return unicode_version().starts_with(pcre2);
}

}  // namespace

const NewerCharacters& NewerCharacters::get() {
  static const NewerCharacters made;
  return made;
}

NewerCharacters::NewerCharacters() {
  if (same_version()) return;
  // Nothing but private use lies beyond plane 3, and tags, which are old.
  std::string all;
  for (char32_t code = 0; code < 0x40000; ++code) {
    if (code == 0xD800) code = 0xE000;
    if (utf8proc_category(utf8proc_int32_t(code)) != UTF8PROC_CATEGORY_CN) append_utf8(all, code);
  }
  const std::vector<size_t> places = unassigned_places(all);
  auto next = places.begin();
  // Ideographs stand for ideographs: patterns name their script.
  std::array<char32_t, 32 * 5 * 2> known{};
  for (size_t i = 0; i < all.size();) {
    const Decoded c = decode_utf8(all, i);
    const auto category = size_t(utf8proc_category(utf8proc_int32_t(c.code)));
    char32_t& first = known[(category * 5 + c.length) * 2 + (c.code >= 0x20000)];
    if (next == places.end() || *next != i) {
      if (!first) first = c.code;
    } else {
      ++next;
      if (first) {
        const bool longer =
            !spans_.empty() && spans_.back().last + 1 == c.code && spans_.back().stand_in == first;
        if (!longer) spans_.push_back({c.code, c.code, first});
        spans_.back().last = c.code;
        leads_.set(lead_of(all, i));
      }
    }
    i += c.length;
  }
}

char32_t NewerCharacters::stand_in(char32_t code) const {
  const auto after = std::upper_bound(spans_.begin(), spans_.end(), code,
                                      [](char32_t c, const Span& s) { return c < s.first; });
  if (after == spans_.begin()) return 0;
  const Span& span = *std::prev(after);
  return code <= span.last ? span.stand_in : 0;
}

std::string_view NewerCharacters::replaced(std::string_view text, std::string& buffer) const {
  if (spans_.empty()) return text;
  bool changed = false;
  std::string spelled;
  for (size_t i = 0; i + 1 < text.size(); ++i) {
    if (static_cast<unsigned char>(text[i]) < 0xC0 || !leads_[lead_of(text, i)]) continue;
    const Decoded c = decode_utf8(text, i);
    const char32_t other = c.code != kBadByte ? stand_in(c.code) : 0;
    if (!other) continue;
    if (!changed) buffer.assign(text);
    changed = true;
    spelled.clear();
    append_utf8(spelled, other);
    buffer.replace(i, c.length, spelled);
  }
  return changed ? std::string_view(buffer) : text;
}

}  // namespace rlx::text
