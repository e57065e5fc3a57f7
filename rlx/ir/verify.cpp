#include <algorithm>
#include <set>

#include "rlx/ir/bodies.h"
#include "rlx/ir/leaves.h"

namespace rlx::ir {
namespace {

constexpr int kMaxBodyDepth = 64;

class Verifier {
 public:
  explicit Verifier(const Graph& g) : g_(g) {
    for (const Constraint& c : g.constraints()) known_.emplace(c.a, c.b);
  }

  std::vector<VerifyError> run(int depth) {
    std::vector<bool> seen;
    std::map<std::string, NodeId> leaves;
    for (const Node* n : g_.nodes()) {
      node_ = n;
      if (n->id >= seen.size()) seen.resize(n->id + 1, false);
      if (check_operands(seen)) check_types();
      check_solved();
      seen[n->id] = true;
      if (n->op->traits.leaf) {
        const std::string& name = leaf_name(*n);
        const auto [it, is_new] = leaves.emplace(name, n->id);
        if (!is_new) report("names", cat(n->op->name, ": '", name, "' is also the name of %", it->second));
      }
      check_bodies(depth);
    }
    check_uses();
    check_outputs();
    return std::move(errors_);
  }

 private:
  void report(std::string rule, std::string message) {
    VerifyError e{std::nullopt, std::move(rule), std::move(message), {}};
    if (node_ != nullptr) {
      e.node = node_->id;
      if (node_->origin) e.origin = node_->origin->text();
    }
    errors_.push_back(std::move(e));
  }

  bool check_operands(const std::vector<bool>& seen) {
    const Node& n = *node_;
    bool sound = true;
    for (size_t i = 0; i < n.inputs.size(); ++i) {
      const Value v = n.inputs[i];
      if (!g_.contains(v.node) || v.index >= g_.node(v.node).shapes.size()) {
        report("operands",
               cat(n.op->name, ": operand ", i, " is %", v.node, "#", v.index, ", which does not exist"));
        sound = false;
      } else if (v.node >= seen.size() || !seen[v.node]) {
        report("order", cat(n.op->name, ": operand ", i, " is %", v.node, ", which depends on %", n.id,
                            "; the graph must have no cycle"));
        sound = false;
      }
    }
    if (std::string wrong = n.op->operand_count_error(int(n.inputs.size())); !wrong.empty()) {
      report("operands", std::move(wrong));
      sound = false;
    }
    return sound;
  }

  // Infers again from the operands; the stored types and attributes must be what inference gives.
  void check_types() {
    const Node& n = *node_;
    Shapes in;
    for (const Value v : n.inputs) in.push_back(g_.shape(v));
    try {
      const auto attrs = n.op->copy_attrs(n.attrs.get());
      std::vector<Constraint> constraints;
      Infer infer(*n.op, in, &constraints);
      const Shapes out = n.op->infer(infer, attrs.get());
      if (out != n.shapes) {
        report("types", cat(n.op->name, ": declared ", join(n.shapes), "; its operands give ", join(out)));
      }
      for (const Constraint& e : constraints) check_known(e);
      for (const FieldInfo& f : n.op->fields) {
        if (!same_value(f.get(attrs.get()), f.get(n.attrs.get()))) {
          report("types", cat(n.op->name, ": attribute ", f.name, " is not in canonical form"));
        }
      }
    } catch (const Error& e) {
      report("types", e.message());
    }
  }

  // An edit may bring sizes together that nobody made one.
  void check_known(const Constraint& e) {
    if (known_.contains({e.a, e.b}) || known_.contains({e.b, e.a})) return;
    report("types", cat(node_->op->name, ": ", e.what, " may differ, ", e.a, " and ", e.b,
                        "; say that they are equal with assume_equal"));
  }

  void check_solved() {
    for (const Shape& s : node_->shapes) {
      if (const Shape now = g_.resolve(s); now != s)
        report("types", cat(node_->op->name, ": declared ", s, ", which is ", now));
    }
  }

  void check_bodies(int depth) {
    // Whether a body may be absent is for infer to say.
    for_each_body(*node_, [&](const FieldInfo& f, const GraphRef& body) {
      if (depth >= kMaxBodyDepth) {
        report("body", cat(node_->op->name, ": bodies nest deeper than ", kMaxBodyDepth));
        return;
      }
      for (const VerifyError& e : Verifier(*body).run(depth + 1)) {
        report("body", cat(node_->op->name, ": in ", f.name, ": ", e));
      }
    });
  }

  void check_uses() {
    std::map<NodeId, std::vector<std::pair<NodeId, uint32_t>>> expected;
    for (const Node* n : g_.nodes()) {
      for (uint32_t i = 0; i < n->inputs.size(); ++i) expected[n->inputs[i].node].push_back({n->id, i});
    }
    for (uint32_t i = 0; i < g_.outputs().size(); ++i) expected[g_.outputs()[i].node].push_back({kNoNode, i});
    for (const Node* n : g_.nodes()) {
      node_ = n;
      std::vector<std::pair<NodeId, uint32_t>> listed;
      for (const Use& u : n->uses) listed.push_back({u.user, u.operand});
      auto& wanted = expected[n->id];
      std::sort(listed.begin(), listed.end());
      std::sort(wanted.begin(), wanted.end());
      if (listed != wanted) {
        report("uses",
               cat(n->op->name, ": the use list of %", n->id, " has ", listed.size(),
                   " entries; the graph uses it ", wanted.size(), " times; change operands with set_inputs"));
      }
    }
    node_ = nullptr;
  }

  void check_outputs() {
    for (size_t i = 0; i < g_.outputs().size(); ++i) {
      const Value v = g_.outputs()[i];
      if (!g_.contains(v.node) || v.index >= g_.node(v.node).shapes.size()) {
        report("outputs", cat("graph '", g_.name(), "': output ", i, " is %", v.node, "#", v.index,
                              ", which does not exist"));
      }
    }
  }

  const Graph& g_;
  std::set<std::pair<Dim, Dim>> known_;
  const Node* node_ = nullptr;
  std::vector<VerifyError> errors_;
};

}  // namespace

std::vector<VerifyError> Graph::verify() const { return Verifier(*this).run(0); }

void Graph::check() const {
  const auto errors = verify();
  if (errors.empty()) return;
  Error e = invalid("verify: ", errors[0].message,
                    errors.size() > 1 ? cat("; and ", errors.size() - 1, " more") : "");
  if (errors[0].node) e.set_node(cat("%", *errors[0].node));
  e.set_origin(errors[0].origin);
  throw e;
}

void append_text(std::string& out, const VerifyError& e) {
  if (e.node) out += cat("%", *e.node, ": ");
  out += e.message;
  if (!e.origin.empty()) out += cat(" (from ", e.origin, ")");
}

}  // namespace rlx::ir
