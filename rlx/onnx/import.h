// From an ONNX model to a graph and its weights.
//
//   const onnx::Imported m = onnx::import_model("model.onnx");
//   const NamedLiterals y = m.program.interpret({{"x", x}});
//
// Symbolic dimensions of the model are symbols of the graph; integers computed from sizes are followed while the graph is
// built. Where a size depends on the contents of an input, the import needs its value (`ImportOptions::values`) and
// becomes a graph for this value. Where it depends on computed data (NonZero), the tensor is as large as it can become
// and a count tells how much of it is meant.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "rlx/io/onnx/model.h"
#include "rlx/lang/program.h"

namespace rlx::onnx {

/// An operator, type or form that this library cannot import; the message names the node.
class Unsupported : public Error {
 public:
  explicit Unsupported(std::string message) : Error(ErrorKind::user, std::move(message)) {}
};

/// A size depends on the contents of an input, and its value was not given.
class NeedsValue : public Error {
 public:
  NeedsValue(std::string message, std::set<std::string> inputs)
      : Error(ErrorKind::user, std::move(message)), inputs_(std::move(inputs)) {}
  /// The inputs whose values are asked for.
  const std::set<std::string>& inputs() const { return inputs_; }

 private:
  std::set<std::string> inputs_;
};

/// What is known of the model beside its file.
struct ImportOptions {
  /// Contents of inputs. Those that sizes depend on become part of the graph; of the others the types are used where the
  /// model leaves them open.
  NamedLiterals values;
};

/// Along `axis` of output `output`, only the first places are meant; how many is output `count`, an i64 scalar.
struct BoundedOutput {
  std::string output;
  int axis = 0;
  std::string count;
};

/// A model as a program, and what about it is not plain.
struct Imported {
  Program program;
  std::vector<BoundedOutput> bounded;
  std::vector<std::string> fixed;  // inputs whose values became part of the graph
  std::vector<std::string> notes;  // what is not quite as the model says
};

/// A model as a graph with its weights. What cannot be imported is an Unsupported that names the node.
Imported import_model(const std::string& path, const ImportOptions& = {});
Imported import_model(const io::onnx::Model&, const ImportOptions& = {});

}  // namespace rlx::onnx
