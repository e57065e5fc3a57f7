#include "rlx/text/ranked_vocab.h"

#include <algorithm>
#include <charconv>
#include <limits>

#include "rlx/base/base64.h"
#include "rlx/base/error.h"
#include "rlx/text/bpe.h"
#include "rlx/text/json.h"
#include "rlx/text/located.h"
#include "rlx/text/pre_table.h"
#include "rlx/text/splitter.h"
#include "rlx/text/tokenizer_file.h"
#include "rlx/text/vocab_files.h"

namespace rlx::text {

namespace {

constexpr size_t kMaxTokenBytes = 1024;  // the longest of a published file has 256

std::string spelled(std::string_view bytes) {
  std::string out;
  for (const char c : bytes) append_utf8(out, byte_to_char(static_cast<unsigned char>(c)));
  return out;
}

Vocab make_vocab(const RankedVocab& ranked) {
  Vocab vocab;
  vocab.reserve(ranked.tokens.size(), ranked.tokens.size() * 8);
  for (const RankedVocab::Entry& t : ranked.tokens) {
    if (t.bytes.empty() || t.bytes.size() > kMaxTokenBytes)
      throw invalid("the token of id ", t.id, " has ", t.bytes.size(), " bytes; 1 to ", kMaxTokenBytes);
    if (!vocab.add(spelled(t.bytes), t.id))
      throw invalid("the token '", spelled(t.bytes), "' or its id ", t.id, " is there twice");
  }
  for (int byte = 0; byte < 256; ++byte)
    if (!vocab.find(spelled(std::string(1, char(byte)))))
      throw invalid("there is no token for the byte ", byte, "; a vocabulary of ranks has all 256");
  return vocab;
}

// Every way to cut a token into two tokens is a merge of its rank.
std::vector<Merge> make_merges(const RankedVocab& ranked, const Vocab& vocab) {
  const size_t most = 64 * ranked.tokens.size() + 1'000'000;  // published files have up to eight a token
  std::vector<Merge> merges;
  for (size_t rank = 0; rank < ranked.tokens.size(); ++rank) {
    const std::string whole = spelled(ranked.tokens[rank].bytes);
    for (size_t cut = decode_utf8(whole, 0).length; cut < whole.size();
         cut += decode_utf8(whole, cut).length) {
      const auto left = vocab.find(std::string_view(whole).substr(0, cut));
      if (!left) continue;
      const auto right = vocab.find(std::string_view(whole).substr(cut));
      if (right) merges.push_back({*left, *right, ranked.tokens[rank].id, uint32_t(rank)});
    }
    if (merges.size() > most)
      throw invalid("the first ", rank + 1, " tokens can be merged in ", merges.size(), " ways; at most ",
                    most);
  }
  return merges;
}

}  // namespace

TokenizerParts make_ranked(const RankedVocab& ranked) {
  TokenizerParts parts;
  std::vector<PreTokenizerPtr> steps;
  steps.push_back(make_split(ranked.pattern));
  steps.push_back(make_byte_level(false, false));
  parts.pretokenizer = make_pretokenizer_sequence(std::move(steps));
  Vocab vocab = make_vocab(ranked);
  const std::vector<Merge> merges = make_merges(ranked, vocab);
  BpeOptions options;
  options.ignore_merges = true;
  options.bytes = parts.pretokenizer->leave_bytes();
  parts.model = std::make_unique<Bpe>(std::move(vocab), merges, options);
  parts.decoder = make_byte_level_decoder();
  parts.added = ranked.special;
  if (ranked.bos) parts.post_processor = make_frame({*ranked.bos}, {}, {}, false);
  return parts;
}

namespace {

AddedToken special_token(std::string content, TokenId id) {
  AddedToken t;
  t.id = id;
  t.content = std::move(content);
  t.special = true;
  return t;
}

// tiktoken: lines of base64 and rank, which is the id. The pattern and the special tokens are not in the file;
// they are known by its name, or are those of Llama 3, whose tokenizer.model has this form.

constexpr std::string_view kO200kPattern =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

struct NamedId {
  std::string name;
  TokenId id;
};

std::vector<NamedId> llama3_special(TokenId first) {
  std::vector<NamedId> out;
  const auto add = [&](std::string name) { out.push_back({std::move(name), first + TokenId(out.size())}); };
  for (const char* name : {"begin_of_text", "end_of_text", "reserved_special_token_0",
                           "reserved_special_token_1", "finetune_right_pad_id", "step_id", "start_header_id",
                           "end_header_id", "eom_id", "eot_id", "python_tag"})
    add(cat("<|", name, "|>"));
  for (int i = 2; out.size() < 256; ++i) add(cat("<|reserved_special_token_", i, "|>"));
  return out;
}

std::vector<NamedId> qwen_special(TokenId first) {
  std::vector<NamedId> out{{"<|endoftext|>", first}, {"<|im_start|>", first + 1}, {"<|im_end|>", first + 2}};
  for (int i = 0; i < 205; ++i) out.push_back({cat("<|extra_", i, "|>"), first + 3 + i});
  return out;
}

std::vector<NamedId> cl100k_special(TokenId) {
  return {{"<|endoftext|>", 100257},
          {"<|fim_prefix|>", 100258},
          {"<|fim_middle|>", 100259},
          {"<|fim_suffix|>", 100260},
          {"<|endofprompt|>", 100276}};
}

std::vector<NamedId> o200k_special(TokenId) {
  return {{"<|endoftext|>", 199999}, {"<|endofprompt|>", 200018}};
}

std::vector<NamedId> gpt2_special(TokenId) { return {{"<|endoftext|>", 50256}}; }
std::vector<NamedId> no_special(TokenId) { return {}; }

struct TiktokenForm {
  std::string_view name;  // the file's name contains it
  std::string_view pattern;
  std::vector<NamedId> (*special)(TokenId first_free);
  bool adds_bos;  // the first special token goes before each text
};

// The last row is for all other names.
const std::vector<TiktokenForm>& tiktoken_forms() {
  static const std::vector<TiktokenForm> forms = {
      {"cl100k", kLlama3Pattern, cl100k_special, false},
      {"o200k", kO200kPattern, o200k_special, false},
      {"p50k", kGpt2Pattern, gpt2_special, false},
      {"r50k", kGpt2Pattern, gpt2_special, false},
      {"gpt2", kGpt2Pattern, gpt2_special, false},
      {"qwen", kQwen2Pattern, qwen_special, false},
      {"tiktoken.model", find_pre_rules("kimi-k2")->patterns[0], no_special, false},
      {"", kLlama3Pattern, llama3_special, true},
  };
  return forms;
}

RankedVocab read_ranks(std::string_view bytes) {
  RankedVocab out;
  size_t number = 0;
  int64_t previous = -1;
  for (size_t begin = 0; begin < bytes.size();) {
    const size_t end = std::min(bytes.find('\n', begin), bytes.size());
    std::string_view line = bytes.substr(begin, end - begin);
    begin = end + 1;
    ++number;
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty()) continue;
    const size_t space = line.find(' ');
    int64_t rank = 0;
    const char* const digits = line.data() + std::min(space + 1, line.size());
    const auto [stop, error] = std::from_chars(digits, line.data() + line.size(), rank);
    if (space == line.npos || error != std::errc() || stop != line.data() + line.size())
      throw invalid("line ", number, ": expected base64, a space and a rank");
    if (rank <= previous || rank > kMaxTokenId || size_t(rank) > bytes.size())
      throw invalid("line ", number, ": rank ", rank, " after ", previous, "; ranks rise and stay below ",
                    std::min<size_t>(kMaxTokenId, bytes.size()) + 1);
    previous = rank;
    const std::vector<std::byte> token =
        located(cat("line ", number), [&] { return decode_base64(line.substr(0, space)); });
    out.tokens.push_back({{reinterpret_cast<const char*>(token.data()), token.size()}, TokenId(rank)});
  }
  return out;
}

}  // namespace

