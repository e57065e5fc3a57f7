// An .npy array that opens has as many bytes as its shape says.
#include "rlx/io/npy.h"
#include "tests/fuzz/only_errors.h"

using namespace rlx;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  return fuzz::only_errors([&] {
    const io::TensorView t = io::parse_npy(fuzz::bytes_of(data, size), nullptr, "fuzz");
    fuzz::require(t.elements() * t.type.bytes == int64_t(t.bytes.size()));
    if (t.type.dtype && *t.type.dtype != DType::c64) (void)io::to_f32(t);
  });
}
