// One file of a folder of operator vectors: an operator, its attributes, operands, results and, where the
// operator has a derivative, cotangents of the results and gradients of the operands.
//
//   tensors in.K, out.K, cot.K, grad.K; metadata `op`, `attrs` (JSON), `complex` (names of tensors whose last
//   axis is a pair of real and imaginary part). Booleans are stored as u8.
#pragma once

#include <map>
#include <string>

#include "rlx/lang/graph.h"

namespace rlx::vectors {

struct Case {
  std::string op, attrs;
  std::map<int, Literal> in, out, cot, grad;
};

Case read_case(const std::string& path);

/// The operator on the case's operands as inputs in0, in1, ..., with the results that the case has.
Graph build_graph(const Case&);

/// Norm of the difference over the norm of what is wanted; infinity when the types differ. Integers and
/// booleans must be equal.
double relative_error(const Literal& got, const Literal& want);

struct Outcome {
  int passed = 0, failed = 0;
  std::string failures;  // a line each
};

/// Runs every *.safetensors of a folder on a device: values, then gradients where the case has them.
Outcome run_folder(const std::string& folder, const std::string& device = "ref", bool gradients = true);

}  // namespace rlx::vectors
