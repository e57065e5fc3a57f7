// One class per post-processor, then the table of their names. A new one is a class and a line in
// kPostProcessors.
#include "rlx/text/post_processor.h"

#include <algorithm>

#include "rlx/base/error.h"
#include "rlx/text/unicode.h"

namespace rlx::text {

namespace {

TokenId checked_id(int64_t id, const std::string& where) {
  if (id < 0 || id > kMaxTokenId) throw invalid(where, ": token id ", id, " is out of range");
  return TokenId(id);
}

/// A list of texts and special tokens to write one after the other.
class Template final : public PostProcessor {
 public:
  struct Piece {
    int text = -1;  // 0 or 1; -1 for special tokens
    std::vector<TokenId> ids;
    uint8_t type_id = 0;
  };
  Template(std::vector<Piece> single, std::vector<Piece> pair)
      : single_(std::move(single)), pair_(std::move(pair)) {}

  size_t added(bool pair) const override {
    size_t count = 0;
    for (const Piece& p : pair ? pair_ : single_) count += p.ids.size();
    return count;
  }

  void process(std::vector<Encoding>& texts, bool add_special) const override {
    const bool pair = texts.size() > 1;
    bool with_offsets = true;
    for (const Encoding& t : texts) with_offsets &= t.offsets.size() == t.ids.size();
    Encoding out;
    for (const Piece& p : pair ? pair_ : single_) {
      if (p.text < 0) {
        if (!add_special) continue;
        for (const TokenId id : p.ids) out.append_special(id, p.type_id, with_offsets);
      } else {
        Encoding& text = texts[size_t(p.text)];
        text.type_ids.assign(text.ids.size(), p.type_id);
        if (out.ids.empty()) {
          out = text;
        } else {
          out.append(text);
        }
      }
    }
    texts.clear();
    texts.push_back(std::move(out));
  }

 private:
  std::vector<Piece> single_, pair_;
};

/// Takes the spaces at both ends of a byte-level token out of its offsets. An added token has its spaces as
/// they are, of any kind; elsewhere a space is spelled Ġ.
class ByteLevel final : public PostProcessor {
 public:
  ByteLevel(bool trim, bool add_prefix_space) : trim_(trim), add_prefix_space_(add_prefix_space) {}
  size_t added(bool) const override { return 0; }
  void process(std::vector<Encoding>&, bool) const override {}
  void trim(std::vector<Encoding>& texts, std::span<const std::string_view> sources,
            const Spelling& spelling) const override {
    if (!trim_) return;
    for (size_t k = 0; k < texts.size(); ++k) {
      Encoding& e = texts[k];
      for (size_t i = 0; i < e.offsets.size(); ++i) {
        const std::string_view in_text = sources[k].substr(e.offsets[i].begin, e.offsets[i].size());
        trim_one(e.offsets[i], sources[k], spelling(e.ids[i], in_text), i == 0);
      }
    }
  }

 private:
  struct Spaces {
    size_t leading = 0, trailing = 0;
  };
  static Spaces spaces_of(std::string_view token) {
    constexpr char32_t kSpaceLetter = 0x120;  // Ġ
    // Most tokens end in a letter of ASCII, and begin with one or with a Ġ before it.
    const auto plain = [](char c) { return c > ' ' && c < '\x7F'; };
    if (!token.empty() && plain(token.back())) {
      if (plain(token.front())) return {};
      if (token.starts_with("\xC4\xA0") && plain(token[2])) return {.leading = 1};
    }
    const CharClasses classes;
    Spaces s;
    bool at_start = true;
    for (size_t i = 0; i < token.size();) {
      const Decoded c = decode_utf8(token, i);
      if (c.code == kSpaceLetter || (classes[c.code] & kSpace)) {
        ++s.trailing;
        s.leading += at_start;
      } else {
        at_start = false;
        s.trailing = 0;
      }
      i += c.length;
    }
    return s;
  }

  // A space of the token is a character of the text, whatever its bytes: normalisers make spaces of others.
  void trim_one(Range& r, std::string_view source, std::string_view token, bool first) const {
    Spaces s = spaces_of(token);
    // A single space that the pre-tokeniser put in front is not in the text.
    if ((first || r.begin == 0) && s.leading == 1 && add_prefix_space_) s.leading = 0;
    for (; s.leading > 0 && r.begin < r.end; --s.leading)
      r.begin = std::min(r.begin + decode_utf8(source, r.begin).length, r.end);
    if (s.trailing > count_characters(source.substr(0, std::min<size_t>(r.end, 4 * s.trailing)))) return;
    for (; s.trailing > 0 && r.end > r.begin; --s.trailing)
      r.end = std::max(r.end - last_utf8(source.substr(0, r.end)).length, r.begin);
  }

