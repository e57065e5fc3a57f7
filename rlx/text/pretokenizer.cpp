// One class per pre-tokeniser, then the table of their names. A new one is a class and a line in
// kPreTokenizers.
//
// Most of them say which parts of a word match something and leave the rest to `cut`, which knows what to do
// with matches and gaps.
#include "rlx/text/pretokenizer.h"

#include <algorithm>
#include <optional>

#include "rlx/base/error.h"
#include "rlx/text/regex.h"
#include "rlx/text/splitter.h"

namespace rlx::text {

namespace {

enum class Behavior {
  removed,               // matches are dropped
  isolated,              // each match and each gap is a word
  merged_with_previous,  // a match ends the gap before it
  merged_with_next,      // a match begins the gap after it
  contiguous,            // neighbouring matches are one word
};

Behavior read_behavior(const Fields& f, std::string_view otherwise) {
  const std::string name = f.string("behavior", otherwise);
  constexpr std::pair<std::string_view, Behavior> kNames[] = {
      {"Removed", Behavior::removed},
      {"Isolated", Behavior::isolated},
      {"MergedWithPrevious", Behavior::merged_with_previous},
      {"MergedWithNext", Behavior::merged_with_next},
      {"Contiguous", Behavior::contiguous},
  };
  for (const auto& [known, behavior] : kNames)
    if (known == name) return behavior;
  throw invalid(f.path("behavior"), ": unknown behavior '", name,
                "'; known: Removed, Isolated, MergedWithPrevious, MergedWithNext, Contiguous");
}

struct Part {
  Range range;
  bool match;
};

// Matches, left to right inside `word`, with the gaps between them.
void add_gaps(Range word, const std::vector<Range>& matches, bool invert, std::vector<Part>& parts) {
  parts.clear();
  uint32_t at = word.begin;
  for (const Range m : matches) {
    if (at < m.begin) parts.push_back({{at, m.begin}, invert});
    parts.push_back({m, !invert});
    at = m.end;
  }
  if (at < word.end) parts.push_back({{at, word.end}, invert});
}

void cut(const std::vector<Part>& parts, Behavior behavior, std::vector<Range>& words) {
  const size_t first = words.size();
  bool previous = false;
  switch (behavior) {
    case Behavior::removed:
      for (const Part& p : parts)
        if (!p.match) words.push_back(p.range);
      break;
    case Behavior::isolated:
      for (const Part& p : parts) words.push_back(p.range);
      break;
    case Behavior::contiguous:
      for (const Part& p : parts) {
        if (p.match == previous && words.size() > first) {
          words.back().end = p.range.end;
        } else {
          words.push_back(p.range);
        }
        previous = p.match;
      }
      break;
    case Behavior::merged_with_previous:
      for (const Part& p : parts) {
        if (p.match && !previous && words.size() > first) {
          words.back().end = p.range.end;
        } else {
          words.push_back(p.range);
        }
        previous = p.match;
      }
      break;
    case Behavior::merged_with_next:
      // Seen from the right this is merged_with_previous: a match joins the part after it unless that is a
      // match.
      for (size_t i = 0; i < parts.size(); ++i) {
        const bool joins_next = parts[i].match && i + 1 < parts.size() && !parts[i + 1].match;
        if (joins_next) {
          words.push_back({parts[i].range.begin, parts[i + 1].range.end});
          ++i;
        } else {
          words.push_back(parts[i].range);
        }
      }
      break;
  }
}

/// Replaces each word by what `split(text, word, words)` appends.
template <class Split>
void split_words(Pieces& pieces, Split split) {
  std::vector<Range> words;
  words.reserve(pieces.words.size() + pieces.text.view().size() / 4);
  for (const Range word : pieces.words) split(pieces.text.view(), word, words);
  pieces.words.swap(words);
}

/// Rewrites the text word by word: `write(writer, word)` writes what stands for one word.
template <class Write>
void rewrite_words(Pieces& pieces, Write write) {
  Rewriter writer(pieces.text);
  for (Range& word : pieces.words) {
    const uint32_t begin = writer.size();
    write(writer, word);
    word = {begin, writer.size()};
  }
  writer.finish();
}

/// Cuts at each character for which `is_match(code)` holds.
template <class IsMatch>
void split_at_characters(Pieces& pieces, Behavior behavior, IsMatch is_match) {
  std::vector<Range> matches;
  std::vector<Part> parts;
  split_words(pieces, [&](std::string_view text, Range word, std::vector<Range>& words) {
    matches.clear();
    for (uint32_t i = word.begin; i < word.end;) {
      const Decoded c = decode_utf8(text.data() + i, text.data() + word.end);
      if (is_match(c.code)) matches.push_back({i, i + c.length});
      i += c.length;
    }
    add_gaps(word, matches, false, parts);
    cut(parts, behavior, words);
  });
}

bool is_punctuation(const CharClasses& classes, char32_t code) {
  return is_ascii_punctuation(code) || (classes[code] & kPunctuation);
}

class Split final : public PreTokenizer {
 public:
  Split(Regex regex, Behavior behavior, bool invert)
      : regex_(std::move(regex)),
        behavior_(behavior),
        invert_(invert),
        fast_(find_splitter(regex_.pattern())) {
    // The hand-written splitters leave no gaps, so only the behaviours that keep each match apart apply.
    if (behavior_ != Behavior::isolated) fast_ = nullptr;
  }

