#include <algorithm>
#include <map>
#include <set>

#include "rlx/backend/cuda/groups/groups.h"
#include "rlx/ir/clone.h"
#include "rlx/ir/leaves.h"
#include "rlx/ops/control/fused.h"
#include "rlx/ops/elementwise/cast.h"
#include "rlx/ops/reduce/reduce.h"

namespace rlx::cuda {
namespace {

constexpr int64_t kLarge = 1 << 20;   // elements that are worth it
constexpr size_t kMostOperators = 3;  // of a value that is made again
constexpr int64_t kFewer = 64;  // so many times fewer numbers are kept rather than made again: those of rows

/// How a result is made from operands of its node: nodes of the body, in order.
struct Recipe {
  const ir::Node* maker;
  ir::Value value;  // in the body
  std::vector<const ir::Node*> nodes;
  ir::ValueMap<ir::Value> kept = {};  // values of the body that the node gives too, and those results
  ir::Values wanted = {};             // values of the body that the node should give
};

/// A node as `fused` one.
struct Form {
  std::shared_ptr<const ops::Fused::Attrs> attrs;
  ir::Values operands;
  std::vector<uint32_t> results;  // of the node, that are left
};

bool is_region(const ir::Node& n) {
  return n.is<ops::Fused>() || n.op->traits.elementwise || n.is<ops::Cast>() || n.is<ops::Reduce>();
}

class Recomputer {
 public:
  Recomputer(const ir::Graph& g, const ir::Target& target) : g_(g), target_(target) {
    for (const ir::Node* n : g.nodes()) {
      for (uint32_t r = 0; is_region(*n) && r < n->shapes.size(); ++r) {
        if (auto recipe = recipe_of(*n, r)) recipes_.emplace(n->result(r), std::move(*recipe));
      }
    }
  }

  /// The graph in which nodes also give what recipes want of them; nothing where that is nothing.
  std::optional<ir::Graph> with_what_is_wanted() const {
    std::map<ir::NodeId, ir::Values> wanted;
    for (const auto& [value, recipe] : recipes_) {
      ir::Values& all = wanted[recipe.maker->id];
      for (const ir::Value v : recipe.wanted) {
        if (std::find(all.begin(), all.end(), v) == all.end()) all.push_back(v);
      }
    }
    std::erase_if(wanted, [](const auto& w) { return w.second.empty(); });
    if (wanted.empty()) return std::nullopt;
    ir::Graph out(g_.name());
    ir::Cloner copy(out);
    for (const ir::NodeId id : g_.leaves()) copy.copy(g_.node(id));
    for (const ir::Node* n : g_.nodes()) {
      if (n->op->traits.leaf) continue;
      const auto more = wanted.find(n->id);
      if (more == wanted.end()) {
        copy.copy(*n);
        continue;
      }
      const ir::Graph& old = *n->as<ops::Fused>().body;  // a single operator has nothing inside
      ir::Graph body("fused");
      ir::Cloner inside(body);
      for (const ir::NodeId leaf : old.leaves()) inside.copy(old.node(leaf));
      for (const ir::Node* inner : old.nodes()) {
        if (!inner->op->traits.leaf) inside.copy(*inner);
      }
      ir::Values results = inside.at(old.outputs());
      for (const ir::Value v : more->second) results.push_back(inside.at(v));
      body.set_outputs(results);
      auto attrs = std::make_shared<ops::Fused::Attrs>(
          ops::Fused::Attrs{std::make_shared<const ir::Graph>(std::move(body))});
      copy.copy(*n, std::move(attrs));
    }
    copy.copy_outputs(g_);
    return out;
  }

  /// Recipes that a region of the target cannot take are none.
  void ask_the_target() {
    std::erase_if(recipes_, [](const auto& r) { return !r.second.wanted.empty(); });
    while (drop_refused()) {
    }
  }

  std::optional<ir::Graph> run() {
    if (recipes_.empty()) return std::nullopt;
    ir::Graph out(g_.name());
    ir::Cloner copy(out);
    for (const ir::NodeId id : g_.leaves()) copy.copy(g_.node(id));
    for (const ir::Node* n : g_.nodes()) {
      if (n->op->traits.leaf) continue;
      if (!is_changed(*n)) {
        copy.copy(*n);
        continue;
      }
      const Form form = form_of(*n);
      if (form.results.empty()) continue;
      const ir::OriginScope scope(out, ir::noted_origin(*n, "large operands are made again"));
      const ir::NodeId id = out.append(ir::def<ops::Fused>(), form.attrs, copy.at(form.operands), n->name);
      for (uint32_t i = 0; i < form.results.size(); ++i)
        copy.set(n->result(form.results[i]), out.value(id, i));
    }
    copy.copy_outputs(g_);
    return out;
  }