  bool trim_, add_prefix_space_;
};

class Sequence final : public PostProcessor {
 public:
  explicit Sequence(std::vector<PostProcessorPtr> parts) : parts_(std::move(parts)) {}
  size_t added(bool pair) const override {
    size_t count = 0;
    for (const auto& p : parts_) count += p->added(pair);
    return count;
  }
  void trim(std::vector<Encoding>& texts, std::span<const std::string_view> sources,
            const Spelling& spelling) const override {
    for (const auto& p : parts_) p->trim(texts, sources, spelling);
  }
  void process(std::vector<Encoding>& texts, bool add_special) const override {
    for (const auto& p : parts_) p->process(texts, add_special);
  }

 private:
  std::vector<PostProcessorPtr> parts_;
};

std::vector<Template::Piece> read_pieces(const Fields& f, std::string_view key, bool pair) {
  std::vector<Template::Piece> pieces;
  const List& list = f.list(key);
  for (size_t i = 0; i < list.size(); ++i) {
    const Fields item(list[i], cat(f.path(key), "[", i, "]"));
    const bool is_special = item.find("SpecialToken") != nullptr;
    const Fields body = item.object(is_special ? "SpecialToken" : "Sequence");
    Template::Piece piece;
    piece.type_id = uint8_t(body.integer("type_id", 0));
    const std::string id = body.string("id");
    if (is_special) {
      const Fields special = f.object("special_tokens").object(id);
      for (const Value& v : special.list("ids")) {
        if (!v.is_int()) throw invalid(special.path("ids"), ": expected integers, got ", v.kind_name());
        piece.ids.push_back(checked_id(v.as_int(), special.path("ids")));
      }
    } else if (id == "A" || (id == "B" && pair)) {
      piece.text = id == "B";
    } else {
      throw invalid(body.path("id"), ": unknown sequence '", id, "'; known: A", pair ? ", B" : "");
    }
    pieces.push_back(std::move(piece));
  }
  return pieces;
}

PostProcessorPtr template_from_config(const Fields& f) {
  return std::make_unique<Template>(read_pieces(f, "single", false), read_pieces(f, "pair", true));
}

// "sep": ["[SEP]", 102]
TokenId read_named_id(const Fields& f, std::string_view key) {
  const List& pair = f.list(key);
  if (pair.size() != 2 || !pair[1].is_int()) throw invalid(f.path(key), ": expected [token, id]");
  return checked_id(pair[1].as_int(), f.path(key));
}

PostProcessorPtr bert_from_config(const Fields& f) {
  const TokenId cls = read_named_id(f, "cls"), sep = read_named_id(f, "sep");
  return make_frame({cls}, {sep}, {sep}, true);
}

PostProcessorPtr roberta_from_config(const Fields& f) {
  const TokenId cls = read_named_id(f, "cls"), sep = read_named_id(f, "sep");
  std::vector<PostProcessorPtr> parts;
  parts.push_back(
      std::make_unique<ByteLevel>(f.boolean("trim_offsets", true), f.boolean("add_prefix_space", true)));
  parts.push_back(make_frame({cls}, {sep, sep}, {sep}, false));
  return std::make_unique<Sequence>(std::move(parts));
}

PostProcessorPtr sequence_from_config(const Fields& f) {
  std::vector<PostProcessorPtr> parts;
  const List& list = f.list("processors");
  for (size_t i = 0; i < list.size(); ++i)
    parts.push_back(make_post_processor(list[i], cat(f.path("processors"), "[", i, "]")));
  return std::make_unique<Sequence>(std::move(parts));
}

struct Entry {
  std::string_view type;
  PostProcessorPtr (*make)(const Fields&);
};

constexpr Entry kPostProcessors[] = {
    {"BertProcessing", bert_from_config},
    {"ByteLevel",
     [](const Fields& f) -> PostProcessorPtr {
       return std::make_unique<ByteLevel>(f.boolean("trim_offsets", true),
                                          f.boolean("add_prefix_space", true));
     }},
    {"RobertaProcessing", roberta_from_config},
    {"Sequence", sequence_from_config},
    {"TemplateProcessing", template_from_config},
};

}  // namespace

PostProcessorPtr make_post_processor(const Value& config, const std::string& where) {
  const Fields f(config, where);
  const std::string type = f.string("type");
  std::vector<std::string_view> names;
  for (const Entry& e : kPostProcessors) {
    if (e.type == type) return e.make(f);
    names.push_back(e.type);
  }
  throw invalid(where, ": unknown post-processor type '", type, "'; known: ", join(names));
}

PostProcessorPtr make_frame(std::vector<TokenId> prefix, std::vector<TokenId> middle,
                            std::vector<TokenId> suffix, bool second_type_id) {
  const uint8_t second = second_type_id ? 1 : 0;
  return std::make_unique<Template>(
      std::vector<Template::Piece>{{-1, prefix, 0}, {0, {}, 0}, {-1, suffix, 0}},
      std::vector<Template::Piece>{
          {-1, prefix, 0}, {0, {}, 0}, {-1, middle, 0}, {1, {}, second}, {-1, suffix, second}});
}

}  // namespace rlx::text
