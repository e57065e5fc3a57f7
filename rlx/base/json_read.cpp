#include <algorithm>
#include <bit>
#include <charconv>
#include <cstring>
#include <limits>
#include <optional>

#include "rlx/base/error.h"
#include "rlx/base/json_tree.h"
#include "rlx/base/utf8.h"

namespace rlx::detail {
namespace {

constexpr uint64_t kMaxNodes = std::numeric_limits<uint32_t>::max();
constexpr size_t kSmallObject = 8;  // members up to which keys are compared pair by pair
constexpr size_t kChunk = 1 << 16;  // bytes for decoded strings at a time

constexpr uint64_t every_byte(uint64_t byte) { return byte * 0x0101010101010101u; }

// The high bit of the lowest byte that ends a run of plain string bytes: a quote, a backslash, a control
// character or the start of a multi-byte character. Bits above that one may be set by borrows.
uint64_t string_stops(uint64_t word) {
  const auto zero_bytes = [](uint64_t w) { return (w - every_byte(0x01)) & ~w; };
  const uint64_t control = (word - every_byte(0x20)) & ~word;
  return (zero_bytes(word ^ every_byte('"')) | zero_bytes(word ^ every_byte('\\')) | control | word) &
         every_byte(0x80);
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// Whether a well-formed number that f64 cannot hold is huge, not tiny: by the power of ten of its first
// digit that is not 0.
bool is_huge(std::string_view number) {
  int64_t power = 0, exponent = 0;
  bool digit_seen = false, point = false;
  for (size_t i = 0; i < number.size(); ++i) {
    const char c = number[i];
    if (c == 'e' || c == 'E') {
      const bool plus = number[i + 1] == '+';
      const auto [end, error] =
          std::from_chars(number.data() + i + 1 + plus, number.data() + number.size(), exponent);
      if (error != std::errc()) return number[i + 1] != '-';
      break;
    }
    if (c == '.') point = true;
    if (!is_digit(c)) continue;
    digit_seen = digit_seen || c != '0';
    if (digit_seen && !point) ++power;
    if (!digit_seen && point) --power;
  }
  constexpr int64_t kFar = int64_t(1) << 40;  // beyond the length of any number
  return power + std::clamp(exponent, -kFar, kFar) > 0;
}

// Finds a key that occurs twice among the members of one object.
class KeySet {
 public:
  /// Keys and values take turns from `first` on.
  std::optional<std::string_view> repeated(const JsonNode* first, size_t members) {
    keys_.clear();
    for (const JsonNode* key = first; keys_.size() < members; key = after(key + 1)) keys_.push_back(key);
    if (members > kSmallObject) return among_many();
    for (size_t i = 1; i < members; ++i) {
      for (size_t j = 0; j < i; ++j) {
        if (equal(keys_[i], keys_[j])) return std::string_view(keys_[i]->text, keys_[i]->size);
      }
    }
    return std::nullopt;
  }

 private:
  static const JsonNode* after(const JsonNode* n) { return n + (n->kind >= JsonKind::array ? n->nodes : 1); }
  static bool equal(const JsonNode* a, const JsonNode* b) {
    return a->size == b->size && std::memcmp(a->text, b->text, a->size) == 0;
  }
  template <class Word>
  static uint64_t word_at(const char* p) {
    Word word;
    std::memcpy(&word, p, sizeof word);
    return word;
  }
  // Words of fixed size, the last ones overlapping: copies of a length that varies would be calls.
  static uint64_t hash(const JsonNode* key) {
    const size_t size = key->size;
    const char *p = key->text, *end = p + size;
    uint64_t h = size;
    const auto mix = [&h](uint64_t word) {
      h = (h ^ word) * 0x9E3779B97F4A7C15u;
      h ^= h >> 29;
    };
    if (size >= 8) {
      for (; end - p > 8; p += 8) mix(word_at<uint64_t>(p));
      mix(word_at<uint64_t>(end - 8));
    } else if (size >= 4) {
      mix(word_at<uint32_t>(p) << 32 | word_at<uint32_t>(end - 4));
    } else if (size > 0) {
      mix(word_at<uint8_t>(p) << 16 | word_at<uint8_t>(p + size / 2) << 8 | word_at<uint8_t>(end - 1));
    }
    h *= 0xBF58476D1CE4E5B9u;
    return h ^ h >> 31;
  }
  // One bit for every hash, kept small so that it stays in the cache. Keys that share a bit with another are
  // few unless somebody chose them so; sorting those decides.
  std::optional<std::string_view> among_many() {
    const size_t mask = std::bit_ceil(keys_.size() * 16) - 1;
    seen_.assign(mask / 64 + 1, 0), shared_.assign(mask / 64 + 1, 0);
    hashes_.clear();
    for (const JsonNode* key : keys_) {
      const size_t h = hash(key) & mask;
      const uint64_t bit = uint64_t(1) << h % 64;
      shared_[h / 64] |= seen_[h / 64] & bit;
      seen_[h / 64] |= bit;
      hashes_.push_back(h);
    }
    std::vector<std::string_view> suspects;
    for (size_t i = 0; i < keys_.size(); ++i) {
      if (shared_[hashes_[i] / 64] >> hashes_[i] % 64 & 1)
        suspects.emplace_back(keys_[i]->text, keys_[i]->size);
    }
    std::sort(suspects.begin(), suspects.end());
    const auto twice = std::adjacent_find(suspects.begin(), suspects.end());
    return twice == suspects.end() ? std::nullopt : std::optional(*twice);
  }

  std::vector<const JsonNode*> keys_;
  std::vector<size_t> hashes_;
  std::vector<uint64_t> seen_, shared_;  // bits by hash
};

class JsonReader {
 public:
  JsonReader(JsonTree& tree, std::string_view text, JsonRules rules)
      : tree_(tree), rules_(rules), begin_(text.data()), at_(begin_), end_(begin_ + text.size()) {}

  // One step is one value or key; the open arrays and objects are a list, not a recursion.
  void read() {
    tree_.nodes.reserve(size_t(end_ - begin_) / 8 + 4);
    value();
    while (!open_.empty()) {
      const bool object = node(open_.back()).kind == JsonKind::object;
      const char close = object ? '}' : ']';
      const bool first = node(open_.back()).size == 0;
      skip_space();
      if (peek() == close) {
        if (first || !after_comma_) {
          ++at_;
          end_container();
          continue;
        }
        throw malformed("a value must follow the comma");
      }
      if (!first && !after_comma_) {
        if (peek() != ',') throw malformed(object ? "',' or '}' expected" : "',' or ']' expected");
        ++at_;
        after_comma_ = true;
        continue;
      }
      after_comma_ = false;
      ++node(open_.back()).size;
      if (object) member_key();
      value();
    }
    skip_space();
    if (at_ != end_) throw malformed("something follows the value");
  }

 private:
  template <class... Args>
  [[nodiscard]] Error malformed(const Args&... what) const {
    return invalid(tree_.source, ": JSON is malformed at ", where(), ": ",
                   at_ == end_ ? "the text ends; " : "", what...);
  }
  std::string where() const {
    const int64_t line = 1 + std::count(begin_, at_, '\n');
    const char* start = at_;
    while (start != begin_ && start[-1] != '\n') --start;
    return cat("line ", line, ", column ", at_ - start + 1);
  }

  JsonNode& node(uint32_t index) { return tree_.nodes[index]; }
  char peek() const { return at_ == end_ ? '\0' : *at_; }
  void skip_space() {
    const char* p = at_;
    while (p != end_ && (*p == ' ' || *p == '\n' || *p == '\r' || *p == '\t')) {
      ++p;
      if (end_ - p < 8) continue;
      uint64_t word;  // spaces come in runs
      std::memcpy(&word, p, 8);
      const uint64_t others = word ^ every_byte(' ');
      p += others != 0 ? std::countr_zero(others) / 8 : 8;
    }
    at_ = p;
  }
  JsonNode& add(JsonKind kind) {
    if (tree_.nodes.size() >= kMaxNodes) throw invalid(tree_.source, ": JSON has more than 2^32 values");
    JsonNode& n = tree_.nodes.emplace_back();
    n.kind = kind;
    return n;
  }

  void value() {
    skip_space();
    const char c = peek();
    switch (c) {
      case '{':
        return begin_container(JsonKind::object);
      case '[':
        return begin_container(JsonKind::array);
      case '"':
        return string();
      case 't':
        return word("true", [&] { add(JsonKind::boolean).flag = true; });
      case 'f':
        return word("false", [&] { add(JsonKind::boolean); });
      case 'n':
        return word("null", [&] { add(JsonKind::null); });
      case 'N':
        return python_word("NaN", std::numeric_limits<double>::quiet_NaN());
      case 'I':
        return python_word("Infinity", std::numeric_limits<double>::infinity());
      default:
        if (c == '-' && end_ - at_ > 1 && at_[1] == 'I')
          return python_word("-Infinity", -std::numeric_limits<double>::infinity());
        if (c == '-' || is_digit(c)) return number();
        throw malformed("a value expected");
    }
  }

  void begin_container(JsonKind kind) {
    if (open_.size() == size_t(kMaxJsonDepth))
      throw invalid(tree_.source, ": JSON at ", where(), " nests deeper than ", kMaxJsonDepth, " levels");
    ++at_;
    open_.push_back(uint32_t(tree_.nodes.size()));
    add(kind).nodes = 0;
    after_comma_ = false;
  }
  void end_container() {
    const uint32_t index = open_.back();
    open_.pop_back();
    JsonNode& n = node(index);
    n.nodes = uint32_t(tree_.nodes.size() - index);
    if (n.kind != JsonKind::object) return;
    if (const auto key = keys_.repeated(&n + 1, n.size)) {
      throw invalid(tree_.source, ": the key '", *key, "' occurs twice in one object, which ends at ",
                    where());
    }
  }
  void member_key() {
    if (peek() != '"') throw malformed("a key in quotes expected");
    string();
    skip_space();
    if (peek() != ':') throw malformed("':' expected");
    ++at_;
  }

  template <class Add>
  void word(std::string_view spelled, Add add_node) {
    if (!std::string_view(at_, size_t(end_ - at_)).starts_with(spelled)) throw malformed("a value expected");
    at_ += spelled.size();
    add_node();
  }
  void python_word(std::string_view spelled, double v) {
    if (!rules_.python_numbers) throw malformed("a value expected");
    word(spelled, [&] { add(JsonKind::real).real = v; });
  }

  /// The first byte from p on that ends a string, begins an escape or has no place in a string.
  const char* plain_end(const char* p) const;
  void string();
  void escape(std::string& out);
  unsigned hex_unit();
  void number();

  JsonTree& tree_;
  JsonRules rules_;
  const char *begin_, *at_, *end_;
  std::vector<uint32_t> open_;  // nodes of the arrays and objects around this place
  bool after_comma_ = false;
  KeySet keys_;
  std::string scratch_;    // a string being decoded
  char* chunk_ = nullptr;  // where the next decoded string goes
  size_t chunk_left_ = 0;
};

const char* JsonReader::plain_end(const char* p) const {
  for (;;) {
    while (end_ - p >= 8) {
      uint64_t word_bytes;
      std::memcpy(&word_bytes, p, 8);
      const uint64_t stops = string_stops(word_bytes);
      if (stops != 0) {
        p += std::countr_zero(stops) / 8;
        break;
      }
      p += 8;
    }
    if (p == end_) return p;
    const auto c = static_cast<unsigned char>(*p);
    if (c == '"' || c == '\\' || c < 0x20) return p;
    if (c < 0x80) {
      ++p;
    } else if (c >= 0xC2 && c < 0xE0 && end_ - p > 1 && (p[1] & 0xC0) == 0x80) {
      p += 2;  // most of what is not ASCII
    } else {
      const size_t length = utf8_length(p, end_);
      if (length == 0) return p;
      p += length;
    }
  }
}

void JsonReader::string() {
  const char* start = ++at_;
  bool escaped = false;
  for (;;) {
    at_ = plain_end(at_);
    if (at_ == end_) throw malformed("the string has no end");
    const char c = *at_;
    if (c == '"') break;
    if (static_cast<unsigned char>(c) >= 0x80) throw malformed("bytes that are not UTF-8");
    if (c != '\\') throw malformed("a control character in a string must be written as an escape");
    if (!escaped) scratch_.clear();
    escaped = true;
    scratch_.append(start, at_);
    escape(scratch_);
    start = at_;
  }
  const char* text = start;
  size_t size = size_t(at_ - start);
  if (escaped) {
    scratch_.append(start, at_);
    size = scratch_.size();
    if (chunk_left_ < size || tree_.decoded.empty()) {
      chunk_left_ = std::max(kChunk, size);
      tree_.decoded.push_back(std::make_unique_for_overwrite<char[]>(chunk_left_));
      chunk_ = tree_.decoded.back().get();
    }
    std::memcpy(chunk_, scratch_.data(), size);
    text = chunk_;
    chunk_ += size, chunk_left_ -= size;
  }
  ++at_;
  if (size > std::numeric_limits<uint32_t>::max()) throw malformed("a string of more than 4 GiB");
  JsonNode& n = add(JsonKind::string);
  n.size = uint32_t(size);
  n.text = text;
}

unsigned JsonReader::hex_unit() {
  unsigned unit = 0;
  const char* const stop = at_ + 4;
  if (end_ - at_ < 4 || std::from_chars(at_, stop, unit, 16).ptr != stop)
    throw malformed("four hexadecimal digits expected after \\u");
  at_ = stop;
  return unit;
}

void JsonReader::escape(std::string& out) {
  ++at_;
  constexpr std::string_view kLetters = "\"\\/bfnrt", kMeanings = "\"\\/\b\f\n\r\t";
  const char letter = peek();
  if (letter != 'u') {
    const size_t known = letter == '\0' ? std::string_view::npos : kLetters.find(letter);
    if (known == std::string_view::npos) throw malformed("an unknown escape");
    out += kMeanings[known];
    ++at_;
    return;
  }
  ++at_;
  char32_t code = hex_unit();
  if (code >= 0xD800 && code < 0xE000) {
    // Two halves of a character above U+FFFF.
    if (code >= 0xDC00 || end_ - at_ < 2 || at_[0] != '\\' || at_[1] != 'u')
      throw malformed("half of a surrogate pair");
    at_ += 2;
    const unsigned low = hex_unit();
    if (low < 0xDC00 || low >= 0xE000) throw malformed("half of a surrogate pair");
    code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
  }
  append_utf8(out, code);
}

void JsonReader::number() {
  const char* const start = at_;
  const bool negative = *at_ == '-';
  if (negative) ++at_;
  if (at_ == end_ || !is_digit(*at_)) throw malformed("a digit expected");
  uint64_t whole = 0;
  bool fits = true;
  if (*at_ == '0') {
    ++at_;
    if (at_ != end_ && is_digit(*at_)) throw malformed("a number must not begin with 0");
  } else {
    const char* p = at_;
    for (; p != end_ && is_digit(*p); ++p) whole = whole * 10 + uint64_t(*p - '0');
    constexpr int64_t kSurelyFit = std::numeric_limits<uint64_t>::digits10;
    fits = p - at_ <= kSurelyFit || std::from_chars(at_, p, whole).ec == std::errc();
    at_ = p;
  }
  bool real = false;
  const auto digits = [&] {
    if (at_ == end_ || !is_digit(*at_)) throw malformed("a digit expected");
    while (at_ != end_ && is_digit(*at_)) ++at_;
  };
  if (at_ != end_ && *at_ == '.') {
    ++at_;
    real = true;
    digits();
  }
  if (at_ != end_ && (*at_ == 'e' || *at_ == 'E')) {
    ++at_;
    real = true;
    if (at_ != end_ && (*at_ == '+' || *at_ == '-')) ++at_;
    digits();
  }
  constexpr uint64_t kMin = uint64_t(1) << 63;
  if (!real && fits && (!negative || whole <= kMin)) {
    JsonNode& n = add(JsonKind::integer);
    n.flag = !negative && whole >= kMin;
    n.integer = negative ? int64_t(0 - whole) : int64_t(whole);
    return;
  }
  double v = 0;
  if (std::from_chars(start, at_, v).ec == std::errc::result_out_of_range) {
    if (is_huge({start, size_t(at_ - start)})) {
      const std::string spelled(start, std::min<size_t>(size_t(at_ - start), 40));
      at_ = start;
      throw malformed("the number ", spelled, " is beyond the range of f64");
    }
    v = negative ? -0.0 : 0.0;
  }
  add(JsonKind::real).real = v;
}

}  // namespace

void read_json(JsonTree& tree, std::string_view text, JsonRules rules) {
  JsonReader(tree, text, rules).read();
}

}  // namespace rlx::detail
