// Building an ONNX graph node by node.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "rlx/io/onnx/model.h"
#include "rlx/ir/graph.h"
#include "rlx/ir/literal.h"

namespace rlx::onnx {

namespace file = rlx::io::onnx;
using Names = std::vector<std::string>;

file::Attribute attribute(std::string name, int64_t v);
file::Attribute attribute(std::string name, double v);
file::Attribute attribute(std::string name, std::string v);
file::Attribute attribute(std::string name, std::vector<int64_t> v);
file::Attribute attribute(std::string name, file::Graph v);

/// The ONNX graph of one ir::Graph; bodies have a writer of their own that shares the names around it.
class Writer {
 public:
  Writer(const ir::Graph& g, const Writer* outer)
      : graph_(g), outer_(outer), root_(outer == nullptr ? this : outer->root_) {}

  const ir::Graph& graph() const { return graph_; }
  file::Graph& out() { return out_; }

  /// The name of a value of the graph.
  const std::string& name(ir::Value v) const;
  void set_name(ir::Value v, std::string name) { names_[{v.node, v.index}] = std::move(name); }
  std::string fresh(std::string_view stem) const;

  /// Appends a node; returns the names of its outputs.
  Names nodes(const std::string& op, const Names& in, std::vector<file::Attribute> attributes = {},
              int outputs = 1);
  std::string node(const std::string& op, const Names& in, std::vector<file::Attribute> attributes = {}) {
    return nodes(op, in, std::move(attributes))[0];
  }
  std::string constant(const Literal&);
  std::string ints(const std::vector<int64_t>& v);
  std::string scalar(DType dtype, double v) { return constant(Literal::scalar(dtype, v)); }
  std::string cast(const std::string& x, DType to);

  /// Extents as a vector of i64: a constant, or computed from the shapes of inputs.
  std::string dims(const Dims&);
  std::string dim(Dim);  // as a vector of one
  /// Where each symbol can be read: an axis of an input.
  void learn_symbols();

  /// All nodes of the graph, then its outputs by these names.
  void write_body();
  /// Literals whose bytes the graph refers to; they must live until it is written out.
  std::vector<Literal>& kept() { return kept_; }
  file::ValueInfo value_info(const std::string& name, const Shape&) const;

 private:
  const ir::Graph& graph_;
  const Writer* outer_;
  const Writer* root_;
  file::Graph out_;
  std::map<std::pair<ir::NodeId, uint16_t>, std::string> names_;
  // A symbol is read from an input: extent `axis` is factor * symbol + offset.
  struct Place {
    std::string input;
    int axis = 0;
    int64_t factor = 1, offset = 0;
  };
  std::map<std::string, Place> symbols_;
  std::vector<Literal> kept_;  // holds the bytes of constants
  mutable int64_t next_ = 0;
};

/// The graph with operators expanded that have no counterpart of their own.
ir::Graph with_counterparts(const ir::Graph&);

using WriteNode = Names (*)(Writer&, const ir::Node&);
/// How an operator is written; null when it has no counterpart.
WriteNode find_writer(std::string_view op);

// Themes, one per file.
const std::map<std::string_view, WriteNode>& elementwise_writers();
const std::map<std::string_view, WriteNode>& structure_writers();
const std::map<std::string_view, WriteNode>& network_writers();
const std::map<std::string_view, WriteNode>& control_writers();

}  // namespace rlx::onnx
