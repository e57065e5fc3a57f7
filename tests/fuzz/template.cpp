// The template engine: any source over a small conversation ends in text or an error.
#include "rlx/text/chat_template.h"
#include "rlx/text/json.h"
#include "tests/fuzz/only_errors.h"

using namespace rlx;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const text::Value messages = text::parse_json(
      R"([{"role":"system","content":"s"},{"role":"user","content":"u \u00e9","n":[1,2.5,null,true]}])",
      "messages");
  const std::string_view source(reinterpret_cast<const char*>(data), size);
  return fuzz::only_errors([&] {
    std::tm now{};
    now.tm_mday = 1;
    text::ChatOptions options{.bos_token = "<s>", .eos_token = "</s>"};
    options.now = now;
    (void)text::ChatTemplate(source).render(messages, options);
  });
}
