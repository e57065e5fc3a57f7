// rlx tokenize: text to ids and back.
#include <charconv>
#include <iostream>
#include <memory>

#include "apps/rlx/command.h"
#include "apps/rlx/output.h"
#include "rlx/base/error.h"
#include "rlx/io/model_text.h"
#include "rlx/text/json.h"

namespace rlx::cli {

namespace {

struct TokenizeArguments {
  std::string model;
  bool decode = false, no_special = false, offsets = false, json = false, whole = false;
  bool pair = false, special_as_text = false, truncate_left = false, clean_spaces = false;
  size_t truncate = 0;  // 0: as the tokenizer says
};

text::Value ids_value(const text::Encoding& e) {
  text::List ids;
  for (const text::TokenId id : e.ids) ids.emplace_back(int64_t(id));
  return text::Value(std::move(ids));
}

// With offsets or pairs an entry is {"ids": [...], "type_ids": [...], "offsets": [[begin, end], ...]}.
text::Value encoding_value(const text::Encoding& e, const TokenizeArguments& a) {
  if (!a.offsets && !a.pair) return ids_value(e);
  text::Dict d;
  d.set("ids", ids_value(e));
  if (a.pair) {
    text::List types;
    for (const uint8_t type : e.type_ids) types.emplace_back(int64_t(type));
    d.set("type_ids", text::Value(std::move(types)));
  }
  if (a.offsets) {
    text::List ranges;
    for (const text::Range r : e.offsets)
      ranges.emplace_back(text::List{text::Value(int64_t(r.begin)), text::Value(int64_t(r.end))});
    d.set("offsets", text::Value(std::move(ranges)));
  }
  return text::Value(std::move(d));
}

// One text, or two: separated by a tab in a line, a list of two in JSON.
text::Encoding encode_line(const text::Tokenizer& tokenizer, const std::string& line,
                           const TokenizeArguments& a, const text::EncodeOptions& options, size_t number) {
  if (!a.pair) return tokenizer.encode(line, options);
  const size_t tab = line.find('\t');
  if (tab == line.npos || line.find('\t', tab + 1) != line.npos)
    throw invalid("tokenize: line ", number, ": expected two texts with one tab between them");
  return tokenizer.encode_pair(line.substr(0, tab), line.substr(tab + 1), options);
}

text::Encoding encode_item(const text::Tokenizer& tokenizer, const text::Value& item,
                           const TokenizeArguments& a, const text::EncodeOptions& options) {
  if (!a.pair) {
    if (!item.is_string()) throw invalid("tokenize: expected strings, got ", item.kind_name());
    return tokenizer.encode(item.as_string(), options);
  }
  const bool two = item.is_list() && item.as_list().size() == 2 && item.as_list()[0].is_string() &&
                   item.as_list()[1].is_string();
  if (!two) throw invalid("tokenize: expected lists of two strings, got ", item.kind_name());
  return tokenizer.encode_pair(item.as_list()[0].as_string(), item.as_list()[1].as_string(), options);
}

void print_line(const text::Encoding& e, bool offsets) {
  std::string line;
  for (size_t i = 0; i < e.ids.size(); ++i) {
    if (i) line.push_back(' ');
    append_text(line, e.ids[i]);
    if (offsets) line += cat(":", e.offsets[i].begin, "-", e.offsets[i].end);
  }
  line.push_back('\n');
  print(line);
}

text::TokenId checked_id(int64_t id) {
  if (id < 0 || id > text::kMaxTokenId) throw invalid("tokenize: ", id, " is no token id");
  return text::TokenId(id);
}

std::vector<text::TokenId> parse_ids(const std::string& line, size_t number) {
  std::vector<text::TokenId> ids;
  const char* at = line.data();
  const char* const end = at + line.size();
  while (at != end) {
    if (*at == ' ' || *at == ',' || *at == '\t' || *at == '\r') {
      ++at;
      continue;
    }
    int64_t id = 0;
    const auto [next, error] = std::from_chars(at, end, id);
    if (error != std::errc())
      throw invalid("tokenize: line ", number, ", column ", at - line.data() + 1, ": expected a token id");
    ids.push_back(checked_id(id));
    at = next;
  }
  return ids;
}

void run_json(const text::Tokenizer& tokenizer, const TokenizeArguments& a,
              const text::EncodeOptions& options, const text::DecodeOptions& decoding) {
  const text::Value input = text::parse_json(read_input(), "standard input");
  if (!input.is_list()) throw invalid("tokenize: expected a JSON array, got ", input.kind_name());
  text::List output;
  for (const text::Value& item : input.as_list()) {
    if (!a.decode) {
      output.push_back(encoding_value(encode_item(tokenizer, item, a, options), a));
      continue;
    }
    if (!item.is_list()) throw invalid("tokenize: expected arrays of ids, got ", item.kind_name());
    std::vector<text::TokenId> ids;
    for (const text::Value& id : item.as_list()) {
      if (!id.is_int()) throw invalid("tokenize: expected integers, got ", id.kind_name());
      ids.push_back(checked_id(id.as_int()));
    }
    output.emplace_back(tokenizer.decode(ids, decoding));
  }
  std::string out;
  text::append_json(out, text::Value(std::move(output)));
  out.push_back('\n');
  print(out);
}

void run(const TokenizeArguments& a) {
  text::Tokenizer tokenizer = io::load_tokenizer(a.model);
  if (a.truncate > 0)
    tokenizer.set_truncation(text::Truncation{.max_length = a.truncate, .keep_right = a.truncate_left});
  const text::EncodeOptions options{
      .add_special = !a.no_special, .parse_special = !a.special_as_text, .offsets = a.offsets};
  const text::DecodeOptions decoding{
      .skip_special = a.no_special, .clean_spaces = a.clean_spaces, .replace_invalid = a.json};
  if (a.json) return run_json(tokenizer, a, options, decoding);
  if (a.whole && !a.decode) return print_line(tokenizer.encode(read_input(), options), a.offsets);
  size_t number = 0;
  for (std::string line; std::getline(std::cin, line);) {
    ++number;
    if (a.decode) {
      print(tokenizer.decode(parse_ids(line, number), decoding) + "\n");
    } else {
      print_line(encode_line(tokenizer, line, a, options, number), a.offsets);
    }
  }
}

}  // namespace

void add_tokenize(Command app) {
  const auto a = std::make_shared<TokenizeArguments>();
  Command command =
      app.add_subcommand("tokenize", "turn lines of text from standard input into token ids, or back");
  command
      .add_option("MODEL", a->model,
                  "GGUF file, model folder, tokenizer.json, SentencePiece model, tekken.json, vocab.json, "
                  "vocab.txt or tiktoken ranks")
      .required();
  command.add_flag("--decode", a->decode, "ids to text");
  command.add_flag("--no-special", a->no_special, "add no special tokens; with --decode leave them out");
  Argument offsets =
      command.add_flag("--offsets", a->offsets, "also the bytes of the text each token stands for");
  command.add_flag("--json", a->json, "read a JSON array of strings, write a JSON array of id arrays");
  command.add_flag("--whole", a->whole, "the whole of standard input is one text").excludes("--json");
  command.add_flag("--pair", a->pair, "two texts each: a tab between them in a line, a list of two in JSON")
      .excludes("--decode")
      .excludes("--whole");
  Argument truncate =
      command.add_option("--truncate", a->truncate, "at most so many tokens, special ones included")
          .positive()
          .excludes("--decode");
  command.add_flag("--truncate-left", a->truncate_left, "drop tokens from the left").needs(truncate);
  command.add_flag("--special-as-text", a->special_as_text, "special tokens written out are ordinary text")
      .excludes("--decode");
  command
      .add_flag("--clean-spaces", a->clean_spaces,
                "take out spaces before punctuation where the tokenizer means that")
      .needs("--decode");
  offsets.excludes("--decode");
  command.callback([a] { run(*a); });
}

}  // namespace rlx::cli
