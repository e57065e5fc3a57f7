#include "rlx/onnx/import.h"

#include "rlx/io/onnx/read.h"

namespace rlx::onnx {

Imported import_model(const std::string& path, const ImportOptions& options) {
  return import_model(io::onnx::read_model(path), options);
}

}  // namespace rlx::onnx
