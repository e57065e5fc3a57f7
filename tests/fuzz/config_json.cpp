// The JSON reader and the configs on top; what was read is written to text that reads the same.
#include "rlx/io/hf_config.h"
#include "tests/fuzz/only_errors.h"

using namespace rlx;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  fuzz::only_errors([&] {
    const Json json = Json::parse(text, "fuzz");
    fuzz::require(Json::parse(json.text(), "again").text() == json.text());
  });
  fuzz::only_errors([&] {
    const std::string once = io::to_json(io::read_model_config(Json::parse(text, "fuzz")));
    fuzz::require(io::to_json(io::read_model_config(Json::parse(once, "again"))) == once);
  });
  fuzz::only_errors([&] { (void)io::read_generation_config(Json::parse(text, "fuzz")); });
  return fuzz::only_errors([&] { (void)io::read_tokenizer_config(Json::parse(text, "fuzz")); });
}
