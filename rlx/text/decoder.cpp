// One function per decoder, then the table of their names. A new one is a function and a line in kDecoders.
#include "rlx/text/decoder.h"

#include <algorithm>
#include <memory>

#include "rlx/base/error.h"
#include "rlx/text/pretokenizer.h"
#include "rlx/text/regex.h"
#include "rlx/text/tracked_text.h"
#include "rlx/text/unicode.h"
#include "rlx/text/vocab.h"

namespace rlx::text {

namespace {

constexpr std::string_view kMetaspace = "\xE2\x96\x81";

DecodeStep each(std::function<void(std::string&, bool)> rewrite) {
  return {DecodeStep::Kind::each, std::move(rewrite)};
}
DecodeStep list(std::function<void(std::vector<std::string>&)> rewrite) {
  return {DecodeStep::Kind::list, nullptr, std::move(rewrite)};
}
DecodeStep fuse() { return {DecodeStep::Kind::fuse}; }
DecodeStep byte_fallback() { return {DecodeStep::Kind::byte_fallback}; }

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  if (from.empty()) return;
  size_t at = text.find(from);
  if (at == text.npos) return;
  std::string out;
  size_t kept = 0;
  const size_t limit = growth_limit(text.size());
  for (; at != text.npos; at = text.find(from, kept)) {
    out.append(text, kept, at - kept).append(to);
    kept = at + from.size();
    check_growth(out.size(), limit);
  }
  out.append(text, kept);
  text.swap(out);
}

// Undoes the spacing that cutting at punctuation put into English text.
void clean_up_english(std::string& text) {
  constexpr std::pair<std::string_view, std::string_view> kRules[] = {
      {" .", "."},   {" ?", "?"},           {" !", "!"},   {" ,", ","},     {" ' ", "'"},    {" n't", "n't"},
      {" 'm", "'m"}, {" do not", " don't"}, {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"},
  };
  for (const auto& [from, to] : kRules) replace_all(text, from, to);
}

void spell_bytes(std::string& token, bool) {
  std::string bytes;
  for (size_t i = 0; i < token.size();) {
    const Decoded c = decode_utf8(token, i);
    const int byte = char_to_byte(c.code);
    if (byte < 0) return;  // not in the byte-level alphabet: an added token, which stands for itself
    bytes.push_back(char(byte));
    i += c.length;
  }
  token.swap(bytes);
}

Decoder metaspace_from_config(const Fields& f) {
  const std::string mark = f.string("replacement", kMetaspace);
  const bool drop_first = read_prepend_scheme(f) != PrependScheme::never;
  return {each(
      [=](std::string& token, bool first) { replace_all(token, mark, first && drop_first ? "" : " "); })};
}

Decoder replace_from_config(const Fields& f) {
  const Fields pattern = f.object("pattern");
  const std::string content = f.string("content");
  if (pattern.find("String") && !pattern.string("String").empty()) {
    return {each([content, from = pattern.string("String")](std::string& token, bool) {
      replace_all(token, from, content);
    })};
  }
  const auto regex =
      std::make_shared<Regex>(pattern.find("String") ? std::string() : pattern.string("Regex"));
  return {each([content, regex](std::string& token, bool) {
    std::vector<Range> matches;
    regex->find_all(token, {0, uint32_t(token.size())}, matches, Regex::Empty::kept);
    std::string out;
    size_t kept = 0;
    const size_t limit = growth_limit(token.size());
    for (const Range m : matches) {
      out.append(token, kept, m.begin - kept).append(content);
      kept = m.end;
      check_growth(out.size(), limit);
    }
    out.append(token, kept);
    token.swap(out);
  })};
}

Decoder strip_from_config(const Fields& f) {
  const std::string content = f.string("content");
  const int64_t start = f.integer("start", 0), stop = f.integer("stop", 0);
  if (content.empty()) throw invalid(f.path("content"), ": expected a character, got an empty string");
  return {each([=](std::string& token, bool) {
    for (int64_t i = 0; i < start && token.starts_with(content); ++i) token.erase(0, content.size());
    for (int64_t i = 0; i < stop && token.ends_with(content); ++i)
      token.resize(token.size() - content.size());
  })};
}

Decoder bpe_from_config(const Fields& f) {
  // The suffix ends a word; after the last token there is no space.
  const std::string suffix = f.string("suffix", "</w>");
  return {list([=](std::vector<std::string>& tokens) {
    for (std::string& token : tokens) replace_all(token, suffix, &token == &tokens.back() ? "" : " ");
  })};
}

// Connectionist temporal classification, as models of speech write: a token stands once for each time step it lasts, and one
// that is there twice has padding in between.
Decoder ctc_from_config(const Fields& f) {
  const std::string padding = f.string("pad_token", "<pad>"),
                    delimiter = f.string("word_delimiter_token", "|");
  const bool cleanup = f.boolean("cleanup", true);
  return {list([=](std::vector<std::string>& tokens) {
    tokens.erase(std::unique(tokens.begin(), tokens.end()), tokens.end());
    for (std::string& token : tokens) {
      replace_all(token, padding, "");
      if (!cleanup) continue;
      clean_up_english(token);
      replace_all(token, delimiter, " ");
    }
    std::erase(tokens, "");
  })};
}

Decoder sequence_from_config(const Fields& f) {
  Decoder steps;
  const List& list = f.list("decoders");
  for (size_t i = 0; i < list.size(); ++i) {
    for (DecodeStep& step : make_decoder(list[i], cat(f.path("decoders"), "[", i, "]")))
      steps.push_back(std::move(step));
  }
  return steps;
}

struct Entry {
  std::string_view type;
  Decoder (*make)(const Fields&);
};

constexpr Entry kDecoders[] = {
    {"BPEDecoder", bpe_from_config},
    {"ByteFallback", [](const Fields&) -> Decoder { return {byte_fallback()}; }},
    {"ByteLevel", [](const Fields&) { return make_byte_level_decoder(); }},
    {"CTC", ctc_from_config},
    {"Fuse", [](const Fields&) -> Decoder { return {fuse()}; }},
    {"Metaspace", metaspace_from_config},
    {"Replace", replace_from_config},
    {"Sequence", sequence_from_config},
    {"Strip", strip_from_config},
    {"WordPiece",
     [](const Fields& f) {
       return make_wordpiece_decoder(f.string("prefix", "##"), f.boolean("cleanup", true));
     }},
};

void run_byte_fallback(std::vector<std::string>& tokens) {
  std::vector<std::string> out;
  std::string bytes;
  const auto flush = [&] {
    if (bytes.empty()) return;
    // Bytes that spell nothing stay tokens of their own, which counts for the steps behind this one.
    if (is_valid_utf8(bytes)) {
      out.push_back(bytes);
    } else {
      out.insert(out.end(), bytes.size(), "\xEF\xBF\xBD");
    }
    bytes.clear();
  };
  for (std::string& token : tokens) {
    const int byte = byte_token_value(token);
    if (byte >= 0) {
      bytes.push_back(char(byte));
    } else {
      flush();
      out.push_back(std::move(token));
    }
  }
  flush();
  tokens.swap(out);
}

}  // namespace

Decoder make_decoder(const Value& config, const std::string& where) {
  const Fields f(config, where);
  const std::string type = f.string("type");
  std::vector<std::string_view> names;
  for (const Entry& e : kDecoders) {
    if (e.type == type) return e.make(f);
    names.push_back(e.type);
  }
  throw invalid(where, ": unknown decoder type '", type, "'; known: ", join(names));
}

void clean_spaces(std::string& text) {
  constexpr std::pair<std::string_view, std::string_view> kRules[] = {
      {" ?", "?"},   {" !", "!"},   {" .", "."},     {" ,", ","},     {" ' ", "'"},
      {" 's", "'s"}, {" 'm", "'m"}, {" 're", "'re"}, {" 've", "'ve"},
  };
  for (const auto& [from, to] : kRules) replace_all(text, from, to);
}

void append_fallback_bytes(std::string& out, std::string_view bytes) {
  if (is_valid_utf8(bytes)) {
    out.append(bytes);
  } else {
    for (size_t i = 0; i < bytes.size(); ++i) out.append("\xEF\xBF\xBD");
  }
}

void check_growth(size_t bytes, size_t limit) {
  if (bytes > limit)
    throw invalid("decode: the tokenizer's decoder makes more than ", limit,
                  " bytes of its tokens; at most 64 times their bytes and 1 MiB");
}

std::string run_decoder(const Decoder& decoder, size_t begin, std::vector<std::string> tokens) {
  const auto total = [&] {
    size_t bytes = 0;
    for (const std::string& token : tokens) bytes += token.size();
    return bytes;
  };
  const size_t limit = growth_limit(total());
  for (size_t i = begin; i < decoder.size(); ++i) {
    switch (decoder[i].kind) {
      case DecodeStep::Kind::each:
        for (size_t k = 0; k < tokens.size(); ++k) decoder[i].rewrite(tokens[k], k == 0);
        check_growth(total(), limit);
        break;
      case DecodeStep::Kind::byte_fallback:
        run_byte_fallback(tokens);
        break;
      case DecodeStep::Kind::fuse:
        tokens = {join(tokens, "")};
        break;
      case DecodeStep::Kind::list:
        decoder[i].rewrite_list(tokens);
        check_growth(total(), limit);
        break;
    }
  }
  return join(tokens, "");
}

Decoder make_byte_level_decoder() { return {each(spell_bytes), fuse()}; }

Decoder make_suffix_decoder(std::string suffix) {
  return {each(spell_bytes),
          each([suffix = std::move(suffix)](std::string& token, bool) { replace_all(token, suffix, " "); }),
          fuse(), each([](std::string& text, bool) {
            if (text.ends_with(' ')) text.pop_back();
          })};
}

Decoder make_plain_decoder() { return {byte_fallback(), fuse()}; }

Decoder make_wordpiece_decoder(std::string prefix, bool cleanup) {
  return {each([prefix = std::move(prefix), cleanup](std::string& token, bool first) {
    if (!first) {
      if (token.starts_with(prefix)) {
        token.erase(0, prefix.size());
      } else {
        token.insert(token.begin(), ' ');
      }
    }
    if (cleanup) clean_up_english(token);
  })};
}

Decoder make_sentencepiece_decoder(bool strip_leading_space, bool remove_extra_spaces) {
  Decoder steps{each([](std::string& token, bool) { replace_all(token, kMetaspace, " "); }), byte_fallback(),
                fuse()};
  if (strip_leading_space || remove_extra_spaces) {
    steps.push_back(each([=](std::string& text, bool) {
      const size_t spaces = std::min(text.find_first_not_of(' '), text.size());
      text.erase(0, remove_extra_spaces ? spaces : std::min<size_t>(spaces, 1));
    }));
  }
  return steps;
}

}  // namespace rlx::text