 private:
  /// The body of a region; one of a single operator is made.
  const ir::Graph& body_of(const ir::Node& n) {
    if (n.is<ops::Fused>()) return *n.as<ops::Fused>().body;
    auto& body = bodies_[n.id];
    if (!body) {
      body = std::make_unique<ir::Graph>("fused");
      ir::Cloner inside(*body);
      for (const ir::Value v : n.inputs) {
        if (!inside.has(v)) inside.set(v, body->input(cat("x", body->leaves().size()), g_.shape(v)));
      }
      inside.copy(n);
      ir::Values results;
      for (uint32_t r = 0; r < n.shapes.size(); ++r) results.push_back(inside.at(n.result(r)));
      body->set_outputs(results);
    }
    return *body;
  }
  // Operand of the node that leaf `id` of its body stands for.
  ir::Value operand_of(const ir::Node& n, ir::NodeId id) {
    const auto leaves = body_of(n).leaves();
    const auto at = size_t(std::find(leaves.begin(), leaves.end(), id) - leaves.begin());
    if (n.is<ops::Fused>()) return n.inputs[at];
    std::vector<ir::Value> distinct;
    for (const ir::Value v : n.inputs) {
      if (std::find(distinct.begin(), distinct.end(), v) == distinct.end()) distinct.push_back(v);
    }
    return distinct[at];
  }

  std::optional<Recipe> recipe_of(const ir::Node& n, uint32_t r) {
    const Shape& type = n.shapes[r];
    const int readers = readers_of(n, r);
    if (type.dtype() != DType::f32 || type.elements() < kLarge || readers == 0) return std::nullopt;
    const ir::Graph& body = body_of(n);
    Recipe out{&n, body.outputs()[r], {}};
    for (const auto& [value, other] : recipes_) {  // one that needs this result
      for (const auto& [inside, result] : other.kept) {
        if (result == n.result(r)) return std::nullopt;
      }
    }
    std::set<ir::NodeId> wanted{out.value.node};
    int64_t bytes = 0;
    size_t operators = 0;
    const auto nodes = body.nodes();
    for (auto it = nodes.rbegin(); it != nodes.rend(); ++it) {
      const ir::Node& inner = **it;
      if (!wanted.contains(inner.id)) continue;
      if (inner.op->traits.leaf && inner.is<ir::Input>()) {
        const ir::Value from = operand_of(n, inner.id);
        if (recipes_.contains(from)) return std::nullopt;  // it is not kept itself
        bytes += g_.shape(from).size_bytes();
        continue;
      }
      if (inner.id != out.value.node && !inner.is<ir::Full>()) {
        if (const auto result = given(n, inner.result())) {
          out.kept.emplace(inner.result(), *result);
          bytes += inner.shapes[0].size_bytes();
          continue;
        }
        if (inner.shapes[0].elements() * kFewer <= type.elements()) {
          out.wanted.push_back(inner.result());
          bytes += inner.shapes[0].size_bytes();
          continue;
        }
      }
      const bool cheap = inner.op->traits.elementwise || inner.is<ops::Cast>();
      if (!cheap && !inner.is<ir::Full>()) return std::nullopt;
      operators += cheap;
      out.nodes.insert(out.nodes.begin(), &inner);
      for (const ir::Value v : inner.inputs) wanted.insert(v.node);
    }
    // One reader saves the writing, however many bytes it reads instead.
    const bool is_less = readers == 1 ? bytes <= type.size_bytes() : bytes < type.size_bytes();
    if (operators == 0 || operators > kMostOperators || !is_less) return std::nullopt;
    return out;
  }

  // The result of a node that is this value of its body and stays.
  std::optional<ir::Value> given(const ir::Node& n, ir::Value inside) {
    const auto& outputs = body_of(n).outputs();
    const auto at = std::find(outputs.begin(), outputs.end(), inside);
    if (at == outputs.end()) return std::nullopt;
    const ir::Value result = n.result(uint32_t(at - outputs.begin()));
    return recipes_.contains(result) ? std::nullopt : std::optional(result);
  }

