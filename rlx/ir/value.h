// Names for what a node produces.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "rlx/base/shape.h"

namespace rlx::ir {

using NodeId = uint32_t;
inline constexpr NodeId kNoNode = 0xffffffff;

/// Result `index` of node `node`. Ids are stable inside a graph and its copies; `tag` tells graphs apart, so
/// that a value of another graph is refused (0: not checked).
struct Value {
  NodeId node = kNoNode;
  uint16_t index = 0;
  uint16_t tag = 0;

  friend bool operator==(Value a, Value b) { return a.node == b.node && a.index == b.index; }
};

using Values = std::vector<Value>;

class Graph;

/// A value together with its graph: what operator functions take and return. Empty means "none". The tensor of a
/// trace (rlx/lang/tensor.h) is one with methods.
struct Expr {
  Graph* graph = nullptr;
  Value value;

  explicit operator bool() const { return graph != nullptr; }
  const Shape& shape() const;
  DType dtype() const { return shape().dtype(); }
  int rank() const { return shape().rank(); }
  /// Extent of an axis.
  Dim dim(int axis) const { return shape().dim(axis); }
  /// Without the graph.
  operator Value() const { return value; }  // NOLINT: a tensor is a value that knows its graph
};

using Exprs = std::vector<Expr>;

}  // namespace rlx::ir
