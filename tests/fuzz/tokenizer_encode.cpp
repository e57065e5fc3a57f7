// Encoding and decoding of any bytes with small tokenizers of every kind; byte-level BPE gives the bytes
// back.
#include <vector>

#include "rlx/text/tokenizer.h"
#include "rlx/text/unicode.h"
#include "rlx/text/vocab_spec.h"
#include "tests/fuzz/only_errors.h"

using namespace rlx;

namespace {

text::Tokenizer byte_level(const char* pre) {
  text::VocabSpec spec{.model = "gpt2", .pre = pre};
  for (int b = 0; b < 256; ++b) text::append_utf8(spec.tokens.emplace_back(), text::byte_to_char(uint8_t(b)));
  for (const char* merge : {"a a", "aa aa", "e r", "\xC4\xA0 t", "\xC4\xA0t h", "1 2", "\xC3\xA4 \xC2\xB8"}) {
    spec.merges.push_back(merge);
    std::string token = merge;
    token.erase(token.find(' '), 1);
    spec.tokens.push_back(token);
  }
  return text::make_tokenizer(spec, "fuzz");
}

text::Tokenizer pieces(const char* model) {
  text::VocabSpec spec{.model = model, .unknown = 0, .remove_extra_spaces = true};
  spec.tokens = {"<unk>",
                 "\xE2\x96\x81",
                 "a",
                 "b",
                 "ab",
                 "\xE2\x96\x81"
                 "ab",
                 "aa",
                 "aaaa",
                 "<s>"};
  spec.scores = {0, -3, -4, -4, -2, -1, -2.5f, -2.25f, 0};
  spec.types.assign(spec.tokens.size(), text::TokenType::normal);
  spec.types[0] = text::TokenType::unknown;
  spec.types[8] = text::TokenType::control;
  return text::make_tokenizer(spec, "fuzz");
}

text::Tokenizer characters() {
  text::VocabSpec spec{.model = "gemma4", .bos = 0};
  spec.tokens = {"<bos>", "\xE2\x96\x81", "a", "b", "ab", "\n", "\n\n", "<0x41>", "<0xC3>"};
  spec.types.assign(spec.tokens.size(), text::TokenType::normal);
  spec.types[0] = text::TokenType::control;
  spec.merges = {"a b"};
  return text::make_tokenizer(spec, "fuzz");
}

const char* const kWordPiece =
    R"({"normalizer":{"type":"BertNormalizer"},"pre_tokenizer":{"type":"BertPreTokenizer"},
  "added_tokens":[{"id":0,"content":"[UNK]","special":true,"lstrip":true,"rstrip":true},
                  {"id":5,"content":"ab","normalized":true,"single_word":true}],
  "decoder":{"type":"WordPiece"},"model":{"type":"WordPiece","vocab":{"[UNK]":0,"a":1,"##b":2,"##c":3,"e":4}}})";
const char* const kMixed =
    R"({"normalizer":{"type":"Sequence","normalizers":[{"type":"NFKC"},{"type":"Lowercase"},
    {"type":"StripAccents"},{"type":"Replace","pattern":{"Regex":" {2,}"},"content":" "}]},
  "pre_tokenizer":{"type":"Sequence","pretokenizers":[{"type":"Metaspace"},{"type":"Digits","individual_digits":false},
    {"type":"Punctuation","behavior":"MergedWithNext"},{"type":"Split","pattern":{"Regex":"[a-c]+"},"behavior":"Contiguous"}]},
  "decoder":{"type":"Sequence","decoders":[{"type":"ByteFallback"},{"type":"Metaspace"},{"type":"Fuse"}]},
  "model":{"type":"BPE","vocab":{"a":0,"b":1,"ab":2,"?":3,"abab":4},"merges":["a b","ab ab"],"unk_token":"?",
           "fuse_unk":true,"byte_fallback":true}})";

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const text::Tokenizer exact[] = {
      byte_level("gpt-2"),     byte_level("llama3"),       byte_level("qwen2"),      byte_level("gpt-4o"),
      byte_level("starcoder"), byte_level("deepseek-llm"), byte_level("kimi-k2"),    byte_level("superbpe"),
      byte_level("afmoe"),     byte_level("tiny_aya"),     byte_level("exaone-moe"), byte_level("chameleon")};
  static const text::Tokenizer others[] = {pieces("llama"), pieces("t5"), characters(),
                                           text::Tokenizer::from_json(kWordPiece),
                                           text::Tokenizer::from_json(kMixed)};
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  for (const text::Tokenizer& tokenizer : exact) {
    const text::Encoding e = tokenizer.encode(input, {.offsets = true});
    fuzz::require(tokenizer.decode(e.ids) == input);
    for (const text::Range r : e.offsets) fuzz::require(r.begin <= r.end && r.end <= input.size());
  }
  for (const text::Tokenizer& tokenizer : others) {
    const text::Encoding e = tokenizer.encode(input, {.offsets = true});
    fuzz::require(e.ids == tokenizer.encode(input).ids);
    for (const text::Range r : e.offsets) fuzz::require(r.begin <= r.end && r.end <= input.size());
    (void)tokenizer.decode(e.ids);
    text::StreamDecoder stream(tokenizer);
    for (const text::TokenId id : e.ids) (void)stream.push(id);
    (void)stream.finish();
  }
  return 0;
}