  // How many regions read a result; none where others do so too.
  int readers_of(const ir::Node& n, uint32_t r) const {
    int readers = 0;
    for (const ir::Use& u : n.uses) {
      if (u.user == ir::kNoNode) {
        if (g_.outputs()[u.operand].index == r) return 0;
        continue;
      }
      const ir::Node& user = g_.node(u.user);
      if (user.inputs[u.operand].index != r) continue;
      if (!is_region(user)) return 0;
      ++readers;
    }
    return readers;
  }

  bool reads_recipe(const ir::Node& n) const {
    return std::any_of(n.inputs.begin(), n.inputs.end(), [&](ir::Value v) { return recipes_.contains(v); });
  }
  bool is_changed(const ir::Node& n) const {
    for (uint32_t r = 0; r < n.shapes.size(); ++r) {
      if (recipes_.contains(n.result(r))) return true;
    }
    return reads_recipe(n);
  }

  Form form_of(const ir::Node& n) {
    Form out;
    ir::Graph body("fused");
    std::map<std::pair<ir::NodeId, uint32_t>, ir::Value> known;
    const auto operand = [&](ir::Value v) {
      const auto [it, is_new] = known.try_emplace({v.node, v.index});
      if (is_new) {
        it->second = body.input(cat("x", out.operands.size()), g_.shape(v));
        out.operands.push_back(v);
      }
      return it->second;
    };
    const ir::Graph& old = body_of(n);
    ir::Cloner inside(body);
    for (const ir::NodeId leaf : old.leaves()) {
      const ir::Value v = operand_of(n, leaf);
      const auto recipe = recipes_.find(v);
      inside.set(old.node(leaf).result(),
                 recipe == recipes_.end() ? operand(v) : made_again(recipe->second, body, operand));
    }
    for (const ir::Node* inner : old.nodes()) {
      if (!inner->is<ir::Input>()) inside.copy(*inner);
    }
    ir::Values results;
    for (uint32_t r = 0; r < n.shapes.size(); ++r) {
      if (recipes_.contains(n.result(r))) continue;
      results.push_back(inside.at(old.outputs()[r]));
      out.results.push_back(r);
    }
    if (results.empty()) return out;
    body.set_outputs(results);
    out.attrs = std::make_shared<ops::Fused::Attrs>(
        ops::Fused::Attrs{std::make_shared<const ir::Graph>(std::move(body))});
    return out;
  }

  template <class Operand>
  ir::Value made_again(const Recipe& recipe, ir::Graph& body, const Operand& operand) {
    ir::Cloner inside(body);
    const ir::Graph& from = body_of(*recipe.maker);
    for (const ir::Node* inner : recipe.nodes) {
      for (const ir::Value v : inner->inputs) {
        if (inside.has(v)) continue;
        if (const auto kept = recipe.kept.find(v); kept != recipe.kept.end()) {
          inside.set(v, operand(kept->second));
        } else if (from.node(v).is<ir::Input>()) {
          inside.set(v, operand(operand_of(*recipe.maker, v.node)));
        }
      }
      inside.copy(*inner);
    }
    return inside.at(recipe.value);
  }

  // Recipes that a region of the target cannot take are none; true when there was one.
  bool drop_refused() {
    for (const ir::Node* n : g_.nodes()) {
      if (n->op->traits.leaf || !is_changed(*n)) continue;
      const Form form = form_of(*n);
      if (form.results.empty() || is_taken(form)) continue;
      for (const ir::Value v : n->inputs) recipes_.erase(v);
      for (uint32_t r = 0; r < n->shapes.size(); ++r) recipes_.erase(n->result(r));
      return true;
    }
    return false;
  }

  bool is_taken(const Form& form) const {
    ir::Layouts layouts;
    for (const ir::Value v : form.operands) layouts.push_back(ir::Layout::row_major(g_.shape(v).dims()));
    return backend::is_taken(target_, g_, form.attrs, form.operands, layouts);
  }

  const ir::Graph& g_;
  const ir::Target& target_;
  ir::ValueMap<Recipe> recipes_;
  std::map<ir::NodeId, std::unique_ptr<ir::Graph>> bodies_;
};

}  // namespace

std::optional<ir::Graph> with_recomputation(const ir::Graph& g, const ir::Target& target) {
  const std::optional<ir::Graph> wider = Recomputer(g, target).with_what_is_wanted();
  Recomputer recomputer(wider ? *wider : g, target);
  recomputer.ask_the_target();
  return recomputer.run();
}

}  // namespace rlx::cuda
