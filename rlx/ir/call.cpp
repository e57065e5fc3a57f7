#include "rlx/ir/call.h"

#include <algorithm>

#include "rlx/ir/leaves.h"

namespace rlx::ir {
namespace {

using Problems = std::vector<std::string>;

const std::string& leaf_name(const Graph& g, NodeId id) {
  return static_cast<const NamedLeaf*>(g.node(id).attrs.get())->name;
}

Error refusal(const Graph& g, const Problems& problems) {
  std::vector<std::string> known;
  for (const NodeId id : g.leaves()) known.push_back(leaf_name(g, id));
  return invalid("run: ", join(problems, "; "), "; graph '", g.name(), "' takes ",
                 known.empty() ? "none" : join(known));
}

// Solves `declared extent == given size` over all axes of all leaves.
class SizeSolver {
 public:
  explicit SizeSolver(const Graph& g) : g_(g) {}

  void add(NodeId leaf, const Shape& given) {
    const Shape& declared = g_.node(leaf).shapes[0];
    for (int axis = 0; axis < declared.rank(); ++axis) {
      if (declared.dim(axis).is_symbolic()) open_.push_back({leaf, axis, given});
    }
  }

  // Until no equation tells anything new.
  DimBinding run(Problems& problems) {
    for (bool news = true; news;) {
      news = false;
      std::vector<Axis> left;
      for (Axis& e : open_) {
        const Dim declared = declared_of(e), given = e.given.dim(e.axis);
        try {
          const DimSolution s =
              solve_equal(substitute(declared, solved_), given, [](auto&) { return size_t(0); });
          if (s.kind == DimSolution::Kind::open) left.push_back(std::move(e));
          if (s.kind == DimSolution::Kind::never) problems.push_back(conflict(e));
          if (s.kind != DimSolution::Kind::unique) continue;
          for (auto& [name, value] : solved_) value = substitute(value, {{s.symbol, s.value}});
          solved_[s.symbol] = s.value;
          news = true;
        } catch (const Error&) {  // a size became negative
          problems.push_back(conflict(e));
        }
      }
      open_ = std::move(left);
    }
    DimBinding out;
    for (const auto& [name, value] : solved_) {
      if (value.is_static()) out.set(name, value.value());
    }
    return out;
  }

 private:
  struct Axis {
    NodeId leaf;
    int axis;
    Shape given;
  };

  Dim declared_of(const Axis& e) const { return g_.node(e.leaf).shapes[0].dim(e.axis); }

  // The names that gave way to a symbol belong into the message: the user may know the size by them.
  std::string aliases(const std::string& symbol) const {
    std::string out;
    for (const auto& [name, value] : g_.solved_symbols()) {
      if (value.symbol_name() == symbol) out += cat(" = ", name);
    }
    return out;
  }

  std::string conflict(const Axis& e) const {
    const Shape& declared = g_.node(e.leaf).shapes[0];
    const Dim d = declared_of(e);
    const std::string at = cat(leaf_name(g_, e.leaf), ": ", declared, " given ", e.given);
    if (const auto symbol = d.symbol_name(); symbol && solved_.contains(*symbol)) {
      return cat("symbol '", *symbol, "'", aliases(*symbol), " would be both ", solved_.find(*symbol)->second,
                 " and ", e.given.dim(e.axis), " (", at, ")");
    }
    std::vector<std::string> names, known;
    collect_symbols(d, names);
    for (const std::string& name : names) {
      const auto it = solved_.find(name);
      if (it != solved_.end() && it->second.is_static()) known.push_back(cat(name, " = ", it->second));
    }
    return cat("no ", d, " is ", e.given.dim(e.axis), known.empty() ? "" : cat(" with ", join(known)), " (",
               at, ")");
  }

  const Graph& g_;
  std::vector<Axis> open_;
  DimSubstitution solved_;
};

}  // namespace

bool may_be(const Shape& declared, const Shape& given) {
  bool fits = given.rank() == declared.rank() && given.dtype() == declared.dtype();
  for (int i = 0; fits && i < given.rank(); ++i) fits = decide_equal(given.dim(i), declared.dim(i)) != false;
  return fits;
}

Call match_call(const Graph& g, const NamedShapes& values) {
  Call out;
  Problems problems;
  SizeSolver sizes(g);
  for (const NodeId id : g.leaves()) {
    const Node& n = g.node(id);
    out.order.push_back(leaf_name(g, id));
    const auto it = values.find(out.order.back());
    if (it == values.end()) {
      problems.push_back(cat(n.op->name, " '", out.order.back(), "' (", n.shapes[0], ") is missing"));
    } else if (!may_be(n.shapes[0], it->second)) {
      problems.push_back(cat("'", it->first, "' is ", n.shapes[0], ", the value is ", it->second));
    } else {
      sizes.add(id, it->second);
    }
  }
  for (const auto& [name, shape] : values) {
    if (g.find_leaf(name)) continue;
    const std::string near = nearest_name(name, out.order);
    problems.push_back(
        cat("'", name, "' is not an input", near.empty() ? "" : cat("; did you mean '", near, "'")));
  }
  out.sizes = sizes.run(problems);
  if (!problems.empty()) throw refusal(g, problems);
  return out;
}

DimBinding solve_sizes(const Graph& g, std::span<const Shape> leaves) {
  const auto ids = g.leaves();
  if (ids.size() != leaves.size()) {
    throw invalid("run: graph '", g.name(), "' has ", ids.size(), " inputs and params; ", leaves.size(),
                  " values given");
  }
  Problems problems;
  SizeSolver sizes(g);
  for (size_t i = 0; i < ids.size(); ++i) {
    const Node& n = g.node(ids[i]);
    if (may_be(n.shapes[0], leaves[i])) {
      sizes.add(ids[i], leaves[i]);
    } else {
      problems.push_back(
          cat(n.op->name, " '", leaf_name(g, ids[i]), "' is ", n.shapes[0], "; the value is ", leaves[i]));
    }
  }
  DimBinding out = sizes.run(problems);
  if (!problems.empty()) throw invalid("run: ", join(problems, "; "));
  return out;
}

}  // namespace rlx::ir
