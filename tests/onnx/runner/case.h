// One model with inputs and expected outputs, in the form of ONNX's backend tests or of ../shared/data/onnx.
#pragma once

#include <string>
#include <vector>

#include "rlx/ir/named_literals.h"

namespace rlx::onnx_cases {

struct Tolerance {
  double absolute = 1e-7, relative = 1e-3;
  double relative_l2 = 0;  // above 0: |x - y| / |y| of each output, instead of elements
};

struct DataSet {
  std::string name;
  ir::NamedLiterals inputs, outputs;
};

struct Case {
  std::string name, model;  // model: path of the file
  std::vector<DataSet> sets;
  Tolerance tolerance;
  bool expects_refusal = false;
  std::string data_error;  // why the data cannot be read: strings, sequences
};

enum class Outcome { passed, unsupported, import_error, run_error, wrong_value, random, crash };
std::string_view outcome_name(Outcome);

struct Result {
  Outcome outcome = Outcome::passed;
  std::string message;
};

/// Folders below `folder` that hold a model, sorted by name.
std::vector<std::string> find_cases(const std::string& folder);
Case read_case(const std::string& folder);
Result run_case(const Case&, const std::string& device);
/// As run_case in a process of its own, so that whatever happens is told; at most `seconds` long.
Result run_apart(const std::string& folder, const std::string& device, int seconds);
/// Exports the samples of all operators into folders below `folder`; says which have no counterpart.
void write_samples(const std::string& folder);

}  // namespace rlx::onnx_cases
