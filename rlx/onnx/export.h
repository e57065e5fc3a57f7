// From a graph and its weights to an ONNX model.
//
//   onnx::export_file("model.onnx", program);
//
// Symbols become dim_params, params initializers. Operators without a counterpart are expressed by others, those people
// know as functions of the model; what then has no counterpart is an error that names it.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "rlx/lang/program.h"

namespace rlx::onnx {

/// The version of ONNX, and where weights go.
struct ExportOptions {
  int64_t opset = 21;
  /// Of files: weights of at least so many bytes go into a second file PATH.data. When left out, all stay inside as long as
  /// the model is below 1.5 GB, and those of at least 1 KB go outside when it is not: protobuf ends at 2 GB.
  std::optional<int64_t> external_above = {};
};

/// The bytes of a model file. Weights must be there; they are written into it.
std::string export_model(const Program&, const ExportOptions& = {});

/// Writes the file, and PATH.data beside it where weights go there.
void export_file(const std::string& path, const Program&, const ExportOptions& = {});

/// Whether an operator has a counterpart of its own, or one for each that it is composed of is needed.
bool can_export(std::string_view op);

}  // namespace rlx::onnx
