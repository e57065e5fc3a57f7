#include "rlx/text/splitter.h"

namespace rlx::text {

namespace {

constexpr uint8_t kWordOrSpace = kLetter | kNumber | kSpace;

enum class Fold { none, ascii, unicode };

// Walks characters with their classes.
class Cursor {
 public:
  Cursor(std::string_view text, Range within)
      : base_(text.data()), end_(text.data() + within.end), at_(text.data() + within.begin) {}

  bool done() const { return at_ == end_; }
  const char* at() const { return at_; }
  uint32_t offset() const { return uint32_t(at_ - base_); }
  void move_to(const char* p) { at_ = p; }
  bool is(const char* p, char c) const { return p < end_ && *p == c; }

  // Class bits of the character at p, and the place after it; 0 and p at the end.
  uint8_t look(const char* p, const char*& next) const {
    if (p == end_) {
      next = p;
      return kSpace;  // the end is no letter, number or symbol
    }
    const Decoded c = decode_utf8(p, end_);
    next = p + c.length;
    return classes_[c.code];
  }
  // After the run of characters for which `in` holds for the class bits.
  template <class In>
  const char* skip(const char* p, In in) const {
    while (p != end_) {
      const Decoded c = decode_utf8(p, end_);
      if (!in(classes_[c.code])) break;
      p += c.length;
    }
    return p;
  }
  const char* skip_letters(const char* p) const {
    return skip(p, [](uint8_t bits) { return bits & kLetter; });
  }
  const char* skip_symbols(const char* p) const {
    return skip(p, [](uint8_t bits) { return !(bits & kWordOrSpace); });
  }
  const char* end() const { return end_; }

  // After a contraction that begins with the apostrophe at p, or null. Case-folding has one character beyond
  // ASCII here: U+017F is a form of s.
  const char* contraction(const char* p, Fold fold) const {
    const auto lower = [&](const char* q) -> char {
      if (q >= end_) return 0;
      return fold != Fold::none && *q >= 'A' && *q <= 'Z' ? char(*q + 32) : *q;
    };
    const char first = lower(p + 1), second = p + 1 < end_ ? lower(p + 2) : char(0);
    if (first == 's' || first == 't' || first == 'm' || first == 'd') return p + 2;
    if ((first == 'r' && second == 'e') || (first == 'v' && second == 'e') || (first == 'l' && second == 'l'))
      return p + 3;
    if (fold == Fold::unicode && p + 2 < end_ && p[1] == '\xC5' && p[2] == '\xBF') return p + 3;
    return nullptr;
  }

  // \s+(?!\S)|\s+ at a space: a run gives its last character to the next word, unless it ends the text or has
  // only one character.
  const char* spaces(const char* p) const {
    const char* last = p;
    const char* q = p;
    while (q != end_) {
      const Decoded c = decode_utf8(q, end_);
      if (!(classes_[c.code] & kSpace)) return last == p ? q : last;
      last = q;
      q += c.length;
    }
    return q;
  }

