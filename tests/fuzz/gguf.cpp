// A GGUF file that opens can be read in full, and its copy opens and copies to the same bytes.
#include "rlx/io/gguf.h"
#include "tests/fuzz/only_errors.h"

using namespace rlx;

namespace {

void look_at(const io::GgufValue& value) {
  if (value.type() == io::GgufType::string) (void)value.string();
  if (value.type() == io::GgufType::array) {
    for (const io::GgufValue& element : value.elements()) look_at(element);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  return fuzz::only_errors([&] {
    const io::GgufFile file = io::GgufFile::parse(fuzz::bytes_of(data, size), nullptr, "fuzz");
    for (const io::GgufEntry& entry : file.entries()) {
      look_at(entry.value);
      fuzz::require(file.find(entry.key) == &entry.value);
    }
    for (const io::TensorView& t : file.tensors()) {
      fuzz::require(file.find_tensor(t.name) == &t);
      if (t.type.format->decode) (void)io::to_f32(t);
    }
    const std::string copy = io::gguf_copy(file).to_bytes();
    const io::GgufFile again = io::GgufFile::parse(std::as_bytes(std::span(copy)), nullptr, "copy");
    fuzz::require(again.tensors().size() == file.tensors().size());
    fuzz::require(io::gguf_copy(again).to_bytes() == copy);
  });
}
