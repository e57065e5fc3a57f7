// A program from any file that holds one: graphs of ours in all their forms, and ONNX models.
#pragma once

#include <string>

#include "rlx/io/input.h"
#include "rlx/lang/program.h"
#include "rlx/onnx/import.h"

namespace rlx::cli {

/// `values` are contents of inputs, for models whose sizes depend on them: those that become part of the graph are taken
/// out of it. What is not quite as the model says is told on stderr.
Program open_program(const std::string& path, NamedLiterals* values = nullptr);

/// By the name, or by the first bytes.
bool is_onnx(const io::Input&);
/// What the file says and what becomes of it (apps/rlx/onnx.cpp).
void inspect_onnx(const io::Input&, bool json);
/// Writes an ONNX model as a .rlx text or a saved graph, or any graph as an ONNX model; false when neither end is ONNX.
bool convert_onnx(const std::string& in, const std::string& out);

}  // namespace rlx::cli
