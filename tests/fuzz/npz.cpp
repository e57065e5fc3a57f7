// The ZIP reader and every array in it.
#include "rlx/io/npy.h"
#include "tests/fuzz/only_errors.h"

using namespace rlx;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  return fuzz::only_errors([&] {
    for (const io::TensorView& t : io::parse_npz(fuzz::bytes_of(data, size), nullptr, "fuzz")) {
      fuzz::require(t.elements() * t.type.bytes == int64_t(t.bytes.size()));
    }
  });
}
