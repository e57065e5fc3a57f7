// One class per normaliser, then the table of their names. A new one is a class and a line in kNormalizers.
#include "rlx/text/normalizer.h"

#include <utf8proc.h>

#include <optional>

#include "rlx/base/base64.h"
#include "rlx/base/error.h"
#include "rlx/text/charsmap.h"
#include "rlx/text/normal_form.h"
#include "rlx/text/regex.h"

namespace rlx::text {

namespace {

class FormNormalizer final : public Normalizer {
 public:
  explicit FormNormalizer(NormalForm form) : form_(form) {}
  void apply(TrackedText& text) const override { normalize(text, form_); }

 private:
  NormalForm form_;
};

class Sequence final : public Normalizer {
 public:
  explicit Sequence(std::vector<NormalizerPtr> parts) : parts_(std::move(parts)) {}
  void apply(TrackedText& text) const override {
    for (const NormalizerPtr& part : parts_) part->apply(text);
  }

 private:
  std::vector<NormalizerPtr> parts_;
};

/// Rewrites character by character: `each(writer, code, begin, end)` writes what stands for one character.
template <class Each>
void rewrite_characters(TrackedText& text, Each each) {
  Rewriter writer(text);
  const std::string_view view = writer.view();
  for (size_t i = 0; i < view.size();) {
    const Decoded c = decode_utf8(view, i);
    each(writer, c.code, i, i + c.length);
    i += c.length;
  }
  writer.finish();
}

void lowercase(TrackedText& text) {
  rewrite_characters(text, [](Rewriter& writer, char32_t code, size_t begin, size_t end) {
    if (code == kBadByte) return writer.keep(begin, end);
    append_lowercase(writer.out(), code);
    writer.wrote(begin, end);
  });
}

/// Removes the characters that have one of the class bits.
void remove_class(TrackedText& text, uint8_t bits) {
  const CharClasses classes;
  rewrite_characters(text, [&](Rewriter& writer, char32_t code, size_t begin, size_t end) {
    if (!(classes[code] & bits)) writer.keep(begin, end);
  });
}

class Lowercase final : public Normalizer {
 public:
  void apply(TrackedText& text) const override { lowercase(text); }
};

class StripAccents final : public Normalizer {
 public:
  void apply(TrackedText& text) const override { remove_class(text, kMark); }
};

class Strip final : public Normalizer {
 public:
  Strip(bool left, bool right) : left_(left), right_(right) {}
  void apply(TrackedText& text) const override {
    const std::string_view view = text.view();
    size_t begin = view.size(), end = 0;
    const CharClasses classes;
    for (size_t i = 0; i < view.size();) {
      const Decoded c = decode_utf8(view, i);
      if (!(classes[c.code] & kSpace)) begin = std::min(begin, i), end = i + c.length;
      i += c.length;
    }
    const bool all_spaces = end == 0;
    if (!left_ && !(all_spaces && right_)) begin = 0;
    if (!right_ && !(all_spaces && left_)) end = view.size();
    if (begin == 0 && end == view.size()) return;
    Rewriter writer(text);
    if (begin < end) writer.keep(begin, end);
    writer.finish();
  }

 private:
  bool left_, right_;
};

class Prepend final : public Normalizer {
 public:
  explicit Prepend(std::string text) : prepend_(std::move(text)) {}
  void apply(TrackedText& text) const override {
    if (text.view().empty()) return;
    Rewriter writer(text);
    writer.insert_before(0, prepend_);
    writer.keep(0, writer.view().size());
    writer.finish();
  }

 private:
  std::string prepend_;
};

class Replace final : public Normalizer {
 public:
  Replace(std::string literal, std::string content)
      : literal_(std::move(literal)), content_(std::move(content)) {}
  Replace(Regex regex, std::string content) : regex_(std::move(regex)), content_(std::move(content)) {}

