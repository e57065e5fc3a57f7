#include "rlx/onnx/write/writer.h"

#include <algorithm>

#include "rlx/base/dim_polynomial.h"
#include "rlx/base/error.h"
#include "rlx/ir/interpreter.h"
#include "rlx/ir/leaves.h"

namespace rlx::onnx {

file::Attribute attribute(std::string name, int64_t v) {
  file::Attribute a;
  a.name = std::move(name), a.kind = file::Attribute::Kind::integer, a.integer = v;
  return a;
}
file::Attribute attribute(std::string name, double v) {
  file::Attribute a;
  a.name = std::move(name), a.kind = file::Attribute::Kind::real, a.real = float(v);
  return a;
}
file::Attribute attribute(std::string name, std::string v) {
  file::Attribute a;
  a.name = std::move(name), a.kind = file::Attribute::Kind::string, a.string = std::move(v);
  return a;
}
file::Attribute attribute(std::string name, std::vector<int64_t> v) {
  file::Attribute a;
  a.name = std::move(name), a.kind = file::Attribute::Kind::integers, a.integers = std::move(v);
  return a;
}
file::Attribute attribute(std::string name, file::Graph v) {
  file::Attribute a;
  a.name = std::move(name), a.kind = file::Attribute::Kind::graph,
  a.graph = std::make_shared<file::Graph>(std::move(v));
  return a;
}

const std::string& Writer::name(ir::Value v) const {
  const auto at = names_.find({v.node, v.index});
  RLX_CHECK(at != names_.end(), "value %", v.node, ".", v.index, " has no name");
  return at->second;
}

// Numbers are counted over all bodies: a name of a body must not hide one around it.
std::string Writer::fresh(std::string_view stem) const { return cat(stem, "_", root_->next_++); }

Names Writer::nodes(const std::string& op, const Names& in, std::vector<file::Attribute> attributes,
                    int outputs) {
  file::Node n;
  n.op = op;
  n.inputs = in;
  n.attributes = std::move(attributes);
  for (int i = 0; i < outputs; ++i) n.outputs.push_back(fresh(op));
  Names names = n.outputs;
  out_.nodes.push_back(std::move(n));
  return names;
}

file::Tensor tensor_of(const Literal& l, std::string name) {
  file::Tensor t;
  t.name = std::move(name);
  t.type = int32_t(file::element_of(l.dtype()));
  for (const Dim d : l.shape().dims()) t.dims.push_back(d.value());
  t.raw = l.bytes();
  return t;
}

std::string Writer::constant(const Literal& l) {
  kept_.push_back(l);
  if (root_->in_function_) {
    file::Attribute a;
    a.name = "value", a.kind = file::Attribute::Kind::tensor;
    a.tensor = std::make_shared<file::Tensor>(tensor_of(kept_.back(), ""));
    return node("Constant", {}, {std::move(a)});
  }
  out_.initializers.push_back(tensor_of(kept_.back(), fresh("constant")));
  return out_.initializers.back().name;
}

std::string Writer::ints(const std::vector<int64_t>& v) {
  return constant(Literal::of<int64_t>({int64_t(v.size())}, v));
}

std::string Writer::cast(const std::string& x, DType to) {
  return node("Cast", {x}, {attribute("to", int64_t(file::element_of(to)))});
}

void Writer::learn_symbols() {
  for (const ir::NodeId id : graph_.inputs()) {
    const ir::Node& n = graph_.node(id);
    const Shape& s = n.shapes[0];
    for (int i = 0; i < s.rank(); ++i) {
      if (!s.dim(i).is_symbolic()) continue;
      Place place{ir::leaf_name(n), i};
      std::string symbol;
      bool linear = true;
      for (const auto& [monomial, factor] : polynomial_of(s.dim(i))) {
        if (monomial.empty()) {
          place.offset = factor;
          continue;
        }
        const bool plain = monomial.size() == 1 && monomial[0].second == 1 &&
                           atom(monomial[0].first).kind == AtomKind::symbol;
        linear = linear && plain && symbol.empty();
        if (plain) symbol = atom(monomial[0].first).symbol, place.factor = factor;
      }
      if (!linear || symbol.empty()) continue;
      // The plainest place is read.
      const auto at = symbols_.find(symbol);
      if (at == symbols_.end() || (at->second.factor != 1 && place.factor == 1)) symbols_[symbol] = place;
    }
  }
}

std::string Writer::dim(Dim d) {
  if (!d.is_symbolic()) return ints({d.value()});
  const auto binary = [&](const char* op, Dim a, Dim b) { return node(op, {dim(a), dim(b)}); };
  std::string sum;
  for (const auto& [monomial, factor] : polynomial_of(d)) {
    std::string term = ints({factor});
    for (const auto& [index, power] : monomial) {
      const Atom& a = atom(index);
      std::string value;
      if (a.kind == AtomKind::symbol) {
        const auto at = root_->symbols_.find(a.symbol);
        if (at == root_->symbols_.end())
          throw invalid("onnx: size '", a.symbol, "' is the extent of no input; bind it before the export");
        const Place& p = at->second;
        value = node("Shape", {p.input},
                     {attribute("start", int64_t(p.axis)), attribute("end", int64_t(p.axis) + 1)});
        if (p.offset != 0) value = node("Sub", {value, ints({p.offset})});
        if (p.factor != 1) value = node("Div", {value, ints({p.factor})});
      } else {
        const char* const op = a.kind == AtomKind::floordiv ? "Div"
                               : a.kind == AtomKind::mod    ? "Mod"
                               : a.kind == AtomKind::max    ? "Max"
                                                            : "Min";
        value = binary(op, a.a, a.b);
      }
      for (uint32_t i = 0; i < power; ++i) term = node("Mul", {term, value});
    }
    sum = sum.empty() ? term : node("Add", {sum, term});
  }
  return sum;
}

std::string Writer::dims(const Dims& dims) {
  bool numbers = true;
  std::vector<int64_t> values;
  for (const Dim d : dims) {
    numbers = numbers && !d.is_symbolic();
    if (numbers) values.push_back(d.value());
  }
  if (numbers) return ints(values);
  Names parts;
  for (const Dim d : dims) parts.push_back(dim(d));
  return node("Concat", parts, {attribute("axis", int64_t(0))});
}

file::ValueInfo Writer::value_info(const std::string& name, const Shape& s) const {
  file::ValueInfo v;
  v.name = name;
  v.type.kind = file::Type::Kind::tensor;
  v.type.element = int32_t(file::element_of(s.dtype()));
  v.type.shape.emplace();
  for (const Dim d : s.dims()) {
    file::Dimension out;
    if (d.is_symbolic()) {
      out.symbol = cat(d);
    } else {
      out.value = d.value();
    }
    v.type.shape->push_back(std::move(out));
  }
  return v;
}

std::optional<Literal> Writer::known(ir::Value v) const {
  const ir::Node& n = graph_.node(v.node);
  if (n.is<ir::Constant>()) return n.as<ir::Constant>().value;
  if (n.is<ir::Param>() && root_->weights_ != nullptr) {
    const auto at = root_->weights_->find(ir::leaf_name(n));
    return at == root_->weights_->end() ? std::nullopt : std::optional(at->second);
  }
  if (n.op->traits.leaf) return std::nullopt;
  Literals operands;
  ir::Graph one("node");
  ir::Values leaves;
  for (const ir::Value in : n.inputs) {
    const auto value = known(in);
    if (!value) return std::nullopt;
    leaves.push_back(one.constant(*value));
  }
  const ir::NodeId id = one.append(*n.op, n.attrs, leaves);
  one.set_outputs({one.value(id, v.index)});
  return ir::interpret(one, Literals{})[0];
}

// Results without elements need no computation, and not every engine's operators take operands without.
bool Writer::write_empty(const ir::Node& n) {
  for (const Shape& s : n.shapes) {
    if (std::find(s.dims().begin(), s.dims().end(), Dim(0)) == s.dims().end()) return false;
  }
  for (uint32_t i = 0; i < n.shapes.size(); ++i)
    set_name(n.result(i), node("Expand", {scalar(n.shapes[i].dtype(), 0), dims(n.shapes[i].dims())}));
  return !n.shapes.empty();
}

bool Writer::write_known(const ir::Node& n) {
  for (uint32_t i = 0; i < n.shapes.size(); ++i) {
    const auto value = known(n.result(i));
    if (!value) return false;
    set_name(n.result(i), constant(*value));
  }
  return true;
}

void Writer::write_body() {
  for (const ir::Node* n : graph_.nodes()) {
    if (n->op->traits.leaf) continue;
    if (write_empty(*n)) continue;
    const WriteNode write = find_writer(n->op->name);
    if (write == nullptr && is_function(n->op->name) && n->op->is_composite()) {
      const Names results = write_function(*n);
      for (uint32_t i = 0; i < results.size(); ++i) set_name(n->result(i), results[i]);
      continue;
    }
    if (write == nullptr) {
      if (write_known(*n)) continue;
      Error e = invalid("onnx: operator '", n->op->name, "' has no counterpart in ONNX");
      e.set_node(cat("%", n->id));
      throw e;
    }
    const Names results = write(*this, *n);
    for (uint32_t i = 0; i < results.size(); ++i) set_name(n->result(i), results[i]);
  }
}

}  // namespace rlx::onnx