  void apply(Pieces& pieces) const override {
    if (fast_) return split_words(pieces, fast_);
    std::vector<Range> matches;
    std::vector<Part> parts;
    split_words(pieces, [&](std::string_view text, Range word, std::vector<Range>& words) {
      matches.clear();
      // An empty match is a place to cut.
      regex_.find_all(text, word, matches, Regex::Empty::kept);
      add_gaps(word, matches, invert_, parts);
      const size_t first = words.size();
      cut(parts, behavior_, words);
      words.erase(
          std::remove_if(words.begin() + long(first), words.end(), [](Range r) { return r.size() == 0; }),
          words.end());
    });
  }

 private:
  Regex regex_;
  Behavior behavior_;
  bool invert_;
  SplitFunction fast_;
};

class Sequence final : public PreTokenizer {
 public:
  explicit Sequence(std::vector<PreTokenizerPtr> parts) : parts_(std::move(parts)) {}
  void apply(Pieces& pieces) const override {
    for (const PreTokenizerPtr& part : parts_) part->apply(pieces);
  }
  bool leave_bytes() override { return !parts_.empty() && parts_.back()->leave_bytes(); }

 private:
  std::vector<PreTokenizerPtr> parts_;
};

class ByteLevel final : public PreTokenizer {
 public:
  ByteLevel(bool add_prefix_space, bool use_pattern) : add_prefix_space_(add_prefix_space) {
    if (use_pattern) split_ = find_splitter(kGpt2Pattern);
  }

  void apply(Pieces& pieces) const override {
    if (add_prefix_space_) {
      rewrite_words(pieces, [](Rewriter& writer, Range word) {
        if (writer.view()[word.begin] != ' ') writer.insert_before(word.begin, " ");
        writer.keep(word.begin, word.end);
      });
    }
    if (split_) split_words(pieces, split_);
    if (leave_bytes_) return;
    rewrite_words(pieces, [](Rewriter& writer, Range word) {
      const std::string_view text = writer.view();
      for (uint32_t i = word.begin; i < word.end;) {
        const uint32_t length = decode_utf8(text.substr(0, word.end), i).length;
        for (uint32_t k = 0; k < length; ++k)
          append_utf8(writer.out(), byte_to_char(static_cast<unsigned char>(text[i + k])));
        writer.wrote(i, i + length);
        i += length;
      }
    });
  }
  bool leave_bytes() override { return leave_bytes_ = true; }

 private:
  bool add_prefix_space_, leave_bytes_ = false;
  SplitFunction split_ = nullptr;
};

class Metaspace final : public PreTokenizer {
 public:
  Metaspace(std::string mark, PrependScheme scheme, bool split)
      : mark_(std::move(mark)), scheme_(scheme), split_(split) {}

  void apply(Pieces& pieces) const override {
    const bool has_input_start = pieces.text.has_input_start();
    rewrite_words(pieces, [&](Rewriter& writer, Range word) {
      const std::string_view text = writer.view().substr(0, word.end);
      const bool at_start = has_input_start && word.begin == 0;
      const bool has_mark = text[word.begin] == ' ' || text.substr(word.begin).starts_with(mark_);
      const bool wanted = scheme_ == PrependScheme::always || (scheme_ == PrependScheme::first && at_start);
      if (wanted && !has_mark) writer.insert_before(word.begin, mark_);
      for (size_t i = word.begin; i < word.end;) {
        const size_t space = std::min<size_t>(text.find(' ', i), word.end);
        if (i < space) writer.keep(i, space);
        if (space < word.end) writer.replace(space, space + 1, mark_);
        i = space + 1;
      }
    });
    if (!split_) return;
    // Each mark begins a word; a run of marks gives one-mark words, as merged_with_next does.
    split_words(pieces, [&](std::string_view text, Range word, std::vector<Range>& words) {
      uint32_t begin = word.begin;
      const std::string_view view = text.substr(0, word.end);
      for (size_t at = view.find(mark_, begin + 1); at != view.npos; at = view.find(mark_, at + 1)) {
        words.push_back({begin, uint32_t(at)});
        begin = uint32_t(at);
      }
      words.push_back({begin, word.end});
    });
  }