  void apply(TrackedText& text) const override {
    const std::string_view view = text.view();
    std::vector<Range> matches;
    if (regex_) {
      regex_->find_all(view, {0, uint32_t(view.size())}, matches, Regex::Empty::kept);
    } else if (!literal_.empty()) {
      for (size_t at = view.find(literal_); at != view.npos; at = view.find(literal_, at + literal_.size()))
        matches.push_back({uint32_t(at), uint32_t(at + literal_.size())});
    }
    if (matches.empty()) return;
    Rewriter writer(text);
    size_t kept = 0;
    for (const Range m : matches) {
      if (kept < m.begin) writer.keep(kept, m.begin);
      kept = m.end;
      if (m.begin == m.end) {
        m.begin < view.size() ? writer.insert_before(m.begin, content_)
                              : writer.replace(m.begin, m.end, content_);
        continue;
      }
      // The reference gives the new text the place of the last character of the match.
      size_t last = m.begin;
      for (size_t i = m.begin; i < m.end; i += decode_utf8(view, i).length) last = i;
      writer.replace(last, m.end, content_);
    }
    if (kept < view.size()) writer.keep(kept, view.size());
    writer.finish();
  }

 private:
  std::optional<Regex> regex_;
  std::string literal_, content_;
};

bool is_chinese(char32_t c) {
  return (c >= 0x4E00 && c <= 0x9FFF) || (c >= 0x3400 && c <= 0x4DBF) || (c >= 0x20000 && c <= 0x2A6DF) ||
         (c >= 0x2A700 && c <= 0x2B73F) || (c >= 0x2B740 && c <= 0x2B81F) || (c >= 0x2B920 && c <= 0x2CEAF) ||
         (c >= 0xF900 && c <= 0xFAFF) || (c >= 0x2F800 && c <= 0x2FA1F);
}

class Bert final : public Normalizer {
 public:
  struct Flags {
    bool clean = true, chinese = true, strip_accents = true, lowercase = true;
  };
  explicit Bert(Flags flags) : flags_(flags) {}

  void apply(TrackedText& text) const override {
    const CharClasses classes;
    rewrite_characters(text, [&](Rewriter& writer, char32_t code, size_t begin, size_t end) {
      if (code >= 0x20 && code < 0x7F) return writer.keep(begin, end);
      if (flags_.clean) {
        if (code == kBadByte || code == 0 || code == 0xFFFD) return;
        const uint8_t bits = classes[code];
        if (code == '\t' || code == '\n' || code == '\r') return writer.replace(begin, end, " ");
        if (bits & kControl) return;
        if (bits & kSpace) return writer.replace(begin, end, " ");
      }
      if (flags_.chinese && is_chinese(code)) {
        writer.replace(begin, end, " ");
        writer.keep(begin, end);
        return writer.replace(begin, end, " ");
      }
      writer.keep(begin, end);
    });
    if (flags_.strip_accents) {
      normalize(text, NormalForm::nfd);
      remove_class(text, kNonspacing);
    }
    if (flags_.lowercase) lowercase(text);
  }

 private:
  Flags flags_;
};

class Nmt final : public Normalizer {
 public:
  void apply(TrackedText& text) const override {
    rewrite_characters(text, [](Rewriter& writer, char32_t c, size_t begin, size_t end) {
      const bool removed =
          (c >= 1 && c <= 8) || c == 0xB || (c >= 0xE && c <= 0x1F) || c == 0x7F || c == 0x8F || c == 0x9F;
      if (removed) return;
      const bool space = c == 9 || c == 0xA || c == 0xC || c == 0xD || c == 0x1680 ||
                         (c >= 0x200B && c <= 0x200F) || c == 0x2028 || c == 0x2029 || c == 0x2581 ||
                         c == 0xFEFF || c == 0xFFFD;
      space ? writer.replace(begin, end, " ") : writer.keep(begin, end);
    });
  }
};

/// The table as tokenizer.json files use it: a short grapheme cluster is looked up whole, then its characters
/// one by one; the shortest key counts.
class Precompiled final : public Normalizer {
 public:
  explicit Precompiled(Charsmap map) : map_(std::move(map)) {}
  void apply(TrackedText& text) const override {
    if (map_.empty()) return;
    Rewriter writer(text);
    const std::string_view view = writer.view();
    for (size_t begin = 0; begin < view.size();) {
      const size_t end = cluster_end(view, begin);
      if (end - begin < 6) {
        if (const auto m = map_.shortest_prefix(view.substr(begin, end - begin))) {
          writer.replace(begin, end, m->replacement);
          begin = end;
          continue;
        }
      }
      while (begin < end) {
        const size_t next = begin + decode_utf8(view, begin).length;
        const auto m = map_.shortest_prefix(view.substr(begin, next - begin));
        m ? writer.replace(begin, next, m->replacement) : writer.keep(begin, next);
        begin = next;
      }
    }
    writer.finish();
  }

