#include "rlx/ir/interpreter.h"

#include <algorithm>
#include <unordered_map>

#include "rlx/ir/leaves.h"

namespace rlx::ir {
namespace {

int64_t bytes_of(const Literals& values) {
  int64_t total = 0;
  for (const Literal& v : values) total += int64_t(v.bytes().size());
  return total;
}

bool narrow_float(DType t) { return is_float(t) && t != DType::f64 && !is_storage_only(t); }

}  // namespace

Literals Eval::run(const GraphRef& body, std::span<const Literal> in) const {
  return interpreter.run(*body, in);
}

void Interpreter::held(int64_t bytes) {
  stats_.live_bytes += bytes;
  stats_.peak_bytes = std::max(stats_.peak_bytes, stats_.live_bytes);
}

Literals Interpreter::run(const Graph& g, std::span<const Literal> leaves) {
  const auto ids = g.leaves();
  if (ids.size() != leaves.size()) {
    throw invalid("run: graph '", g.name(), "' has ", ids.size(), " inputs and params; ", leaves.size(),
                  " values given");
  }
  Shapes shapes;
  for (const Literal& l : leaves) shapes.push_back(l.shape());
  const DimBinding binding = solve_symbols(g, shapes);
  if (!binding.empty() || g.has_dynamic_dims()) {
    const Graph bound = g.bind(binding);
    const auto left = bound.dynamic_symbols();
    if (!left.empty())
      throw invalid("run: the inputs do not tell the size of ", join(left), "; bind it first");
    return run_static(bound, leaves);
  }
  return run_static(g, leaves);
}

Literals Interpreter::run_static(const Graph& g, std::span<const Literal> leaves) {
  std::unordered_map<NodeId, Literals> values;
  std::unordered_map<NodeId, size_t> pending;  // uses still to come
  size_t leaf = 0;
  for (const Node* n : g.nodes()) {
    pending[n->id] = n->uses.size();
    Literals results;
    if (n->op->traits.leaf) {
      const Literal& given = leaves[leaf++];
      if (given.shape() != n->shapes[0]) {
        throw invalid("run: ", n->op->name, " '", static_cast<const NamedLeaf*>(n->attrs.get())->name,
                      "' is ", n->shapes[0], "; the value is ", given.shape());
      }
      results = {given};
    } else {
      Literals in;
      in.reserve(n->inputs.size());
      for (const Value v : n->inputs) in.push_back(values.at(v.node)[v.index]);
      results = run_node(*n, in);
      held(bytes_of(results));
      for (const Value v : n->inputs) {
        if (--pending[v.node] == 0) {
          if (!g.node(v).op->traits.leaf) held(-bytes_of(values.at(v.node)));
          values.erase(v.node);
        }
      }
    }
    if (n->uses.empty() && !n->op->traits.leaf) {
      held(-bytes_of(results));
    } else {
      values[n->id] = std::move(results);
    }
  }
  Literals out;
  for (const Value v : g.outputs()) out.push_back(values.at(v.node)[v.index]);
  for (const auto& [id, held_values] : values) {
    if (!g.node(id).op->traits.leaf) held(-bytes_of(held_values));
  }
  return out;
}

Literals Interpreter::run_node(const Node& n, std::span<const Literal> in) {
  ++stats_.nodes_run;
  ++stats_.runs_of_op[std::string(n.op->name)];
  Literals out;
  try {
    out = n.op->reference ? n.op->reference(Eval{in, n.shapes, *this}, n.attrs.get()) : run_composite(n, in);
  } catch (Error& e) {
    if (e.node().empty()) e.set_node(n.name.empty() ? cat("%", n.id) : n.name);
    if (e.origin().empty() && n.origin) e.set_origin(n.origin->text());
    throw;
  }
  RLX_CHECK(out.size() == n.shapes.size(), n.op->name, " returned ", out.size(), " results of ",
            n.shapes.size());
  for (size_t i = 0; i < out.size(); ++i) {
    RLX_CHECK(out[i].shape() == n.shapes[i], n.op->name, " returned ", out[i].shape(), ", inferred ",
              n.shapes[i]);
  }
  return out;
}

Literals Interpreter::run_composite(const Node& n, std::span<const Literal> in) {
  RLX_CHECK(n.op->decompose != nullptr, n.op->name, " has neither reference nor decomposition");
  Literals wide(in.begin(), in.end());
  Shapes types;
  for (Literal& v : wide) {
    if (narrow_float(v.dtype())) v = v.cast(DType::f64);
    types.push_back(v.shape());
  }
  const auto key = std::pair(n.op, n.attrs.get());
  auto [it, last] = expansions_.equal_range(key);
  while (it != last && it->second.types != types) ++it;
  if (it == last) {
    Graph g(std::string(n.op->name));
    Values operands;
    for (size_t i = 0; i < types.size(); ++i) operands.push_back(g.input(cat("x", i), types[i]));
    const auto attrs = n.op->copy_attrs(n.attrs.get());
    Infer infer(*n.op, types, nullptr);
    const Shapes results = n.op->infer(infer, attrs.get());
    Values outputs;
    for (const Expr& t : n.op->decompose(Lower{g, operands, results}, attrs.get()))
      outputs.push_back(t.value);
    g.set_outputs(std::move(outputs));
    it = expansions_.emplace(key, Expansion{n.attrs, types, std::move(g)});
  }
  Literals out = run(it->second.graph, wide);
  for (size_t i = 0; i < out.size() && i < n.shapes.size(); ++i) {
    if (narrow_float(n.shapes[i].dtype())) out[i] = out[i].cast(n.shapes[i].dtype());
  }
  return out;
}

DimBinding solve_symbols(const Graph& g, std::span<const Shape> leaves) {
  DimBinding binding;
  size_t i = 0;
  for (const NodeId id : g.leaves()) {
    const Shape& declared = g.node(id).shapes[0];
    const Shape& given = leaves[i++];
    if (declared.rank() != given.rank()) continue;  // told by whoever compares the shapes
    for (int axis = 0; axis < declared.rank(); ++axis) {
      const auto symbol = declared.dim(axis).symbol_name();
      if (!symbol) continue;
      const int64_t size = given.dim(axis).value();
      if (const auto known = binding.get(*symbol); known && *known != size) {
        throw invalid("run: symbol '", *symbol, "' would be both ", *known, " and ", size, " (",
                      static_cast<const NamedLeaf*>(g.node(id).attrs.get())->name, ": ", declared, " given ",
                      given, ")");
      }
      binding.set(*symbol, size);
    }
  }
  return binding;
}

Literals arrange_leaves(const Graph& g, const NamedLiterals& values) {
  std::vector<std::string> problems, known;
  Literals out;
  Shapes shapes;
  for (const NodeId id : g.leaves()) {
    const Node& n = g.node(id);
    const std::string& name = static_cast<const NamedLeaf*>(n.attrs.get())->name;
    known.push_back(name);
    const auto it = values.find(name);
    if (it == values.end()) {
      problems.push_back(cat(n.op->name, " '", name, "' (", n.shapes[0], ") is missing"));
      continue;
    }
    const Shape& given = it->second.shape();
    bool fits = given.rank() == n.shapes[0].rank() && given.dtype() == n.shapes[0].dtype();
    for (int i = 0; fits && i < given.rank(); ++i)
      fits = decide_equal(given.dim(i), n.shapes[0].dim(i)) != false;
    if (!fits) problems.push_back(cat("'", name, "' is ", n.shapes[0], ", the value is ", given));
    out.push_back(it->second);
    shapes.push_back(given);
  }
  for (const auto& [name, value] : values) {
    if (g.find_leaf(name)) continue;
    const std::string near = nearest_name(name, known);
    problems.push_back(
        cat("'", name, "' is not an input", near.empty() ? "" : cat("; did you mean '", near, "'")));
  }
  if (!problems.empty()) {
    throw invalid("run: ", join(problems, "; "), "; graph '", g.name(), "' takes ",
                  known.empty() ? "none" : join(known));
  }
  return out;
}

Literals interpret(const Graph& g, std::span<const Literal> leaves) {
  if (g.outputs().empty())
    throw invalid("run: graph '", g.name(), "' has no outputs; set_outputs says what it computes");
  return Interpreter().run(g, leaves);
}

NamedLiterals interpret(const Graph& g, const NamedLiterals& leaves) {
  const Literals out = interpret(g, arrange_leaves(g, leaves));
  const auto names = g.output_names();
  NamedLiterals named;
  for (size_t i = 0; i < out.size(); ++i) named.emplace(names[i], out[i]);
  return named;
}

}  // namespace rlx::ir