Tokenizer read_tiktoken(const TokenizerFile& file) {
  return located(file.where, [&] {
    RankedVocab ranked = read_ranks(file.bytes);
    const auto& forms = tiktoken_forms();
    const auto form = std::find_if(forms.begin(), forms.end(), [&](const TiktokenForm& f) {
      return file.name.find(f.name) != file.name.npos;
    });
    ranked.pattern = form->pattern;
    const TokenId first_free = ranked.tokens.empty() ? 0 : ranked.tokens.back().id + 1;
    ranked.special = read_added_tokens(file.siblings);
    if (ranked.special.empty())
      for (NamedId& s : form->special(first_free)) ranked.special.push_back(special_token(s.name, s.id));
    if (form->adds_bos) {
      const auto bos = std::find_if(ranked.special.begin(), ranked.special.end(),
                                    [](const AddedToken& t) { return t.content == "<|begin_of_text|>"; });
      if (bos != ranked.special.end()) ranked.bos = bos->id;
    }
    return Tokenizer(make_ranked(ranked));
  });
}

// tekken.json of Mistral:
//   config         pattern, default_vocab_size, default_num_special_tokens
//   vocab          [{rank, token_bytes (base64)}]: id = rank + number of special tokens
//   special_tokens [{rank, token_str}], in newer files: id = rank
// The vocabulary has more entries than the model has ids; those beyond default_vocab_size do not count.