 private:
  static size_t cluster_end(std::string_view view, size_t at) {
    Decoded c = decode_utf8(view, at);
    utf8proc_int32_t state = 0;
    at += c.length;
    while (at < view.size() && c.code != kBadByte) {
      const Decoded next = decode_utf8(view, at);
      if (next.code == kBadByte) break;
      if (utf8proc_grapheme_break_stateful(utf8proc_int32_t(c.code), utf8proc_int32_t(next.code), &state))
        break;
      at += next.length;
      c = next;
    }
    return at;
  }

  Charsmap map_;
};

constexpr std::string_view kSpaceMark = "\xE2\x96\x81";  // ▁

class SentencePiece final : public Normalizer {
 public:
  SentencePiece(Charsmap map, bool remove_extra_spaces)
      : map_(std::move(map)), remove_extra_(remove_extra_spaces) {}
  void apply(TrackedText& text) const override {
    if (!map_.empty()) {
      Rewriter writer(text);
      const std::string_view view = writer.view();
      for (size_t i = 0; i < view.size();) {
        const auto m = map_.longest_prefix(view.substr(i));
        const size_t next = i + (m ? m->length : decode_utf8(view, i).length);
        m ? writer.replace(i, next, m->replacement) : writer.keep(i, next);
        i = next;
      }
      writer.finish();
    }
    if (remove_extra_) remove_extra_spaces(text);
  }

 private:
  static void remove_extra_spaces(TrackedText& text) {
    Rewriter writer(text);
    const std::string_view view = writer.view();
    size_t end = view.size();  // a mark in the text counts as a space here, and only here
    for (std::string_view left = view; left.ends_with(' ') || left.ends_with(kSpaceMark);) {
      left.remove_suffix(left.ends_with(' ') ? 1 : kSpaceMark.size());
      end = left.size();
    }
    bool after_space = true;
    for (size_t i = 0; i < end; ++i) {
      const bool space = view[i] == ' ';
      if (!(space && after_space)) {
        size_t next = i + 1;
        while (!space && next < end && view[next] != ' ') ++next;
        writer.keep(i, next);
        i = next - 1;
      }
      after_space = space;
    }
    writer.finish();
  }

