// Both loaders of tokenizer files; what loads also encodes and decodes.
#include "rlx/text/tokenizer.h"
#include "tests/fuzz/only_errors.h"

using namespace rlx;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const auto use = [](const text::Tokenizer& tokenizer) {
    const text::Encoding e = tokenizer.encode("Hello, a b  c\n\xC3\xA9\xFF<s>", {.offsets = true});
    (void)tokenizer.decode(e.ids);
  };
  fuzz::only_errors([&] { use(text::Tokenizer::from_json(bytes, "fuzz")); });
  return fuzz::only_errors([&] { use(text::Tokenizer::from_sentencepiece(bytes, "fuzz")); });
}
