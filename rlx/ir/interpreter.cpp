#include "rlx/ir/interpreter.h"

#include <algorithm>
#include <new>
#include <unordered_map>

#include "rlx/base/aligned.h"
#include "rlx/ir/call.h"
#include "rlx/ir/leaves.h"

namespace rlx::ir {
namespace {

int64_t bytes_of(const Literals& values) {
  int64_t total = 0;
  for (const Literal& v : values) total += int64_t(v.bytes().size());
  return total;
}

// A result that no memory can hold is told before anybody tries.
void check_memory(const Node& n) {
  for (const Shape& s : n.shapes) {
    if (s.size_bytes() > machine_memory())
      throw invalid(n.op->name, ": ", s, " takes ", s.size_bytes(), " bytes; this machine has ",
                    machine_memory());
  }
}

void place(Error& e, const Node& n) {
  if (e.node().empty()) e.set_node(n.label());
  if (e.origin().empty() && n.origin) e.set_origin(n.origin->text());
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
  Shapes shapes;
  for (const Literal& l : leaves) shapes.push_back(l.shape());
  const DimBinding sizes = solve_sizes(g, shapes);
  g.check_order();
  if (!g.has_dynamic_dims()) return run_static(g, leaves);
  const Graph bound = g.bind(sizes);
  const auto left = bound.dynamic_symbols();
  if (!left.empty()) throw invalid("run: the inputs do not tell the size of ", join(left), "; bind it first");
  return run_static(bound, leaves);
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
    check_memory(n);
    out = n.op->reference ? n.op->reference(Eval{in, n.shapes, *this}, n.attrs.get()) : run_composite(n, in);
  } catch (Error& e) {
    place(e, n);
    throw;
  } catch (const std::bad_alloc&) {
    Error e = environment_error(n.op->name, ": out of memory for ", join(n.shapes));
    place(e, n);
    throw e;
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

Literals arrange_leaves(const Graph& g, const NamedLiterals& values) {
  NamedShapes shapes;
  for (const auto& [name, value] : values) shapes.emplace(name, value.shape());
  Literals out;
  for (const std::string& name : match_call(g, shapes).order) out.push_back(values.at(name));
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