 private:
  std::string mark_;
  PrependScheme scheme_;
  bool split_;
};

class Bert final : public PreTokenizer {
 public:
  void apply(Pieces& pieces) const override {
    const CharClasses classes;
    split_words(pieces, [&](std::string_view text, Range word, std::vector<Range>& words) {
      const char* const end = text.data() + word.end;
      uint32_t begin = word.begin;
      const auto flush = [&](uint32_t at) {
        if (begin < at) words.push_back({begin, at});
      };
      for (uint32_t i = word.begin; i < word.end;) {
        const Decoded c = decode_utf8(text.data() + i, end);
        const uint32_t next = i + c.length;
        if (classes[c.code] & kSpace) {
          flush(i);
          begin = next;
        } else if (is_punctuation(classes, c.code)) {
          flush(i);
          words.push_back({i, next});
          begin = next;
        }
        i = next;
      }
      flush(word.end);
    });
  }
};

class Whitespace final : public PreTokenizer {  // \w+|[^\w\s]+
 public:
  void apply(Pieces& pieces) const override {
    const CharClasses classes;
    split_words(pieces, [&](std::string_view text, Range word, std::vector<Range>& words) {
      uint8_t previous = kSpace;
      for (uint32_t i = word.begin; i < word.end;) {
        const Decoded c = decode_utf8(text.data() + i, text.data() + word.end);
        const uint8_t kind = classes[c.code] & (kWord | kSpace);
        if (!(kind & kSpace)) {
          if (kind != previous) words.push_back({i, i});
          words.back().end = i + c.length;
        }
        previous = kind;
        i += c.length;
      }
    });
  }
};

class WhitespaceSplit final : public PreTokenizer {
 public:
  void apply(Pieces& pieces) const override {
    const CharClasses classes;
    split_at_characters(pieces, Behavior::removed, [&](char32_t c) { return classes[c] & kSpace; });
  }
};

class Punctuation final : public PreTokenizer {
 public:
  explicit Punctuation(Behavior behavior) : behavior_(behavior) {}
  void apply(Pieces& pieces) const override {
    const CharClasses classes;
    split_at_characters(pieces, behavior_, [&](char32_t c) { return is_punctuation(classes, c); });
  }

 private:
  Behavior behavior_;
};

class Digits final : public PreTokenizer {
 public:
  explicit Digits(bool individual) : behavior_(individual ? Behavior::isolated : Behavior::contiguous) {}
  void apply(Pieces& pieces) const override {
    const CharClasses classes;
    split_at_characters(pieces, behavior_, [&](char32_t c) { return classes[c] & kNumber; });
  }

 private:
  Behavior behavior_;
};

class CharDelimiter final : public PreTokenizer {
 public:
  explicit CharDelimiter(char32_t delimiter) : delimiter_(delimiter) {}
  void apply(Pieces& pieces) const override {
    split_at_characters(pieces, Behavior::removed, [&](char32_t c) { return c == delimiter_; });
  }

 private:
  char32_t delimiter_;
};

class FixedLength final : public PreTokenizer {
 public:
  explicit FixedLength(int64_t characters) : characters_(characters) {}
  void apply(Pieces& pieces) const override {
    split_words(pieces, [&](std::string_view text, Range word, std::vector<Range>& words) {
      while (word.begin < word.end) {
        Range part{word.begin, word.begin};
        for (int64_t n = 0; n < characters_ && part.end < word.end; ++n)
          part.end += decode_utf8(text.data() + part.end, text.data() + word.end).length;
        words.push_back(part);
        word.begin = part.end;
      }
    });
  }

