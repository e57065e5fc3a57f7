// Building an ONNX graph node by node.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "rlx/io/onnx/model.h"
#include "rlx/ir/graph.h"
#include "rlx/ir/literal.h"
#include "rlx/ir/named_literals.h"

namespace rlx::onnx {

namespace file = rlx::io::onnx;
using Names = std::vector<std::string>;

file::Attribute attribute(std::string name, int64_t v);
file::Attribute attribute(std::string name, double v);
file::Attribute attribute(std::string name, std::string v);
file::Attribute attribute(std::string name, std::vector<int64_t> v);
file::Attribute attribute(std::string name, file::Graph v);

file::Tensor tensor_of(const Literal&, std::string name);

/// Functions of an exported model are in this domain.
inline constexpr std::string_view kFunctionDomain = "rlx";

/// The ONNX graph of one ir::Graph; bodies have a writer of their own that shares the names around it.
class Writer {
 public:
  Writer(const ir::Graph& g, Writer* outer)
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

  /// Nodes of another graph on these names, among the nodes of this one; the names of its outputs.
  Names inlined(const ir::Graph&, const Names& leaves);
  std::vector<file::Function>& functions() { return functions_; }

  /// All nodes of the graph, then its outputs by these names.
  void write_body();
  /// Values of params: what has no counterpart and depends on them alone is computed while it is written.
  void set_weights(const ir::NamedLiterals& weights) { weights_ = &weights; }
  /// Literals whose bytes the graph refers to; they must live until it is written out.
  std::vector<Literal>& kept() { return kept_; }
  file::ValueInfo value_info(const std::string& name, const Shape&) const;

 private:
  const ir::Graph& graph_;
  Writer* outer_;
  Writer* root_;
  /// The value of something that depends on weights alone; nothing where it does not, or they are not known.
  std::optional<Literal> known(ir::Value v) const;
  bool write_known(const ir::Node& n);
  bool write_empty(const ir::Node& n);

  Names write_function(const ir::Node& n);
  std::string function_for(const ir::Node& n, const ir::Graph& body);

  const ir::NamedLiterals* weights_ = nullptr;
  std::vector<file::Function> functions_;  // of the root
  std::vector<std::pair<ir::Graph, std::string>> function_bodies_;
  bool in_function_ = false;  // of the root: constants are nodes
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
  int64_t next_ = 0;
};

/// The graph with operators expanded that have no counterpart of their own. Those that people know by name stay, to
/// become functions, unless `all` is set.
ir::Graph with_counterparts(const ir::Graph&, bool all = false);
/// Whether an operator becomes a function of the model: a composite that readers of a model look for.
bool is_function(std::string_view op);

using WriteNode = Names (*)(Writer&, const ir::Node&);
/// How an operator is written; null when it has no counterpart.
WriteNode find_writer(std::string_view op);

// Themes, one per file.
const std::map<std::string_view, WriteNode>& elementwise_writers();
const std::map<std::string_view, WriteNode>& structure_writers();
const std::map<std::string_view, WriteNode>& convolution_writers();
const std::map<std::string_view, WriteNode>& index_writers();
const std::map<std::string_view, WriteNode>& network_writers();
const std::map<std::string_view, WriteNode>& control_writers();

}  // namespace rlx::onnx
