// What an ONNX file says, as plain structs. Names follow onnx.proto; nothing here is checked against operators.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "rlx/io/onnx/element_type.h"

namespace rlx::io::onnx {

struct Graph;

/// Where the bytes of a tensor lie when they are in another file.
struct ExternalData {
  std::string location;
  int64_t offset = 0;
  std::optional<int64_t> length;
};

/// A tensor as stored: exactly one of the lists holds its contents. `raw` is a view of the file.
struct Tensor {
  std::string name;
  int32_t type = 0;
  std::vector<int64_t> dims;
  std::optional<std::span<const std::byte>> raw;
  std::vector<float> floats;
  std::vector<double> doubles;
  std::vector<int64_t> ints;  // of all integer fields
  std::vector<std::string> strings;
  std::optional<ExternalData> external;
};

struct SparseTensor {
  Tensor values, indices;
  std::vector<int64_t> dims;
};

struct Dimension {
  std::optional<int64_t> value;
  std::string symbol;  // empty: nothing is known
};

struct Type {
  enum class Kind { none, tensor, sequence, map, optional, sparse_tensor, opaque };
  Kind kind = Kind::none;
  int32_t element = 0;
  std::optional<std::vector<Dimension>> shape;  // empty: not even the rank is known
  std::shared_ptr<const Type> inner;            // of a sequence or optional
};

struct ValueInfo {
  std::string name;
  Type type;
};

struct Attribute {
  enum class Kind {
    undefined = 0,
    real = 1,
    integer = 2,
    string = 3,
    tensor = 4,
    graph = 5,
    reals = 6,
    integers = 7,
    strings = 8,
    tensors = 9,
    graphs = 10,
    sparse_tensor = 11,
    sparse_tensors = 12,
    type = 13,
    types = 14,
  };
  std::string name;
  std::string reference;  // inside a function: the attribute of the call that it stands for
  Kind kind = Kind::undefined;
  float real = 0;
  int64_t integer = 0;
  std::string string;
  std::shared_ptr<const Tensor> tensor;
  std::shared_ptr<const Graph> graph;
  std::shared_ptr<const SparseTensor> sparse;
  std::vector<float> reals;
  std::vector<int64_t> integers;
  std::vector<std::string> strings;
  std::vector<Tensor> tensors;
  std::shared_ptr<const Type> type;
};

struct Node {
  std::string name, op, domain, overload;
  std::vector<std::string> inputs, outputs;
  std::vector<Attribute> attributes;
};

struct Graph {
  std::string name;
  std::vector<Node> nodes;
  std::vector<Tensor> initializers;
  std::vector<SparseTensor> sparse_initializers;
  std::vector<ValueInfo> inputs, outputs;
};

/// Versions of operator sets by domain; the domain of ONNX itself is empty.
using Opsets = std::map<std::string, int64_t>;

struct Function {
  std::string name, domain, overload;
  std::vector<std::string> inputs, outputs;
  std::vector<std::string> attributes;   // that a call may give
  std::vector<Attribute> with_defaults;  // and those that have a default
  std::vector<Node> nodes;
  Opsets opsets;
};

struct Model {
  std::string path;  // of the file, for messages
  int64_t ir_version = 0;
  std::string producer, producer_version;
  Opsets opsets;
  Graph graph;
  std::vector<Function> functions;
  std::vector<std::pair<std::string, std::string>> metadata;
  bool has_training = false;
  std::vector<std::string> notes;     // what was met and not understood
  std::shared_ptr<const void> owner;  // keeps the bytes behind views
};

}  // namespace rlx::io::onnx
