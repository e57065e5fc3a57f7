// An ONNX model that is imported is a sound graph.
#include "rlx/io/onnx/read.h"
#include "rlx/onnx/import.h"
#include "tests/fuzz/only_errors.h"

using namespace rlx;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  return fuzz::only_errors([&] {
    const onnx::Imported m =
        onnx::import_model(io::onnx::parse_model(fuzz::bytes_of(data, size), nullptr, "/nowhere/fuzz.onnx"));
    fuzz::require(m.program.graph.verify().empty());
    fuzz::require(m.program.missing_weights().empty());
  });
}
