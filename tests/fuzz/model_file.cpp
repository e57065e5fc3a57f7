// Every format of the table, by the way of the commands: what is recognised opens, describes itself in JSON, and
// gives the bytes of its tensors.
#include "rlx/io/model_file.h"
#include "rlx/base/json.h"
#include "tests/fuzz/only_errors.h"

using namespace rlx;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  return fuzz::only_errors([&] {
    const io::Input input = io::Input::of_bytes(fuzz::bytes_of(data, size), nullptr, "fuzz");
    if (io::FormatTable::standard().recognise(input) == nullptr) return;
    const io::ModelFile file = io::ModelFile::open(input);
    fuzz::require(Json::parse(io::describe_json(file), "described").at("tensors").size() ==
                  file.tensors.size());
    for (const io::TensorView& t : file.tensors) {
      const int64_t stored = t.stored_bytes();
      fuzz::only_errors([&] { fuzz::require(int64_t(io::unpacked(t).bytes.size()) == stored); });
    }
    fuzz::only_errors([&] { (void)file.tokenizer(); });
    fuzz::only_errors([&] { (void)file.chat_template(); });
  });
}