 private:
  int64_t characters_;
};

PreTokenizerPtr split_from_config(const Fields& f) {
  const Fields pattern = f.object("pattern");
  Regex regex =
      pattern.find("String") ? Regex::literal(pattern.string("String")) : Regex(pattern.string("Regex"));
  return std::make_unique<Split>(std::move(regex), read_behavior(f, "Isolated"), f.boolean("invert", false));
}

std::string one_character(const Fields& f, std::string_view key, std::string_view otherwise) {
  std::string text = f.string(key, otherwise);
  if (text.empty() || decode_utf8(text, 0).length != text.size())
    throw invalid(f.path(key), ": expected one character, got '", text, "'");
  return text;
}

PreTokenizerPtr metaspace_from_config(const Fields& f) {
  return std::make_unique<Metaspace>(one_character(f, "replacement", "\xE2\x96\x81"), read_prepend_scheme(f),
                                     f.boolean("split", true));
}

PreTokenizerPtr delimiter_from_config(const Fields& f) {
  return std::make_unique<CharDelimiter>(decode_utf8(one_character(f, "delimiter", ""), 0).code);
}

PreTokenizerPtr fixed_length_from_config(const Fields& f) {
  const int64_t length = f.integer("length", 5);
  if (length < 1) throw invalid(f.path("length"), ": ", length, " characters; at least 1");
  return std::make_unique<FixedLength>(length);
}

PreTokenizerPtr sequence_from_config(const Fields& f) {
  std::vector<PreTokenizerPtr> parts;
  const List& list = f.list("pretokenizers");
  for (size_t i = 0; i < list.size(); ++i)
    parts.push_back(make_pretokenizer(list[i], cat(f.path("pretokenizers"), "[", i, "]")));
  return make_pretokenizer_sequence(std::move(parts));
}

struct Entry {
  std::string_view type;
  PreTokenizerPtr (*make)(const Fields&);
};

constexpr Entry kPreTokenizers[] = {
    {"BertPreTokenizer", [](const Fields&) { return make_bert_pretokenizer(); }},
    {"ByteLevel",
     [](const Fields& f) {
       return make_byte_level(f.boolean("add_prefix_space", true), f.boolean("use_regex", true));
     }},
    {"CharDelimiterSplit", delimiter_from_config},
    {"Digits", [](const Fields& f) { return make_digits(f.boolean("individual_digits", false)); }},
    {"FixedLength", fixed_length_from_config},
    {"Metaspace", metaspace_from_config},
    {"Punctuation",
     [](const Fields& f) -> PreTokenizerPtr {
       return std::make_unique<Punctuation>(read_behavior(f, "Isolated"));
     }},
    {"Sequence", sequence_from_config},
    {"Split", split_from_config},
    {"Whitespace", [](const Fields&) -> PreTokenizerPtr { return std::make_unique<Whitespace>(); }},
    {"WhitespaceSplit", [](const Fields&) -> PreTokenizerPtr { return std::make_unique<WhitespaceSplit>(); }},
};

}  // namespace

PreTokenizerPtr make_pretokenizer(const Value& config, const std::string& where) {
  const Fields f(config, where);
  const std::string type = f.string("type");
  std::vector<std::string_view> names;
  for (const Entry& e : kPreTokenizers) {
    if (e.type == type) return e.make(f);
    names.push_back(e.type);
  }
  throw invalid(where, ": unknown pre-tokenizer type '", type, "'; known: ", join(names));
}

PrependScheme read_prepend_scheme(const Fields& f) {
  // Files from before the field existed have add_prefix_space instead.
  const std::string_view otherwise = f.boolean("add_prefix_space", true) ? "always" : "never";
  const std::string name = f.string("prepend_scheme", otherwise);
  if (name == "first") return PrependScheme::first;
  if (name == "never") return PrependScheme::never;
  if (name == "always") return PrependScheme::always;
  throw invalid(f.path("prepend_scheme"), ": unknown scheme '", name, "'; known: first, never, always");
}

PreTokenizerPtr make_pretokenizer_sequence(std::vector<PreTokenizerPtr> parts) {
  return std::make_unique<Sequence>(std::move(parts));
}
PreTokenizerPtr make_split(std::string_view pattern) {
  return std::make_unique<Split>(Regex(pattern), Behavior::isolated, false);
}
PreTokenizerPtr make_digits(bool individual) { return std::make_unique<Digits>(individual); }
PreTokenizerPtr make_byte_level(bool add_prefix_space, bool use_pattern) {
  return std::make_unique<ByteLevel>(add_prefix_space, use_pattern);
}
PreTokenizerPtr make_metaspace(PrependScheme scheme) {
  return std::make_unique<Metaspace>("\xE2\x96\x81", scheme, true);
}
PreTokenizerPtr make_bert_pretokenizer() { return std::make_unique<Bert>(); }

}  // namespace rlx::text
