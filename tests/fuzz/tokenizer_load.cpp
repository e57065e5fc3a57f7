// Every loader of tokenizer files; what loads also encodes and decodes.
#include "rlx/text/tokenizer_file.h"
#include "tests/fuzz/only_errors.h"

using namespace rlx;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const auto use = [](const text::Tokenizer& tokenizer) {
    const text::Encoding e = tokenizer.encode("Hello, a b  c\n\xC3\xA9\xFF<s>", {.offsets = true});
    (void)tokenizer.decode(e.ids);
  };
  fuzz::only_errors([&] { use(text::Tokenizer::from_json(bytes, "fuzz")); });
  fuzz::only_errors([&] { use(text::Tokenizer::from_sentencepiece(bytes, "fuzz")); });
  // The bytes as a file of each name, and as the file beside one.
  const auto alone = [](std::string_view) -> std::optional<std::string> { return std::nullopt; };
  const auto beside = [&](std::string_view name) -> std::optional<std::string> {
    if (name == "merges.txt" && !bytes.starts_with('{')) return std::string(bytes);
    if (name == "merges.txt") return "a b\n";
    return std::string(bytes);
  };
  for (const char* name : {"vocab.txt", "x.tiktoken", "tekken.json"})
    fuzz::only_errors([&] { use(text::load_tokenizer_file({bytes, name, "fuzz", alone})); });
  fuzz::only_errors(
      [&] { use(text::load_tokenizer_file({"[UNK]\n[CLS]\n[SEP]\na\n", "vocab.txt", "fuzz", beside})); });
  return fuzz::only_errors([&] {
    use(text::load_tokenizer_file({R"({"a":0,"b":1,"ab":2,"c":3})", "vocab.json", "fuzz", beside}));
  });
}
