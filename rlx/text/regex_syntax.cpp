// What differs between the two:
//
//   ^ $         are those of lines, always; PCRE2_MULTILINE has them so
//   (?m)        lets the dot match a line end: PCRE2's (?s)
//   \h \v \u    a hexadecimal digit, U+000B, a character by four digits
//   {,n}        from none to n
//   \s \w \b    have no U+180E; have marks and letter numbers
//   \p{Han}     has the characters of that script alone; general categories have their long names too, and the POSIX names
//   [[:punct:]] and its like follow Unicode's properties
//   [a[bc]]     a class in a class is part of it
//   [a-z&&[^b]] is what both sides have
//
// PCRE2 has no classes in classes: a class becomes one set where it can, else alternatives and look-aheads of one character.
#include "rlx/text/regex_syntax.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <optional>
#include <utility>
#include <vector>

#include "rlx/base/error.h"

namespace rlx::text {

namespace {

constexpr int kMaxClassDepth = 100;

constexpr std::string_view kSpaces = R"(\t-\r \x{85}\p{Z})";
constexpr std::string_view kWords = R"(\p{L}\p{M}\p{Nd}\p{Nl}\p{Pc}\x{24B6}-\x{24E9})";
// In a class \w has these signs too, and outside of one the numbers of Latin-1 besides. \b here counts neither: patterns of
// digits before a boundary are also those of GGUF.
constexpr std::string_view kWordSigns = R"(\x{1F130}-\x{1F149}\x{1F150}-\x{1F169}\x{1F170}-\x{1F189})";
constexpr std::string_view kLatinNumbers = R"(\x{B2}\x{B3}\x{B9}\x{BC}-\x{BE})";
constexpr std::string_view kHexDigits = "0-9A-Fa-f";

/// Some characters, as they stand between brackets, or all others.
struct NamedSet {
  std::string items;
  bool negated = false;
};

std::string brackets(const NamedSet& set) { return cat(set.negated ? "[^" : "[", set.items, "]"); }

std::string words(bool in_class) { return cat(kWords, kWordSigns, in_class ? "" : kLatinNumbers); }

// The set that \`letter` stands for where PCRE2 means another one.
std::optional<NamedSet> set_of_escape(char letter, bool in_class) {
  switch (letter) {
    case 's':
    case 'S':
      return NamedSet{std::string(kSpaces), letter == 'S'};
    case 'w':
    case 'W':
      return NamedSet{words(in_class), letter == 'W'};
    case 'h':
    case 'H':
      return NamedSet{std::string(kHexDigits), letter == 'H'};
    case 'v':
      return NamedSet{"\\x{0B}"};
    default:
      return std::nullopt;
  }
}

// Names are compared without case, spaces, hyphens and underscores.
std::string plain_name(std::string_view name) {
  std::string out;
  for (const char c : name) {
    if (c == ' ' || c == '_' || c == '-') continue;
    out.push_back(c >= 'A' && c <= 'Z' ? char(c + 32) : c);
  }
  return out;
}

// The POSIX names as [:name:] has them.
std::optional<std::string> posix_set(std::string_view name, bool in_class) {
  const std::pair<std::string_view, std::string> sets[] = {
      {"alnum", R"(\p{Alphabetic}\p{Nd})"},
      {"alpha", R"(\p{Alphabetic})"},
      {"ascii", R"(\x{00}-\x{7F})"},
      {"blank", R"(\t\p{Zs})"},
      {"cntrl", R"(\p{Cc})"},
      {"digit", R"(\p{Nd})"},
      {"graph", R"(\p{L}\p{M}\p{N}\p{P}\p{S}\p{Cf}\p{Co})"},
      {"lower", R"(\p{Lowercase})"},
      {"print", R"(\p{L}\p{M}\p{N}\p{P}\p{S}\p{Cf}\p{Co}\p{Zs})"},
      {"punct", R"(\p{P}\p{S})"},
      {"space", std::string(kSpaces)},
      {"upper", R"(\p{Uppercase})"},
      {"word", words(in_class)},
      {"xdigit", std::string(kHexDigits)},
  };
  for (const auto& [known, items] : sets)
    if (known == name) return items;
  return std::nullopt;
}

std::string_view category_of_long_name(std::string_view name) {
  constexpr std::pair<std::string_view, std::string_view> kCategories[] = {
      {"casedletter", "L&"},
      {"closepunctuation", "Pe"},
      {"connectorpunctuation", "Pc"},
      {"control", "Cc"},
      {"currencysymbol", "Sc"},
      {"dashpunctuation", "Pd"},
      {"decimalnumber", "Nd"},
      {"enclosingmark", "Me"},
      {"finalpunctuation", "Pf"},
      {"format", "Cf"},
      {"initialpunctuation", "Pi"},
      {"letter", "L"},
      {"letternumber", "Nl"},
      {"lineseparator", "Zl"},
      {"lowercaseletter", "Ll"},
      {"mark", "M"},
      {"mathsymbol", "Sm"},
      {"modifierletter", "Lm"},
      {"modifiersymbol", "Sk"},
      {"nonspacingmark", "Mn"},
      {"number", "N"},
      {"openpunctuation", "Ps"},
      {"other", "C"},
      {"otherletter", "Lo"},
      {"othernumber", "No"},
      {"otherpunctuation", "Po"},
      {"othersymbol", "So"},
      {"paragraphseparator", "Zp"},
      {"privateuse", "Co"},
      {"punct", "P"},  // of \p alone: that of brackets has the symbols too
      {"punctuation", "P"},
      {"separator", "Z"},
      {"spaceseparator", "Zs"},
      {"spacingmark", "Mc"},
      {"surrogate", "Cs"},
      {"symbol", "S"},
      {"titlecaseletter", "Lt"},
      {"unassigned", "Cn"},
      {"uppercaseletter", "Lu"},
  };
  for (const auto& [known, category] : kCategories)
    if (known == name) return category;
  return {};
}

// Whether PCRE2 knows a script of this name.
bool is_script(std::string_view name) {
  const std::string pattern = cat("\\p{sc:", name, "}");
  int code = 0;
  PCRE2_SIZE at = 0;
  pcre2_code* compiled = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data()), pattern.size(),
                                       PCRE2_UTF, &code, &at, nullptr);
  pcre2_code_free(compiled);
  return compiled != nullptr;
}