 private:
  const char* base_;
  const char* end_;
  const char* at_;
  CharClasses classes_;
};

void split_gpt2(std::string_view text, Range within, std::vector<Range>& words) {
  Cursor c(text, within);
  while (!c.done()) {
    const char* const start = c.at();
    const uint32_t begin = c.offset();
    const char* next = nullptr;
    if (*start == '\'') next = c.contraction(start, Fold::none);
    if (!next) {
      const char* after = nullptr;
      const char* body = start;
      uint8_t bits = c.look(body, after);
      if (*start == ' ' && after != c.end()) {
        const char* after_space = nullptr;
        const uint8_t following = c.look(after, after_space);
        if (!(following & kSpace)) body = after, bits = following, after = after_space;
      }
      if (bits & kLetter) {
        next = c.skip_letters(after);
      } else if (bits & kNumber) {
        next = c.skip(after, [](uint8_t b) { return b & kNumber; });
      } else if (!(bits & kSpace)) {
        next = c.skip_symbols(after);
      } else {
        next = c.spaces(start);
      }
    }
    c.move_to(next);
    words.push_back({begin, c.offset()});
  }
}

// One match of the Llama-3 pattern at `start`; numbers are cut after max_digits.
inline const char* next_llama3(const Cursor& c, const char* start, int max_digits, Fold fold) {
  if (*start == '\'') {
    if (const char* after = c.contraction(start, fold)) return after;
  }
  const char* after = nullptr;
  const uint8_t bits = c.look(start, after);
  if (bits & kLetter) return c.skip_letters(after);
  if (bits & kNumber) {
    for (int i = 1; i < max_digits && after != c.end(); ++i) {
      const char* more = nullptr;
      if (!(c.look(after, more) & kNumber)) break;
      after = more;
    }
    return after;
  }
  const bool line_end = *start == '\r' || *start == '\n';
  const char* after_second = nullptr;
  const uint8_t second = c.look(after, after_second);
  if (!line_end && (second & kLetter)) return c.skip_letters(after_second);
  const bool spaced_symbol = *start == ' ' && !(second & kWordOrSpace);
  if (!(bits & kSpace) || spaced_symbol) {
    const char* p = c.skip_symbols(after);
    while (p != c.end() && (*p == '\r' || *p == '\n')) ++p;
    return p;
  }
  // \s*[\r\n]+ : through the last line end of the run of spaces.
  const char* last_line_end = nullptr;
  for (const char* p = start; p != c.end();) {
    const char* past = nullptr;
    if (!(c.look(p, past) & kSpace)) break;
    if (*p == '\r' || *p == '\n') last_line_end = past;
    p = past;
  }
  return last_line_end ? last_line_end : c.spaces(start);
}

template <int kMaxDigits, Fold kFold>
void split_llama3(std::string_view text, Range within, std::vector<Range>& words) {
  Cursor c(text, within);
  while (!c.done()) {
    const uint32_t begin = c.offset();
    c.move_to(next_llama3(c, c.at(), kMaxDigits, kFold));
    words.push_back({begin, c.offset()});
  }
}

// Groups of three digits, counted from the right end of each number.
enum class DigitRule {
  groups,           // every number falls into groups
  before_boundary,  // only numbers that no letter or mark follows; others are ordinary text
  cuts,             // the groups begin words and end none: what follows a number stays with its last group
};

template <DigitRule kRule>
void split_digits(std::string_view text, Range within, std::vector<Range>& words) {
  const CharClasses classes;
  const char* const end = text.data() + within.end;
  uint32_t begin = within.begin;  // of the word under way
  const auto cut = [&](uint32_t at) {
    if (begin < at) words.push_back({begin, at});
    begin = at;
  };
  const auto is_digit = [&](char32_t code) {
    return kRule == DigitRule::groups ? (classes[code] & kNumber) != 0 : is_decimal_digit(code);
  };
  std::vector<uint32_t> places;  // where the digits of one number begin
  for (uint32_t at = within.begin; at < within.end;) {
    Decoded c = decode_utf8(text.data() + at, end);
    places.clear();
    while (at < within.end && is_digit(c.code)) {
      places.push_back(at);
      at += c.length;
      if (at < within.end) c = decode_utf8(text.data() + at, end);
    }
    if (places.empty()) {
      at += c.length;
      continue;
    }
    const bool in_word = at < within.end && (classes[c.code] & kWord) && c.code != 0x200C && c.code != 0x200D;
    if (kRule == DigitRule::before_boundary && in_word) continue;
    const size_t first = places.size() % 3;
    if (kRule != DigitRule::cuts) cut(places[0]);
    for (size_t i = first; i < places.size(); i += 3) cut(places[i]);
    if (kRule != DigitRule::cuts) cut(at);
  }
  cut(within.end);
}

struct Known {
  std::string_view pattern;
  SplitFunction split;
};

// Some files spell the contractions as one group; the matches are the same.
constexpr Known kKnown[] = {
    {kGpt2Pattern, split_gpt2},
    {R"('(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)", split_gpt2},
    {kGgufGpt2Pattern, split_gpt2},  // the space before a word that nothing matches is the gap it leaves
    {kLlama3Pattern, split_llama3<3, Fold::unicode>},
    {R"('(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
     split_llama3<3, Fold::unicode>},
    {kGgufLlama3Pattern, split_llama3<3, Fold::ascii>},
    {kQwen2Pattern, split_llama3<1, Fold::unicode>},
    {kGgufQwen2Pattern, split_llama3<1, Fold::ascii>},
    {kDigitGroups, split_digits<DigitRule::groups>},
    {kDigitsBeforeBoundary, split_digits<DigitRule::before_boundary>},
    {kDigitCuts, split_digits<DigitRule::cuts>},
};

}  // namespace

SplitFunction find_splitter(std::string_view pattern) {
  for (const Known& k : kKnown)
    if (k.pattern == pattern) return k.split;
  return nullptr;
}

}  // namespace rlx::text
