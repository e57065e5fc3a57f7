// What a name of an ONNX graph stands for while the graph is built.
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "rlx/io/onnx/model.h"
#include "rlx/ir/literal.h"
#include "rlx/lang/tensor.h"
#include "rlx/onnx/size.h"

namespace rlx::onnx {

namespace file = rlx::io::onnx;

/// The names of graph inputs whose contents a value depends on.
using Sources = std::set<std::string>;

/// Along `axis` only the first `count` places are meant; the tensor is as large as it can become. `count` is an i64
/// scalar.
struct Bound {
  int axis = 0;
  Tensor count;
};

/// A tensor known in one or several ways, a list of items, or nothing (an optional operand left out).
struct Item {
  enum class Kind { nothing, tensor, sequence };
  Kind kind = Kind::nothing;

  Tensor tensor;                    // where it is a node of a graph
  std::optional<Literal> constant;  // where its contents are known
  bool is_weight = false;           // a constant that becomes a param when it is used
  std::string name;                 // of a weight
  std::optional<Sizes> sizes;       // integers known as expressions
  std::vector<Bound> bounds;
  file::ElementType element = file::ElementType::undefined;
  Sources sources;

  std::vector<Item> list;  // of a sequence

  Item() = default;
  Item(Tensor t) : kind(Kind::tensor), tensor(std::move(t)) {}     // NOLINT: importers return tensors
  Item(Literal l) : kind(Kind::tensor), constant(std::move(l)) {}  // NOLINT
  Item(Sizes s) : kind(Kind::tensor), sizes(std::move(s)) {}       // NOLINT
  static Item sequence(std::vector<Item> items);

  bool is_nothing() const { return kind == Kind::nothing; }
  bool is_tensor() const { return kind == Kind::tensor; }
  bool is_sequence() const { return kind == Kind::sequence; }
  /// Extents and dtype of a tensor, in whatever way it is known.
  Shape shape() const;
  DType dtype() const { return shape().dtype(); }
};

using Items = std::vector<Item>;

}  // namespace rlx::onnx
