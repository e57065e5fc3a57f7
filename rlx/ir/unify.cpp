#include "rlx/ir/unify.h"

#include <algorithm>
#include <set>
#include <utility>

namespace rlx::ir {
namespace {

bool holds_sizes(AttrKind kind) {
  return kind == AttrKind::dim || kind == AttrKind::dims || kind == AttrKind::shape;
}

bool has_any(const std::vector<std::string>& sorted_names, const DimSubstitution& values) {
  return std::any_of(sorted_names.begin(), sorted_names.end(),
                     [&](const std::string& name) { return values.contains(name); });
}

// "4" where both are the same, "4 (n = 4)" else.
std::string explained(Dim given, Dim resolved) {
  return given == resolved ? cat(given) : cat(resolved, " (", given, " = ", resolved, ")");
}

}  // namespace

const Shape& Unifier::shape(Value v) const {
  const auto it = nodes_.find(v.node);
  return it == nodes_.end() ? g_.shape(v) : it->second.shapes[v.index];
}

Shapes Unifier::shapes_of(std::span<const Value> values) const {
  Shapes out;
  out.reserve(values.size());
  for (const Value v : values) out.push_back(shape(v));
  return out;
}

bool Unifier::infers_alone(const Graph& g, const OpDef& op, Typed& typed, std::span<const Value> inputs) {
  const auto is_body = [](const FieldInfo& f) { return f.kind == AttrKind::graph; };
  if (!g.solved_.empty() || std::any_of(op.fields.begin(), op.fields.end(), is_body)) return false;
  Shapes types;
  types.reserve(inputs.size());
  for (const Value v : inputs) types.push_back(g.shape(v));
  Infer context(op, types, &typed.open);
  typed.shapes = op.infer(context, typed.attrs.get());
  return typed.open.empty();
}

Typed Unifier::infer(const OpDef& op, std::shared_ptr<void> attrs, std::span<const Value> inputs) {
  std::vector<Constraint> kept;  // an equation stays, though a size that is 1 by now may not ask for it again
  for (;;) {
    Typed typed = infer_once(op, std::move(attrs), shapes_of(inputs));
    typed.open.insert(typed.open.end(), kept.begin(), kept.end());
    if (typed.open.empty()) return typed;
    pending_ = {&op, typed.attrs.get()};
    if (!absorb(typed.open, op.name)) return typed;
    propagate();
    attrs = std::move(typed.attrs);
    kept = std::move(typed.open);
  }
}

Typed Unifier::infer_once(const OpDef& op, std::shared_ptr<void> attrs, const Shapes& types) {
  Typed out;
  resolve_attrs(op, attrs.get(), out.open);
  Infer context(op, types, &out.open);
  out.shapes = op.infer(context, attrs.get());
  out.attrs = std::move(attrs);
  return out;
}

void Unifier::assume(std::vector<Constraint> equations, std::string_view who) {
  if (absorb(equations, who)) propagate();
  own_.insert(own_.end(), equations.begin(), equations.end());
}

// Solves what has a solution and leaves the rest in `equations`. Whether a symbol gave way.
bool Unifier::absorb(std::vector<Constraint>& equations, std::string_view who) {
  bool news = false;
  std::vector<Constraint> open;
  for (Constraint& e : equations) {
    const Dim a = resolve(e.a), b = resolve(e.b);
    const DimSolution s = solve_equal(a, b, [this](const std::string& name) { return age(name); });
    switch (s.kind) {
      case DimSolution::Kind::always:
        break;
      case DimSolution::Kind::never:
        throw invalid(who, ": ", e.what, " differ, ", explained(e.a, a), " and ", explained(e.b, b));
      case DimSolution::Kind::unique:
        substitute(s.symbol, s.value);
        news = true;
        break;
      case DimSolution::Kind::open:
        if (std::none_of(open.begin(), open.end(), [&](const Constraint& c) { return c.a == a && c.b == b; }))
          open.push_back({a, b, e.node, std::move(e.what)});
    }
  }
  equations = std::move(open);
  return news;
}

void Unifier::substitute(const std::string& symbol, Dim value) {
  if (!changed_) solved_ = g_.solved_;
  changed_ = true;
  for (auto& [name, was] : solved_) was = rlx::substitute(was, {{symbol, value}});
  solved_[symbol] = value;
  resolved_.clear();
}

// Infers anew whatever the substitution touches, until nothing new comes out of it.
void Unifier::propagate() {
  while (infer_stale()) {
  }
}

bool Unifier::infer_stale() {
  bool news = false;
  std::set<NodeId> retyped;
  for (const Node* n : g_.nodes()) {
    const auto before = nodes_.find(n->id);
    const bool staged = before != nodes_.end();
    const Shapes& shapes = staged ? before->second.shapes : n->shapes;
    const void* attrs = staged ? before->second.attrs.get() : n->attrs.get();
    const bool stale =
        std::any_of(n->inputs.begin(), n->inputs.end(), [&](Value v) { return retyped.contains(v.node); }) ||
        std::any_of(shapes.begin(), shapes.end(), [&](const Shape& s) { return is_stale(s); }) ||
        has_stale_attrs(*n->op, attrs);
    if (!stale) continue;
    try {
      Typed typed = infer_once(*n->op, n->op->copy_attrs(attrs), shapes_of(n->inputs));
      for (Constraint& e : typed.open) e.node = n->id;
      news |= absorb(typed.open, n->op->name);
      if (typed.shapes != shapes) retyped.insert(n->id);
      nodes_[n->id] = std::move(typed);
    } catch (Error& e) {
      if (e.node().empty()) e.set_node(cat("%", n->id));
      if (e.origin().empty() && n->origin) e.set_origin(n->origin->text());
      throw;
    }
  }
  // What was left open may have a solution now, or none; the nodes themselves have better words for that.
  if (!recorded_) recorded_.emplace(g_.constraints().begin(), g_.constraints().end());
  std::vector<Constraint> open;
  for (const Constraint& c : *recorded_) {
    if (!is_stale(c.a) && !is_stale(c.b)) {
      open.push_back(c);
      continue;
    }
    std::vector<Constraint> one{c};
    news |= absorb(
        one, c.node == kNoNode ? cat("graph '", g_.name(), "'") : std::string(g_.node(c.node).op->name));
    open.insert(open.end(), one.begin(), one.end());
  }
  recorded_ = std::move(open);
  return news;
}

void Unifier::commit() {
  if (changed_) {
    g_.solved_ = std::move(solved_);
    std::set<std::tuple<NodeId, Dim, Dim>> known;
    for (const Constraint& c : *recorded_) known.emplace(c.node, c.a, c.b);
    g_.constraints_ = std::move(*recorded_);
    for (auto& [id, typed] : nodes_) {
      Node& n = *g_.nodes_[id];
      for (size_t i = 0; i < n.shapes.size(); ++i)
        n.shapes[i] = typed.shapes[i];  // in place: there are readers
      n.attrs = std::move(typed.attrs);
      for (Constraint& c : typed.open) {
        if (known.emplace(c.node, c.a, c.b).second) g_.constraints_.push_back(std::move(c));
      }
    }
  }
  for (Constraint& c : own_) g_.constraints_.push_back(std::move(c));
}

Dim Unifier::resolve(Dim d) {
  const DimSubstitution& values = solved();
  if (!d.is_symbolic() || values.empty()) return d;
  const auto [it, is_new] = resolved_.try_emplace(d.rep());
  if (is_new) it->second = rlx::substitute(d, values);
  return it->second;
}

bool Unifier::is_stale(const Shape& s) {
  return std::any_of(s.dims().begin(), s.dims().end(), [&](Dim d) { return is_stale(d); });
}

bool Unifier::has_stale_attrs(const OpDef& op, const void* attrs) {
  for (const FieldInfo& f : op.fields) {
    if (!holds_sizes(f.kind) && f.kind != AttrKind::graph) continue;
    const AttrValue v = f.get(attrs);
    if (const auto* d = std::get_if<Dim>(&v); d && is_stale(*d)) return true;
    if (const auto* dims = std::get_if<Dims>(&v); dims && is_stale(Shape(DType::f32, *dims))) return true;
    if (const auto* s = std::get_if<Shape>(&v); s && is_stale(*s)) return true;
    const auto* body = std::get_if<GraphRef>(&v);
    if (body && *body && has_any((*body)->dynamic_symbols(), solved())) return true;
  }
  return false;
}

// `facts` takes what the bodies know of sizes.
void Unifier::resolve_attrs(const OpDef& op, void* attrs, std::vector<Constraint>& facts) {
  for (const FieldInfo& f : op.fields) {
    if (f.kind != AttrKind::graph && (!holds_sizes(f.kind) || solved().empty())) continue;
    AttrValue v = f.get(attrs);
    if (auto* d = std::get_if<Dim>(&v)) *d = resolve(*d);
    if (auto* dims = std::get_if<Dims>(&v)) {
      for (Dim& d : *dims) d = resolve(d);
    }
    if (auto* s = std::get_if<Shape>(&v)) {
      Dims dims = s->dims();
      for (Dim& d : dims) d = resolve(d);
      *s = s->with_dims(std::move(dims));
    }
    if (auto* body = std::get_if<GraphRef>(&v)) {
      const GraphRef resolved = *body ? resolve_body(*body, facts) : nullptr;
      if (resolved == *body) continue;
      *body = resolved;
    }
    f.set(attrs, v);
  }
}

// The body in terms of the symbols in use here. What it found out about them becomes `facts`: the graph around
// it keeps them for both.
GraphRef Unifier::resolve_body(const GraphRef& body, std::vector<Constraint>& facts) {
  const DimSubstitution& values = solved();
  const auto fact = [&](Dim a, Dim b) { facts.push_back({a, b, kNoNode, cat("sizes in ", body->name())}); };
  GraphRef out = body;
  for (const auto& [name, value] : body->solved_) fact(Dim::symbol(name), value);
  if (!body->solved_.empty() || (!values.empty() && has_any(body->dynamic_symbols(), values))) {
    auto copy = std::make_shared<Graph>(*body);
    copy->solved_.clear();
    Unifier inner(*copy);
    for (const auto& [name, value] : values) inner.substitute(name, value);
    inner.propagate();
    inner.commit();
    for (const auto& [name, value] : copy->solved_) {
      if (!values.contains(name)) fact(Dim::symbol(name), value);
    }
    copy->solved_.clear();
    out = std::move(copy);
  }
  for (const Constraint& c : out->constraints()) fact(c.a, c.b);
  return out;
}

// Symbols in the order in which the graph met them, the node to be appended last; the youngest gives way. Only
// an equation with a choice asks.
size_t Unifier::age(const std::string& symbol) {
  if (!aged_) {
    aged_ = true;
    note_ages(g_);
  }
  if (const auto [op, attrs] = std::exchange(pending_, {}); op) note_ages(*op, attrs);
  const auto it = ages_.find(symbol);
  return it == ages_.end() ? SIZE_MAX : it->second;
}

void Unifier::note_ages(const Graph& g) {
  for (const Node* n : g.nodes()) {
    for (const Shape& s : n->shapes) note_ages(s.dims());
    note_ages(*n->op, n->attrs.get());
  }
}

void Unifier::note_ages(const Dims& dims) {
  for (const Dim d : dims) {
    if (!d.is_symbolic() || !noted_.insert(d.rep()).second) continue;
    std::vector<std::string> names;
    collect_symbols(d, names);
    for (std::string& name : names) ages_.emplace(std::move(name), ages_.size());
  }
  if (ages_.size() > kMaxSymbols)
    throw invalid("graph '", g_.name(), "': more than ", kMaxSymbols,
                  " symbols, some of which must be equal; use one name for one size");
}

void Unifier::note_ages(const OpDef& op, const void* attrs) {
  for (const FieldInfo& f : op.fields) {
    if (!holds_sizes(f.kind) && f.kind != AttrKind::graph) continue;
    const AttrValue v = f.get(attrs);
    if (const auto* d = std::get_if<Dim>(&v)) note_ages(Dims{*d});
    if (const auto* dims = std::get_if<Dims>(&v)) note_ages(*dims);
    if (const auto* s = std::get_if<Shape>(&v)) note_ages(s->dims());
    if (const auto* body = std::get_if<GraphRef>(&v); body && *body) note_ages(**body);
  }
}

}  // namespace rlx::ir
