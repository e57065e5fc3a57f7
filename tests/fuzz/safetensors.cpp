// A safetensors file that opens is written back and reads the same.
#include "rlx/io/safetensors.h"
#include "tests/fuzz/only_errors.h"

using namespace rlx;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  return fuzz::only_errors([&] {
    const io::SafetensorsFile file = io::SafetensorsFile::parse(fuzz::bytes_of(data, size), nullptr, "fuzz");
    for (const io::TensorView& t : file.tensors()) fuzz::require(file.find_tensor(t.name) == &t);
    const std::string copy = io::safetensors_bytes(file.tensors(), file.metadata());
    const io::SafetensorsFile again =
        io::SafetensorsFile::parse(std::as_bytes(std::span(copy)), nullptr, "copy");
    fuzz::require(again.metadata() == file.metadata());
    fuzz::require(io::safetensors_bytes(again.tensors(), again.metadata()) == copy);
  });
}