namespace {

// What files from before `special_tokens` mean by the first ids.
constexpr std::string_view kTekkenSpecial[] = {"<unk>",
                                               "<s>",
                                               "</s>",
                                               "[INST]",
                                               "[/INST]",
                                               "[AVAILABLE_TOOLS]",
                                               "[/AVAILABLE_TOOLS]",
                                               "[TOOL_RESULTS]",
                                               "[/TOOL_RESULTS]",
                                               "[TOOL_CALLS]",
                                               "[IMG]",
                                               "<pad>",
                                               "[IMG_BREAK]",
                                               "[IMG_END]",
                                               "[PREFIX]",
                                               "[MIDDLE]",
                                               "[SUFFIX]",
                                               "[SYSTEM_PROMPT]",
                                               "[/SYSTEM_PROMPT]",
                                               "[TOOL_CONTENT]"};

std::vector<AddedToken> tekken_special(const Fields& file, size_t count) {
  std::vector<std::string> names(count);
  for (size_t i = 0; i < count; ++i)
    names[i] = i < std::size(kTekkenSpecial) && !file.find("special_tokens") ? std::string(kTekkenSpecial[i])
                                                                             : cat("<SPECIAL_", i, ">");
  if (file.find("special_tokens")) {
    const List& list = file.list("special_tokens");
    for (size_t i = 0; i < list.size(); ++i) {
      const Fields f(list[i], cat("special_tokens[", i, "]"));
      const int64_t rank = f.integer("rank", -1);
      if (rank < 0 || size_t(rank) >= count)
        throw invalid(f.path("rank"), ": ", rank, " is not in 0..", int64_t(count) - 1);
      names[size_t(rank)] = f.string("token_str");
    }
  }
  std::vector<AddedToken> out;
  for (size_t i = 0; i < count; ++i) out.push_back(special_token(std::move(names[i]), TokenId(i)));
  return out;
}

int64_t count_field(const Fields& config, std::string_view key, int64_t most) {
  const int64_t value = config.integer(key, -1);
  if (value < 0 || value > most) throw invalid(config.path(key), ": ", value, " is not in 0..", most);
  return value;
}

RankedVocab read_tekken_ranks(const Fields& file) {
  const Fields config = file.object("config");
  const List& list = file.list("vocab");
  RankedVocab out;
  out.pattern = config.string("pattern");
  const int64_t special = count_field(config, "default_num_special_tokens", 1 << 16);
  const int64_t size = count_field(config, "default_vocab_size", kMaxTokenId);
  if (size < special)
    throw invalid(config.path("default_vocab_size"), ": ", size, " is less than the ", special,
                  " special tokens");
  const size_t wanted = std::min(list.size(), size_t(size - special));
  for (size_t i = 0; i < wanted; ++i) {
    const Fields f(list[i], cat("vocab[", i, "]"));
    const int64_t rank = f.integer("rank", -1);
    if (rank != int64_t(i)) throw invalid(f.path("rank"), ": expected ", i, ", got ", rank);
    const std::vector<std::byte> bytes =
        located(f.path("token_bytes"), [&] { return decode_base64(f.string("token_bytes")); });
    out.tokens.push_back(
        {{reinterpret_cast<const char*>(bytes.data()), bytes.size()}, TokenId(special + rank)});
  }
  out.special = tekken_special(file, size_t(special));
  for (const AddedToken& t : out.special)
    if (t.content == "<s>") out.bos = t.id;
  return out;
}

}  // namespace

Tokenizer read_tekken(const TokenizerFile& file) {
  const Value root = parse_json(file.bytes, file.where);
  return located(file.where,
                 [&] { return Tokenizer(make_ranked(read_tekken_ranks(Fields(root, "tekken")))); });
}

}  // namespace rlx::text
