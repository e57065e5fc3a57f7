// From a graph and its weights to an ONNX model.
//
//   write_file("model.onnx", onnx::export_model(program));
//
// Symbols become dim_params, params initializers. Operators without a counterpart are expanded into those they are composed
// of; what then has none is an error that names it.
#pragma once

#include <string>
#include <string_view>

#include "rlx/lang/program.h"

namespace rlx::onnx {

struct ExportOptions {
  int64_t opset = 21;
};

/// The bytes of a model file. Weights must be there; they are written into it.
std::string export_model(const Program&, const ExportOptions& = {});

/// Whether an operator has a counterpart of its own, or one for each that it is composed of is needed.
bool can_export(std::string_view op);

}  // namespace rlx::onnx