NamedSet property_set(std::string_view name, bool negated, bool in_class) {
  if (name.starts_with('^')) negated = !negated, name.remove_prefix(1);
  const std::string plain = plain_name(name);
  if (const std::string_view category = category_of_long_name(plain); !category.empty())
    return {cat("\\p{", category, "}"), negated};
  if (const auto items = posix_set(plain, in_class)) return {*items, negated};
  const bool script = name.size() > 2 && name.find_first_of(":=") == name.npos && is_script(name);
  return {cat("\\p{", script ? "sc:" : "", name, "}"), negated};
}

bool is_hex(char c) { return std::string_view("0123456789abcdefABCDEF").find(c) != std::string_view::npos; }

class Translator {
 public:
  explicit Translator(std::string_view pattern) : pattern_(pattern) {}

  std::string run() {
    std::string out;
    while (at_ < pattern_.size()) {
      const char c = pattern_[at_];
      if (c == '\\' && at_ + 1 < pattern_.size()) {
        escape(out);
      } else if (c == '[') {
        out += read_class(0);
      } else if (c == '{' && rest().starts_with("{,") && at_ + 2 < pattern_.size() &&
                 is_digit(pattern_[at_ + 2])) {
        out += "{0";
        ++at_;
      } else if (rest().starts_with("(?")) {
        options(out);
      } else {
        out.push_back(c);
        ++at_;
      }
    }
    return out;
  }

 private:
  /// The members of one side of an &&.
  struct Members {
    std::string items;                     // as they stand between brackets
    std::vector<std::string> complements;  // the items of sets whose others are members
    std::vector<std::string> others;       // patterns of one character

    bool plain() const { return complements.empty() && others.empty(); }
    void add(const NamedSet& set) {
      if (set.negated) {
        complements.push_back(set.items);
      } else {
        items += set.items;
      }
    }
  };

  static bool is_digit(char c) { return c >= '0' && c <= '9'; }
  std::string_view rest() const { return pattern_.substr(at_); }

  // (?m: and its like; every other group stays what it is.
  void options(std::string& out) {
    const size_t end = pattern_.find_first_not_of("imx-", at_ + 2);
    const bool is_options = end != pattern_.npos && (pattern_[end] == ')' || pattern_[end] == ':');
    const size_t stop = is_options ? end : at_ + 2;
    for (; at_ < stop; ++at_) out.push_back(pattern_[at_] == 'm' ? 's' : pattern_[at_]);
  }

  // The set behind the escape at `at_`, which is read; nothing when PCRE2 reads it alike.
  std::optional<NamedSet> read_set(bool in_class) {
    const char letter = pattern_[at_ + 1];
    if (letter == 'p' || letter == 'P') {
      const size_t close = pattern_.find('}', at_);
      if (at_ + 2 >= pattern_.size() || pattern_[at_ + 2] != '{' || close == pattern_.npos)
        return std::nullopt;
      const std::string_view name = pattern_.substr(at_ + 3, close - at_ - 3);
      at_ = close + 1;
      return property_set(name, letter == 'P', in_class);
    }
    auto set = set_of_escape(letter, in_class);
    if (set) at_ += 2;
    return set;
  }

  // Any other escape, at `at_`, as it stands in a class and outside of one.
  std::string read_character() {
    const char letter = pattern_[at_ + 1];
    const std::string_view digits = pattern_.substr(at_ + 2, 4);
    if (letter == 'u' && digits.size() == 4 && is_hex(digits[0]) && is_hex(digits[1]) && is_hex(digits[2]) &&
        is_hex(digits[3])) {
      at_ += 6;
      return cat("\\x{", digits, "}");
    }
    at_ += 2;
    if (letter == 'Q' || letter == 'E') return std::string(1, letter);  // no quotes
    return {'\\', letter};
  }

