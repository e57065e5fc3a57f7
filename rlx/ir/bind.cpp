#include <algorithm>

#include "rlx/ir/unify.h"

namespace rlx::ir {
namespace {

// Calls visit(dim) for every symbolic extent of the graph, bodies included, until it returns true.
template <class Visit>
bool any_symbolic(const Graph& g, const Visit& visit) {
  const auto some = [&](const Dims& dims) {
    return std::any_of(dims.begin(), dims.end(), [&](Dim d) { return d.is_symbolic() && visit(d); });
  };
  for (const Node* n : g.nodes()) {
    for (const Shape& s : n->shapes) {
      if (some(s.dims())) return true;
    }
    for (const FieldInfo& f : n->op->fields) {
      if (f.kind != AttrKind::dim && f.kind != AttrKind::dims && f.kind != AttrKind::shape &&
          f.kind != AttrKind::graph)
        continue;
      const AttrValue v = f.get(n->attrs.get());
      if (const auto* d = std::get_if<Dim>(&v); d && some({*d})) return true;
      if (const auto* dims = std::get_if<Dims>(&v); dims && some(*dims)) return true;
      if (const auto* s = std::get_if<Shape>(&v); s && some(s->dims())) return true;
      if (const auto* body = std::get_if<GraphRef>(&v); body && *body && any_symbolic(**body, visit))
        return true;
    }
  }
  return false;
}

// DimBinding::batch_seq and its like name sizes that not every graph has.
bool is_well_known(const std::string& name) {
  return name == "batch" || name == "seq" || name == "rows" || name == "past_seq";
}

}  // namespace

bool Graph::has_dynamic_dims() const {
  return any_symbolic(*this, [](Dim) { return true; });
}

std::vector<std::string> Graph::dynamic_symbols() const {
  std::vector<std::string> names;
  any_symbolic(*this, [&](Dim d) { return collect_symbols(d, names), false; });
  return names;
}

Shape Graph::resolve(const Shape& s) const {
  return solved_.empty() ? s : s.with_dims(substitute(s.dims(), solved_));
}

void Graph::assume_equal(Dim a, Dim b) {
  if (a.is_inferred() || b.is_inferred())
    throw invalid("graph '", name_, "': -1 is not a size that another can be equal to");
  const Dim to = resolve(b);
  std::vector<std::string> mentioned = dynamic_symbols();
  collect_symbols(to, mentioned);
  // A name that nobody uses yet is only that: a name.
  if (const auto name = a.symbol_name();
      name && !solved_.contains(*name) && !std::binary_search(mentioned.begin(), mentioned.end(), *name)) {
    if (solved_.size() >= kMaxSymbols)
      throw invalid("graph '", name_, "': more than ", kMaxSymbols, " names of other sizes");
    solved_[*name] = to;
    return;
  }
  Unifier sizes(*this);
  sizes.assume({{a, to, kNoNode, "sizes"}}, cat("graph '", name_, "'"));
  sizes.commit();
}

void Graph::assume_sizes_of(const Graph& other) {
  for (const auto& [name, value] : other.solved_) assume_equal(Dim::symbol(name), value);
  for (const Constraint& c : other.constraints()) {
    if (c.node == kNoNode) assume_equal(c.a, c.b);
  }
}

Graph Graph::bind(const DimBinding& binding) const {
  const std::vector<std::string> symbols = dynamic_symbols();
  std::vector<Constraint> equations;
  for (const auto& [name, size] : binding) {
    const auto solved = solved_.find(name);
    if (solved != solved_.end()) {
      const Dim value = rlx::bind(solved->second, binding);
      if (decide_equal(value, size) == false) {
        throw invalid("bind: ", name, " = ", size, ", but in graph '", name_, "' ", name, " is ",
                      solved->second, solved->second == value ? "" : cat(", which is ", value));
      }
      equations.push_back({solved->second, size, kNoNode, cat("sizes of ", name)});
    } else if (std::binary_search(symbols.begin(), symbols.end(), name)) {
      equations.push_back({Dim::symbol(name), size, kNoNode, cat("sizes of ", name)});
    } else if (!is_well_known(name)) {
      std::vector<std::string> known = symbols;
      for (const auto& [other, value] : solved_) known.push_back(other);
      throw invalid("bind: graph '", name_, "' has no symbol '", name, "'; it has ",
                    known.empty() ? std::string("none") : join(known));
    }
  }
  Graph out = *this;
  Unifier sizes(out);
  sizes.assume(std::move(equations), "bind");
  sizes.commit();
  // A symbol that became a number here is gone; one that was a number before keeps its record.
  std::erase_if(out.solved_, [this](const auto& entry) {
    const auto before = solved_.find(entry.first);
    return entry.second.is_static() && (before == solved_.end() || !before->second.is_static());
  });
  return out;
}

}  // namespace rlx::ir
