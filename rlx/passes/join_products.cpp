#include "rlx/passes/join_products.h"

#include <algorithm>
#include <map>
#include <optional>

#include "rlx/ops/elementwise/binary.h"
#include "rlx/ops/linalg/matmul.h"
#include "rlx/ops/shape/concat.h"
#include "rlx/ops/shape/narrow.h"
#include "rlx/ops/shape/transpose.h"

namespace rlx::passes {
namespace {

using ir::Expr;

// Whether a value depends on params alone; its sizes are known then.
std::vector<bool> made_of_params(const ir::Graph& g) {
  std::vector<bool> out;
  for (const ir::Node* n : g.nodes()) {
    if (n->id >= out.size()) out.resize(n->id + 1, false);
    if (n->op->traits.leaf) {
      out[n->id] = n->is<ir::Param>();
      continue;
    }
    const bool sized =
        std::all_of(n->shapes.begin(), n->shapes.end(), [](const Shape& s) { return s.is_static(); });
    out[n->id] = sized && n->op->traits.pure && !n->inputs.empty() &&
                 std::all_of(n->inputs.begin(), n->inputs.end(), [&](ir::Value v) { return out[v.node]; });
  }
  return out;
}

struct Bias {
  const ir::Node* sum = nullptr;  // add(product, bias)
  ir::Value value;
};

/// One product of a group, with the bias behind it.
struct Part {
  const ir::Node* product = nullptr;
  Bias bias;
};

class Joiner {
 public:
  Joiner(const ir::Graph& g, std::vector<Remark>* remarks) : g_(g), fixed_(made_of_params(g)) {
    std::map<std::pair<ir::NodeId, uint16_t>, std::vector<Part>> by_input;
    for (const ir::Node* n : g.nodes()) {
      if (!n->is<ops::Matmul>() || fixed_[n->inputs[0].node]) continue;
      by_input[{n->inputs[0].node, n->inputs[0].index}].push_back({n, bias_of(*n)});
    }
    for (auto& [input, parts] : by_input) {
      if (parts.size() < 2) continue;
      keep_joinable(parts);
      if (remarks != nullptr) tell(parts, *remarks);
    }
  }

  bool finds_any() const { return !groups_.empty(); }

  ir::Rewritten run() {
    ir::Rewritten out{ir::Graph(g_.name()), 0};
    ir::Cloner copy(out.graph);
    for (const ir::NodeId id : g_.leaves()) copy.copy(g_.node(id));
    for (const ir::Node* n : g_.nodes()) {
      if (n->op->traits.leaf) continue;
      const auto group = first_.find(n->id);
      if (group != first_.end()) {
        out.changes += groups_[group->second].size();
        emit(copy, groups_[group->second]);
      }
      if (!copy.has(n->result())) copy.copy(*n);
    }
    copy.copy_outputs(g_);
    out.graph.erase_dead();
    return out;
  }

 private:
  // The bias of a product whose only user adds one: a vector of weights over its columns.
  Bias bias_of(const ir::Node& product) const {
    if (product.uses.size() != 1 || product.uses[0].user == ir::kNoNode) return {};
    const ir::Node& sum = g_.node(product.uses[0].user);
    if (!sum.is<ops::Add>()) return {};
    const ir::Value other = sum.inputs[1 - product.uses[0].operand];
    const Shape& b = g_.shape(other);
    const bool vector = b.rank() == 1 && b.dim(0) == product.shapes[0].dim(-1) && fixed_[other.node];
    return vector ? Bias{&sum, other} : Bias{};
  }

  // Whether an elementwise operator reads the result: it then becomes the epilogue of a product of its own, which saves a pass
  // over memory that a joined product would need.
  bool feeds_elementwise(const Part& p) const {
    const ir::Node& result = p.bias.sum ? *p.bias.sum : *p.product;
    return std::any_of(result.uses.begin(), result.uses.end(), [&](const ir::Use& u) {
      return u.user != ir::kNoNode && g_.node(u.user).op->traits.elementwise;
    });
  }

  // Why the weights of a product cannot be joined with others; empty when they can.
  std::string weights_refused(const Part& p) const {
    const ir::Value weights = p.product->inputs[1];
    const Shape& w = g_.shape(weights);
    if (!fixed_[weights.node]) return "its second operand is not made of params alone";
    if (w.rank() != 2 || !w.is_static() || w.elements() == 0)
      return cat("its weights are ", w, ", no matrix");
    return {};
  }

  std::string refused(const Part& p) const {
    if (std::string why = weights_refused(p); !why.empty()) return why;
    if (feeds_elementwise(p)) return "an elementwise operator reads its result and becomes its epilogue";
    return cat("no other that could be joined has weights of ", g_.shape(p.product->inputs[1]).dtype(),
               p.bias.sum ? " and a bias" : " and no bias");
  }

