// The walk over a model: names, scopes, functions, and which node becomes what.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "rlx/io/onnx/contents.h"
#include "rlx/lang/graph.h"
#include "rlx/onnx/import.h"
#include "rlx/onnx/table.h"

namespace rlx::onnx {

using AttributeMap = std::map<std::string, file::Attribute>;

/// The names that nodes may use: those of a graph, and of the graphs around it.
struct Scope {
  const Scope* outer = nullptr;
  std::map<std::string, Item> names = {};
  const file::Opsets* opsets = nullptr;
  const AttributeMap* call = nullptr;  // inside a function: the attributes of the call

  const Item* find(const std::string& name) const;
};

class Importer {
 public:
  /// Inputs of `fixed` become constants, with their values from the options. With `fix_sizes` symbols become the sizes of
  /// the values.
  Importer(const file::Model& model, const ImportOptions& options, const std::set<std::string>& fixed,
           bool fix_sizes);

  Imported run();

  /// The graph that nodes are made in now.
  ir::Graph& graph() const { return *graph_; }
  /// Makes nodes in another graph while it lives: a body, or one that is evaluated at once.
  class Inside {
   public:
    Inside(Importer& importer, ir::Graph& graph, bool folding = false)
        : importer_(importer), before_(importer.graph_), folding_before_(importer.folding_) {
      importer.graph_ = &graph;
      importer.folding_ = folding || importer.folding_;
    }
    ~Inside() {
      importer_.graph_ = before_;
      importer_.folding_ = folding_before_;
    }
    Inside(const Inside&) = delete;

   private:
    Importer& importer_;
    ir::Graph* before_;
    bool folding_before_;
  };

  /// While it lives, nodes of constants are evaluated at once even where they use weights.
  class FoldingWeights {
   public:
    explicit FoldingWeights(Importer& importer) : importer_(importer), before_(importer.folding_weights_) {
      importer.folding_weights_ = true;
    }
    ~FoldingWeights() { importer_.folding_weights_ = before_; }
    FoldingWeights(const FoldingWeights&) = delete;

   private:
    Importer& importer_;
    bool before_;
  };

  Tensor tensor_of(const Item&);
  /// The outputs of a body on these arguments; it sees the names around it.
  Items run_body(const file::Graph& body, const Items& arguments);
  void note(const std::string& text) { notes_.insert(text); }
  file::Contents& contents() { return contents_; }
  /// Whether some input has a size that is not a number.
  bool has_open_sizes() const;

 private:
  Item input_item(const file::ValueInfo& input);
  Dim input_dim(const std::string& input, size_t axis, const file::Dimension& d, const Literal* value);
  void add_initializers(const file::Graph& g, Scope& scope);
  void define(Scope& scope, const std::string& name, Item item);
  void run_nodes(const std::vector<file::Node>& nodes, Scope& scope);
  void run_node(const file::Node& node, Scope& scope);
  Items import_node(const file::Node& node, Scope& scope);
  Items import_entry(const Entry& entry, Call& call);
  Items call_function(const file::Function& fn, const file::Node& node, Items inputs, const Scope& scope);
  std::optional<Items> fold(const Entry& entry, Call& call);
  void finish(const Entry& entry, const Call& call, Items& results);
  void set_outputs(const Scope& scope, Imported& out);
  const file::Function* find_function(const file::Node& node) const;

  const file::Model& model_;
  const ImportOptions& options_;
  const std::set<std::string>& fixed_;
  bool fix_sizes_;
  file::Contents contents_;
  Graph root_;
  ir::Graph* graph_;
  bool folding_ = false, folding_weights_ = false;
  const Scope* scope_ = nullptr;
  int depth_ = 0;
  int64_t nodes_run_ = 0;
  std::map<std::string, Tensor> params_;
  std::set<std::string> weight_names_;
  NamedLiterals weights_;
  std::set<std::string> notes_;
};

}  // namespace rlx::onnx