  void escape(std::string& out) {
    const char letter = pattern_[at_ + 1];
    if (letter == 'b' || letter == 'B') {
      const std::string_view second = letter == 'b' ? "(?!" : "(?=", third = letter == 'b' ? "(?=" : "(?!";
      out += cat("(?:(?<=[", kWords, "])", second, "[", kWords, "])|(?<![", kWords, "])", third, "[", kWords,
                 "]))");
      at_ += 2;
    } else if (letter == 'O') {
      out += "(?s:.)";
      at_ += 2;
    } else if (const auto set = read_set(false)) {
      out += brackets(*set);
    } else {
      out += read_character();
    }
  }

  static std::string any_of(const Members& m) {
    std::vector<std::string> choices;
    if (!m.items.empty()) choices.push_back(cat("[", m.items, "]"));
    for (const std::string& c : m.complements) choices.push_back(cat("[^", c, "]"));
    choices.insert(choices.end(), m.others.begin(), m.others.end());
    if (choices.empty()) return "(?!)";
    return choices.size() == 1 ? choices[0] : cat("(?:", join(choices, "|"), ")");
  }

  static std::string none_of(const Members& m) {
    if (m.plain()) return m.items.empty() ? "(?s:.)" : cat("[^", m.items, "]");
    std::string out = "(?:";
    if (!m.items.empty()) out += cat("(?![", m.items, "])");
    for (const std::string& other : m.others) out += cat("(?!", other, ")");
    // Not to be among the others of a set is to be in it.
    for (size_t i = 1; i < m.complements.size(); ++i) out += cat("(?=[", m.complements[i], "])");
    out += m.complements.empty() ? "(?s:.)" : cat("[", m.complements[0], "]");
    return out + ")";
  }

  // [:name:] at `at_`, when it is one.
  bool read_posix(Members& members) {
    const size_t close = pattern_.find(":]", at_);
    if (!rest().starts_with("[:") || close == pattern_.npos) return false;
    std::string_view name = pattern_.substr(at_ + 2, close - at_ - 2);
    const bool negated = name.starts_with('^');
    if (negated) name.remove_prefix(1);
    const auto items = posix_set(name, true);
    if (!items) return false;
    members.add({*items, negated});
    at_ = close + 2;
    return true;
  }

  struct Class {
    std::vector<Members> sides;  // of &&
    bool negated = false;

    bool simple() const { return sides.size() == 1 && sides[0].plain() && !sides[0].items.empty(); }
    std::string pattern() const {
      if (sides.size() == 1) return negated ? none_of(sides[0]) : any_of(sides[0]);
      std::string all;
      for (size_t i = 0; i + 1 < sides.size(); ++i) all += cat("(?=", any_of(sides[i]), ")");
      all += any_of(sides.back());
      return negated ? cat("(?:(?!", all, ")(?s:.))") : cat("(?:", all, ")");
    }
  };

  std::string read_class(int depth) { return parse_class(depth).pattern(); }

  // The class at `at_`.
  Class parse_class(int depth) {
    if (depth > kMaxClassDepth)
      throw invalid("regex: classes are nested deeper than ", kMaxClassDepth, " in the pattern '", pattern_,
                    "'");
    Class out;
    out.sides.emplace_back();
    const size_t start = at_++;
    if (rest().starts_with('^')) out.negated = true, ++at_;
    bool first = true, after_set = false;
    for (; at_ < pattern_.size(); first = false) {
      Members& members = out.sides.back();
      const char c = pattern_[at_];
      const bool was_set = std::exchange(after_set, false);
      if (c == ']' && !first) {
        ++at_;
        return out;
      }
      if (c == '[') {
        after_set = true;
        if (!read_posix(members)) add_class(parse_class(depth + 1), members);
      } else if (rest().starts_with("&&")) {
        at_ += 2;
        out.sides.emplace_back();
      } else if (c == '\\' && at_ + 1 < pattern_.size()) {
        if (const auto set = read_set(true)) {
          members.add(*set);
          after_set = true;
        } else {
          members.items += read_character();
        }
      } else {
        ++at_;
        // A hyphen beside a set is one, and so is a bracket that comes first.
        if (c == ']' || (c == '-' && (was_set || next_is_set()))) members.items.push_back('\\');
        members.items.push_back(c);
      }
    }
    throw invalid("regex: the class at byte ", start, " of the pattern '", pattern_,
                  "' has no end; ']' is missing");
  }

  bool next_is_set() const {
    if (rest().starts_with('[')) return true;
    return rest().size() > 1 && rest()[0] == '\\' &&
           std::string_view("sSwWdDhHpP").find(rest()[1]) != std::string_view::npos;
  }

  static void add_class(const Class& inner, Members& members) {
    if (inner.simple()) {
      members.add({inner.sides[0].items, inner.negated});
    } else {
      members.others.push_back(inner.pattern());
    }
  }

  std::string_view pattern_;
  size_t at_ = 0;
};

}  // namespace

std::string to_pcre2(std::string_view pattern) { return Translator(pattern).run(); }

}  // namespace rlx::text