  void tell(const std::vector<Part>& parts, std::vector<Remark>& remarks) const {
    for (const Part& p : parts) {
      const auto group = std::find_if(groups_.begin(), groups_.end(), [&](const std::vector<Part>& joined) {
        return std::any_of(joined.begin(), joined.end(),
                           [&](const Part& j) { return j.product == p.product; });
      });
      const bool applied = group != groups_.end();
      const std::string input = label_for_remark(g_, g_.node(p.product->inputs[0]));
      remarks.push_back({label_for_remark(g_, *p.product),
                         applied ? cat("one of ", group->size(), " products of ", input, " that were joined")
                                 : cat("not joined with other products of ", input, ": ", refused(p)),
                         applied});
    }
  }

  // Products of one input are joined where all have a bias or none has.
  void keep_joinable(std::vector<Part>& parts) {
    for (const bool with_bias : {true, false}) {
      std::map<DType, std::vector<Part>> groups;
      for (const Part& p : parts) {
        if (with_bias != (p.bias.sum != nullptr) || !weights_refused(p).empty() || feeds_elementwise(p))
          continue;
        groups[g_.shape(p.product->inputs[1]).dtype()].push_back(p);
      }
      for (auto& [dtype, group] : groups) {
        if (group.size() < 2) continue;
        first_[group.front().product->id] = groups_.size();
        groups_.push_back(group);
      }
    }
  }

  // Weights and biases are made of params alone: where they stand behind the first product, they come in front of it.
  void bring(ir::Cloner& copy, ir::Value v) const {
    if (copy.has(v)) return;
    for (const ir::Value operand : g_.node(v).inputs) bring(copy, operand);
    copy.copy(g_.node(v));
  }

  // What a matrix is the transpose of, if it is one.
  std::optional<ir::Value> turned(ir::Value v) const {
    const ir::Node& n = g_.node(v);
    return n.is<ops::Transpose>() && n.shapes[0].rank() == 2 &&
                   n.as<ops::Transpose>().perm != std::vector<int>{0, 1}
               ? std::optional(n.inputs[0])
               : std::nullopt;
  }

  static Expr join(ir::Graph& g, const std::vector<Expr>& parts, int axis) {
    ir::Values values(parts.begin(), parts.end());
    const auto attrs = std::make_shared<ops::Concat::Attrs>(ops::Concat::Attrs{axis});
    return {&g, g.value(g.append(ir::def<ops::Concat>(), attrs, values))};
  }

  void emit(ir::Cloner& copy, const std::vector<Part>& group) const {
    ir::Graph& g = copy.to();
    const ir::OriginScope scope(
        g, ir::noted_origin(*group.front().product, cat("joined ", group.size(), " products")));
    const auto at = [&](ir::Value v) {
      bring(copy, v);
      return Expr{&g, copy.at(v)};
    };
    // Turned weights are joined as they lie and turned together.
    const bool all_turned = std::all_of(
        group.begin(), group.end(), [&](const Part& p) { return turned(p.product->inputs[1]).has_value(); });
    std::vector<Expr> weights, biases;
    for (const Part& p : group) {
      const ir::Value w = p.product->inputs[1];
      weights.push_back(at(all_turned ? *turned(w) : w));
      if (p.bias.sum) biases.push_back(at(p.bias.value));
    }
    const Expr joined = all_turned ? ops::transpose(join(g, weights, 0), {1, 0}) : join(g, weights, 1);
    Expr wide = ops::matmul(at(group.front().product->inputs[0]), joined);
    if (!biases.empty()) wide = ops::add(wide, join(g, biases, 0));
    Dim start = 0;
    for (const Part& p : group) {
      const ir::Node& replaced = p.bias.sum ? *p.bias.sum : *p.product;
      const Dim columns = p.product->shapes[0].dim(-1);
      const Expr part = ops::narrow(wide, wide.shape().rank() - 1, start, columns);
      copy.set(replaced.result(), part);
      if (p.bias.sum) copy.set(p.product->result(), part);  // nobody else reads the bare product
      start = start + columns;
    }
  }

  const ir::Graph& g_;
  std::vector<bool> fixed_;
  std::vector<std::vector<Part>> groups_;
  std::map<ir::NodeId, size_t> first_;  // the first product of a group, to its group
};

}  // namespace

ir::Rewritten join_products(ir::Graph graph, std::vector<Remark>* remarks) {
  Joiner joiner(graph, remarks);
  if (!joiner.finds_any()) return {std::move(graph), 0};
  return joiner.run();
}

}  // namespace rlx::passes