  Charsmap map_;
  bool remove_extra_;
};

class ByteLevel final : public Normalizer {
 public:
  void apply(TrackedText& text) const override {
    rewrite_characters(text, [](Rewriter& writer, char32_t, size_t begin, size_t end) {
      for (size_t i = begin; i < end; ++i)
        append_utf8(writer.out(), byte_to_char(static_cast<unsigned char>(writer.view()[i])));
      writer.wrote(begin, end);
    });
  }
};

NormalizerPtr replace_from_config(const Fields& f) {
  const Fields pattern = f.object("pattern");
  std::string content = f.string("content");
  if (pattern.find("String")) {
    std::string literal = pattern.string("String");
    if (literal.empty())
      return std::make_unique<Replace>(Regex(""), std::move(content));  // matches everywhere
    return std::make_unique<Replace>(std::move(literal), std::move(content));
  }
  return std::make_unique<Replace>(Regex(pattern.string("Regex")), std::move(content));
}

NormalizerPtr sequence_from_config(const Fields& f) {
  std::vector<NormalizerPtr> parts;
  const List& list = f.list("normalizers");
  for (size_t i = 0; i < list.size(); ++i)
    parts.push_back(make_normalizer(list[i], cat(f.path("normalizers"), "[", i, "]")));
  return make_normalizer_sequence(std::move(parts));
}

NormalizerPtr bert_from_config(const Fields& f) {
  const bool lower = f.boolean("lowercase", true);
  return std::make_unique<Bert>(Bert::Flags{.clean = f.boolean("clean_text", true),
                                            .chinese = f.boolean("handle_chinese_chars", true),
                                            .strip_accents = f.boolean("strip_accents", lower),
                                            .lowercase = lower});
}

NormalizerPtr precompiled_from_config(const Fields& f) {
  try {
    const std::vector<std::byte> bytes = decode_base64(f.string("precompiled_charsmap", ""));
    const std::string_view table(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    return std::make_unique<Precompiled>(Charsmap(table, "charsmap"));
  } catch (Error& e) {
    e.set_message(cat(f.where(), ": ", e.message()));
    throw;
  }
}

struct Entry {
  std::string_view type;
  NormalizerPtr (*make)(const Fields&);
};

constexpr Entry kNormalizers[] = {
    {"NFC", [](const Fields&) -> NormalizerPtr { return std::make_unique<FormNormalizer>(NormalForm::nfc); }},
    {"NFD", [](const Fields&) -> NormalizerPtr { return std::make_unique<FormNormalizer>(NormalForm::nfd); }},
    {"NFKC",
     [](const Fields&) -> NormalizerPtr { return std::make_unique<FormNormalizer>(NormalForm::nfkc); }},
    {"NFKD",
     [](const Fields&) -> NormalizerPtr { return std::make_unique<FormNormalizer>(NormalForm::nfkd); }},
    {"Lowercase", [](const Fields&) -> NormalizerPtr { return std::make_unique<Lowercase>(); }},
    {"StripAccents", [](const Fields&) -> NormalizerPtr { return std::make_unique<StripAccents>(); }},
    {"Strip",
     [](const Fields& f) -> NormalizerPtr {
       return std::make_unique<Strip>(f.boolean("strip_left", true), f.boolean("strip_right", true));
     }},
    {"Prepend", [](const Fields& f) { return make_prepend(f.string("prepend")); }},
    {"Replace", replace_from_config},
    {"BertNormalizer", bert_from_config},
    {"Nmt", [](const Fields&) -> NormalizerPtr { return std::make_unique<Nmt>(); }},
    {"Precompiled", precompiled_from_config},
    {"ByteLevel", [](const Fields&) -> NormalizerPtr { return std::make_unique<ByteLevel>(); }},
    {"Sequence", sequence_from_config},
};

}  // namespace

NormalizerPtr make_normalizer(const Value& config, const std::string& where) {
  const Fields f(config, where);
  const std::string type = f.string("type");
  std::vector<std::string_view> names;
  for (const Entry& e : kNormalizers) {
    if (e.type == type) return e.make(f);
    names.push_back(e.type);
  }
  throw invalid(where, ": unknown normalizer type '", type, "'; known: ", join(names));
}

NormalizerPtr make_normalizer_sequence(std::vector<NormalizerPtr> parts) {
  return std::make_unique<Sequence>(std::move(parts));
}
NormalizerPtr make_prepend(std::string text) { return std::make_unique<Prepend>(std::move(text)); }
NormalizerPtr make_replace(std::string_view literal, std::string content) {
  return std::make_unique<Replace>(std::string(literal), std::move(content));
}
NormalizerPtr make_bert_normalizer(bool lowercase, bool strip_accents, bool chinese) {
  return std::make_unique<Bert>(
      Bert::Flags{.chinese = chinese, .strip_accents = strip_accents, .lowercase = lowercase});
}
NormalizerPtr make_sentencepiece(std::string_view charsmap, bool remove_extra_spaces,
                                 const std::string& where) {
  return std::make_unique<SentencePiece>(Charsmap(charsmap, where), remove_extra_spaces);
}

}  // namespace rlx::text
