#include "rlx/onnx/importer.h"

#include <algorithm>

#include "rlx/ir/call.h"
#include "rlx/ir/interpreter.h"
#include "rlx/lang/functions.h"
#include "rlx/lang/operators.h"
#include "rlx/onnx/bounds.h"
#include "rlx/onnx/order.h"
#include "rlx/ops/index/indices.h"

namespace rlx::onnx {
namespace {

constexpr int64_t kCopyWorthTelling = int64_t(1) << 20;  // bytes
constexpr int kDeepestCall = 64;
constexpr int64_t kMostNodes = 250'000;
constexpr int64_t kFoldElements = 1 << 16, kFoldedElements = 1 << 20;

// Constants that stand for trained numbers: they become params, so that they can be set, saved and differentiated.
bool is_weight(const Literal& l) { return is_float(l.dtype()) ? l.elements() > 8 : l.elements() > 1024; }

bool is_constant(const Item& it, bool or_weight) {
  if (it.is_nothing()) return true;
  if (it.is_sequence())
    return std::all_of(it.list.begin(), it.list.end(),
                       [&](const Item& part) { return is_constant(part, or_weight); });
  return it.constant && (or_weight || !it.is_weight);
}

void add_sources(const Item& it, Sources& to) {
  to.insert(it.sources.begin(), it.sources.end());
  for (const Item& part : it.list) add_sources(part, to);
}

// An operator that works on each row alone can only leave rows out.
void check_rows(const Call& call) {
  for (int i = 0; i < call.count(); ++i) {
    if (!call.has(i)) continue;
    for (const Bound& b : call.item(i).bounds) {
      if (i > 0 || b.axis > 0)
        call.unsupported("an operand whose size depends on data along other than rows");
    }
  }
}

std::string node_text(const file::Node& n) {
  return n.name.empty() ? cat(n.op, " that makes '", n.outputs.empty() ? std::string() : n.outputs[0], "'")
                        : cat("node '", n.name, "' (", n.op, ")");
}

}  // namespace

const Item* Scope::find(const std::string& name) const {
  for (const Scope* s = this; s != nullptr; s = s->outer) {
    if (const auto at = s->names.find(name); at != s->names.end()) return &at->second;
  }
  return nullptr;
}

Importer::Importer(const file::Model& model, const ImportOptions& options, const std::set<std::string>& fixed,
                   bool fix_sizes)
    : model_(model),
      options_(options),
      fixed_(fixed),
      fix_sizes_(fix_sizes),
      contents_(model.path, model.owner),
      root_(model.graph.name.empty() ? "main" : model.graph.name),
      graph_(&root_) {}

bool Importer::has_open_sizes() const {
  const auto& inputs = root_.inputs();
  return std::any_of(inputs.begin(), inputs.end(),
                     [&](ir::NodeId id) { return !root_.shape(ir::Value{id}).num_elements().is_static(); });
}

Tensor Importer::tensor_of(const Item& it) {
  RLX_CHECK(it.is_tensor(), "item is no tensor");
  if (!it.tensor.is_empty()) return it.tensor;
  if (it.constant) {
    if (!it.is_weight || folding_) return ir::Expr{graph_, graph_->constant(*it.constant)};
    auto at = params_.find(it.name);
    if (at == params_.end()) {
      const ir::Value v = static_cast<ir::Graph&>(root_).param(it.name, it.constant->shape());
      weights_.emplace(it.name, *it.constant);
      at = params_.emplace(it.name, Tensor(ir::Expr{&root_, v})).first;
    }
    return at->second;
  }
  const Sizes& s = *it.sizes;
  Tensors parts;
  for (const Size& v : s.values) {
    parts.push_back(value_of(*graph_, v).reshape({1}));
  }
  const Tensor flat = parts.size() == 1 ? parts[0] : rlx::concat(parts, {.axis = 0});
  const Tensor shaped = flat.reshape(Dims(s.dims.begin(), s.dims.end()));
  return s.dtype == DType::i64 ? shaped : shaped.cast(s.dtype);
}

void Importer::define(Scope& scope, const std::string& name, Item item) {
  if (name.empty()) return;
  if (!scope.names.emplace(name, std::move(item)).second)
    throw invalid("onnx: the name '", name, "' is given twice in one graph");
}

void Importer::add_initializers(const file::Graph& g, Scope& scope) {
  const auto add = [&](const std::string& name, Literal value, int32_t type) {
    Item it(std::move(value));
    it.element = file::ElementType(type);
    it.is_weight = is_weight(*it.constant);
    if (it.is_weight) {
      it.name = name;
      for (int k = 2; !weight_names_.insert(it.name).second; ++k) it.name = cat(name, "_", k);
    }
    define(scope, name, std::move(it));
  };
  for (const file::Tensor& t : g.initializers) add(t.name, contents_.literal(t), t.type);
  for (const file::SparseTensor& s : g.sparse_initializers)
    add(s.values.name, contents_.literal(s), s.values.type);
}

Dim Importer::input_dim(const std::string& input, size_t axis, const file::Dimension& d,
                        const Literal* value) {
  // Some exporters write -1 for a size that is left open.
  if (d.value && *d.value < -1)
    throw invalid("onnx: input '", input, "': axis ", axis, " has size ", *d.value);
  if (d.value && *d.value >= 0) return Dim(*d.value);
  if (fix_sizes_ && value != nullptr && axis < size_t(value->shape().rank()))
    return value->shape().dims()[axis];
  if (!d.symbol.empty()) {
    try {
      size_t pos = 0;
      const Dim parsed = parse_dim(d.symbol, pos);
      if (pos == d.symbol.size() && !parsed.is_inferred()) return parsed;
    } catch (const Error&) {
      // No expression of ours: the text becomes a name below.
    }
  }
  std::string name = d.symbol.empty() ? cat(input, "_", axis) : d.symbol;
  for (char& c : name) {
    if (!std::isalnum(static_cast<unsigned char>(c)) && c != '_') c = '_';
  }
  if (!is_identifier(name)) name = "d_" + name;
  return Dim::symbol(name);
}

Item Importer::input_item(const file::ValueInfo& input) {
  const file::Type& type = input.type;
  using Kind = file::Type::Kind;
  if (type.kind != Kind::tensor && type.kind != Kind::none) {
    const char* kind = type.kind == Kind::sequence   ? "a sequence"
                       : type.kind == Kind::optional ? "an optional"
                       : type.kind == Kind::map      ? "a map"
                                                     : "a sparse or opaque value";
    throw Unsupported(cat("onnx: input '", input.name, "' is ", kind,
                          "; only tensors can be given to a graph: make each tensor an input of its own"));
  }
  const file::ElementInfo* info = file::find_element(type.element);
  if (info == nullptr)
    throw invalid("onnx: input '", input.name, "' has element type ", type.element,
                  ", which ONNX does not have");
  if (!info->dtype)
    throw Unsupported(cat("onnx: input '", input.name, "' holds elements of type ", info->name,
                          ", which tensors here cannot hold; turn them into numbers before the model"));
  const auto given = options_.values.find(input.name);
  const Literal* value = given == options_.values.end() ? nullptr : &given->second;
  if (fixed_.contains(input.name) && value != nullptr) {
    Item it(*value);
    it.element = info->type;
    return it;
  }
  Dims dims;
  if (type.shape) {
    for (size_t i = 0; i < type.shape->size(); ++i)
      dims.push_back(input_dim(input.name, i, (*type.shape)[i], value));
  } else if (value != nullptr) {
    dims = value->shape().dims();
  } else {
    throw NeedsValue(
        cat("onnx: input '", input.name, "' does not say how many axes it has; give its value to the import"),
        {input.name});
  }
  if (!info->exact)
    note(cat("input '", input.name, "' is ", info->name, " in the model and ", *info->dtype, " here"));
  Item it(
      Tensor(ir::Expr{&root_, static_cast<ir::Graph&>(root_).input(input.name, Shape(*info->dtype, dims))}));
  it.element = info->type;
  it.sources = {input.name};
  return it;
}

const file::Function* Importer::find_function(const file::Node& node) const {
  for (const file::Function& f : model_.functions) {
    if (f.name == node.op && f.domain == node.domain && f.overload == node.overload) return &f;
  }
  return nullptr;
}

void Importer::run_nodes(const std::vector<file::Node>& nodes, Scope& scope) {
  for (const size_t i : order_of(nodes)) run_node(nodes[i], scope);
}

void Importer::run_node(const file::Node& node, Scope& scope) {
  if (++nodes_run_ > kMostNodes)
    throw invalid("onnx: the model has more than ", kMostNodes, " nodes once functions are expanded");
  Items results;
  try {
    const ir::LabelScope label(*graph_, node.name.empty() ? node.op : node.name);
    results = import_node(node, scope);
  } catch (const Unsupported&) {
    throw;
  } catch (const NeedsValue&) {
    throw;
  } catch (const Error& e) {
    if (e.message().starts_with("onnx: ")) throw;
    throw Error(e.kind(), cat("onnx: ", node_text(node), ": ", e.message()));
  }
  if (results.size() < node.outputs.size()) {
    for (size_t i = results.size(); i < node.outputs.size(); ++i) {
      if (!node.outputs[i].empty())
        throw Unsupported(
            cat("onnx: ", node_text(node), ": output ", i, " ('", node.outputs[i], "') is not supported"));
    }
  }
  for (size_t i = 0; i < node.outputs.size() && i < results.size(); ++i)
    define(scope, node.outputs[i], std::move(results[i]));
}

Items Importer::import_node(const file::Node& original, Scope& scope) {
  // Attributes that stand for those of the call around a function.
  file::Node node = original;
  for (size_t i = 0; i < node.attributes.size();) {
    file::Attribute& a = node.attributes[i];
    if (a.reference.empty()) {
      ++i;
      continue;
    }
    const auto at = scope.call == nullptr ? AttributeMap::const_iterator() : scope.call->find(a.reference);
    if (scope.call == nullptr || at == scope.call->end()) {
      node.attributes.erase(node.attributes.begin() + ptrdiff_t(i));
      continue;
    }
    const std::string name = a.name;
    a = at->second;
    a.name = name;
    ++i;
  }
  Items inputs;
  for (const std::string& name : node.inputs) {
    if (name.empty()) {
      inputs.emplace_back();
      continue;
    }
    const Item* it = scope.find(name);
    if (it == nullptr)
      throw invalid("onnx: ", node_text(node), " uses '", name, "', which no node before it makes");
    inputs.push_back(*it);
  }
  const Scope* const before = scope_;
  scope_ = &scope;
  struct Restore {
    const Scope*& at;
    const Scope* value;
    ~Restore() { at = value; }
  } restore{scope_, before};
  if (const file::Function* fn = find_function(node))
    return call_function(*fn, node, std::move(inputs), scope);
  const auto version = scope.opsets->find(node.domain);
  if (version == scope.opsets->end() && !node.domain.empty() && !is_known(node.domain, node.op))
    throw Unsupported(cat("onnx: ", node_text(node), ": there is no operator set '", node.domain,
                          "'; express it as a function of ONNX's own operators"));
  const int64_t opset = version == scope.opsets->end() ? 1 : version->second;
  const Entry* entry = find_entry(node.domain, node.op, opset);
  if (entry == nullptr)
    throw Unsupported(cat("onnx: ", node_text(node), ": operator ",
                          node.domain.empty() ? "" : node.domain + ".", node.op, " of version ", opset,
                          " is not supported; 'rlx onnx ops' lists those that are"));
  Call call(*this, node, std::move(inputs), opset);
  return import_entry(*entry, call);
}

Items Importer::import_entry(const Entry& entry, Call& call) {
  const bool bounded = std::any_of(call.items().begin(), call.items().end(),
                                   [](const Item& it) { return !it.bounds.empty(); });
  if (bounded && entry.bounds == BoundsRule::refuse)
    call.unsupported("an operand whose size depends on data");
  if (bounded && entry.bounds == BoundsRule::rows) check_rows(call);
  if (bounded && entry.bounds == BoundsRule::elementwise) meet_elementwise(call);
  std::optional<Items> results;
  if (entry.folds && !folding_ && call.count() > 0 &&
      std::all_of(call.items().begin(), call.items().end(),
                  [&](const Item& it) { return is_constant(it, folding_weights_); }))
    results = fold(entry, call);
  if (!results && entry.follow != nullptr && (!bounded || entry.bounds == BoundsRule::by_hand)) {
    if (auto item = entry.follow(call)) {
      if (item->sizes && item->sizes->all_numbers()) {
        std::vector<int64_t> numbers;
        for (const Size& s : item->sizes->values) numbers.push_back(*s.number());
        *item = Item(Literal::integers(item->shape(), numbers));
      }
      results = Items{std::move(*item)};
    }
  }
  if (!results) results = entry.import(call);
  if (const auto unread = call.unread(); !unread.empty() && entry.import != nullptr && !results->empty()) {
    // Attributes that the importer did not come to because sizes alone decided are no mistake.
    if (entry.follow == nullptr)
      throw call.wrong("attribute '", unread[0], "' is not one of ", call.node().op);
  }
  finish(entry, call, *results);
  return std::move(*results);
}

std::optional<Items> Importer::fold(const Entry& entry, Call& call) {
  int64_t elements = 0;
  for (const Item& it : call.items()) {
    if (it.constant) elements += it.constant->elements();
  }
  if (elements > kFoldElements) return std::nullopt;
  Graph scratch("constants");
  Items results;
  {
    const Inside inside(*this, scratch, true);
    results = entry.import(call);
  }
  Values outputs;
  std::vector<Literal*> targets;
  for (Item& it : results) {
    if (!it.is_tensor() || it.tensor.is_empty()) continue;
    const Dim count = it.tensor.shape().num_elements();
    if (!count.is_static() || count.value() > kFoldedElements) return std::nullopt;
    outputs.push_back(it.tensor);
    for (const Bound& b : it.bounds) outputs.push_back(b.count);
  }
  for (const Item& it : results) {
    if (it.is_sequence()) return std::nullopt;
  }
  if (outputs.empty()) return results;
  scratch.ir::Graph::set_outputs(outputs);
  const Literals values = ir::interpret(scratch, std::span<const Literal>());
  size_t next = 0;
  for (Item& it : results) {
    if (!it.is_tensor() || it.tensor.is_empty()) continue;
    it.constant = values[next++];
    it.tensor = Tensor();
    for (const Bound& b : it.bounds)
      it.constant = first_places(*it.constant, b.axis, values[next++].integer_at(0));
    it.bounds.clear();
  }
  return results;
}

void Importer::finish(const Entry& entry, const Call& call, Items& results) {
  Sources sources;
  for (const Item& it : call.items()) add_sources(it, sources);
  const Item* narrow = nullptr;
  for (const Item& it : call.items()) {
    if (narrow == nullptr && it.is_tensor() && it.element != file::ElementType::undefined &&
        !file::info_of(it.element).exact)
      narrow = &it;
  }
  for (Item& result : results) {
    if (!result.is_tensor()) continue;
    if (!result.sizes && !result.constant && !result.tensor.is_empty() && result.sources.empty())
      result.sources = sources;
    if (entry.bounds == BoundsRule::elementwise && !result.tensor.is_empty()) {
      for (const Item& it : call.items()) {
        for (const Bound& b : it.bounds) {
          const int axis = b.axis + result.shape().rank() - it.shape().rank();
          // One row that was repeated is there.
          if (it.shape().dim(b.axis) != Dim(1) || result.shape().dim(axis) == Dim(1))
            add_bound(result, {axis, b.count});
        }
      }
    }
    if (entry.bounds == BoundsRule::rows && call.count() > 0 && &result == &results[0]) {
      for (const Bound& b : call.item(0).bounds) add_bound(result, b);
    }
    if (result.element != file::ElementType::undefined) continue;
    const DType dtype = result.dtype();
    if (narrow != nullptr && file::info_of(narrow->element).dtype == dtype) {
      result.element = narrow->element;
      if (entry.wraps && narrow->element == file::ElementType::u16) {
        const Tensor wide = tensor_of(result);
        Item cut(rlx::bitwise_and(wide, 0xffff));
        cut.element = result.element, cut.sources = result.sources, cut.bounds = result.bounds;
        if (!result.constant) result = std::move(cut);
      }
    } else {
      result.element = file::element_of(dtype);
    }
  }
}

Items Importer::call_function(const file::Function& fn, const file::Node& node, Items inputs,
                              const Scope& scope) {
  if (++depth_ > kDeepestCall)
    throw invalid("onnx: function '", fn.name, "' is called more than ", kDeepestCall,
                  " levels deep; functions must not call themselves");
  AttributeMap attributes;
  for (const file::Attribute& a : fn.with_defaults) attributes.emplace(a.name, a);
  for (const file::Attribute& a : node.attributes) {
    const bool known = std::find(fn.attributes.begin(), fn.attributes.end(), a.name) != fn.attributes.end() ||
                       attributes.contains(a.name);
    if (!known)
      throw invalid("onnx: ", node_text(node), ": function '", fn.name, "' has no attribute '", a.name, "'");
    attributes[a.name] = a;
  }
  if (inputs.size() > fn.inputs.size())
    throw invalid("onnx: ", node_text(node), " gives ", inputs.size(), " operands; function '", fn.name,
                  "' takes ", fn.inputs.size());
  Scope inner;
  inner.opsets = fn.opsets.empty() ? scope.opsets : &fn.opsets;
  inner.call = &attributes;
  for (size_t i = 0; i < fn.inputs.size(); ++i)
    define(inner, fn.inputs[i], i < inputs.size() ? std::move(inputs[i]) : Item());
  run_nodes(fn.nodes, inner);
  Items out;
  for (const std::string& name : fn.outputs) {
    const Item* it = inner.find(name);
    if (it == nullptr) throw invalid("onnx: function '", fn.name, "' does not make its output '", name, "'");
    out.push_back(*it);
  }
  --depth_;
  return out;
}

Items Importer::run_body(const file::Graph& body, const Items& arguments) {
  if (++depth_ > kDeepestCall)
    throw invalid("onnx: bodies are nested more than ", kDeepestCall, " levels deep");
  Scope inner;
  inner.outer = scope_;
  inner.opsets = scope_->opsets;
  inner.call = scope_->call;
  if (arguments.size() != body.inputs.size())
    throw invalid("onnx: body '", body.name, "' takes ", body.inputs.size(), " values; it is given ",
                  arguments.size());
  for (size_t i = 0; i < arguments.size(); ++i) define(inner, body.inputs[i].name, arguments[i]);
  add_initializers(body, inner);
  run_nodes(body.nodes, inner);
  Items out;
  for (const file::ValueInfo& o : body.outputs) {
    const Item* it = inner.find(o.name);
    if (it == nullptr) throw invalid("onnx: body '", body.name, "' does not make its output '", o.name, "'");
    out.push_back(*it);
  }
  --depth_;
  return out;
}

void Importer::set_outputs(const Scope& scope, Imported& out) {
  Values values;
  std::vector<std::string> names;
  std::vector<std::pair<std::string, Tensor>> counts;
  for (const file::ValueInfo& o : model_.graph.outputs) {
    const Item* it = scope.find(o.name);
    if (it == nullptr) throw invalid("onnx: output '", o.name, "' is made by no node");
    if (!it->is_tensor())
      throw Unsupported(cat("onnx: output '", o.name, "' is ",
                            it->is_sequence() ? "a sequence" : "an optional",
                            "; only tensors can leave a graph: make each tensor an output of its own"));
    if (it->element != file::ElementType::undefined && !file::info_of(it->element).exact)
      note(cat("output '", o.name, "' is ", file::info_of(it->element).name, " in the model and ",
               it->dtype(), " here"));
    values.push_back(tensor_of(*it));
    names.push_back(o.name);
    for (const Bound& b : it->bounds) {
      const std::string count = it->bounds.size() == 1 ? o.name + ".count" : cat(o.name, ".count", b.axis);
      counts.emplace_back(count, b.count);
      out.bounded.push_back({o.name, b.axis, count});
      note(cat("output '", o.name, "' is as large as it can become along axis ", b.axis, "; '", count,
               "' tells how much of it is meant"));
    }
  }
  for (const auto& [name, count] : counts) {
    values.push_back(count);
    names.push_back(name);
  }
  if (values.empty()) throw invalid("onnx: the model has no outputs");
  root_.ir::Graph::set_outputs(std::move(values), std::move(names));
}

Imported Importer::run() {
  Scope scope;
  scope.opsets = &model_.opsets;
  scope_ = &scope;
  if (model_.has_training) note("the model's training information is not read");
  for (const std::string& text : model_.notes) note(text);
  add_initializers(model_.graph, scope);
  // Before IR version 4 every initializer is an input too: its value is the default.
  std::set<std::string> given;
  for (const auto& [name, item] : scope.names) given.insert(name);
  for (const file::ValueInfo& input : model_.graph.inputs) {
    if (given.contains(input.name)) continue;
    if (scope.names.contains(input.name))
      throw invalid("onnx: the name '", input.name, "' is given twice in one graph");
    define(scope, input.name, input_item(input));
  }
  run_nodes(model_.graph.nodes, scope);
  if (contents_.copied_bytes() >= kCopyWorthTelling)
    note(cat(contents_.copied_bytes() >> 20,
             " MiB of weights do not begin at a multiple of their element size in the ",
             "file and were copied; weights in external data stay mapped"));
  Imported out;
  set_outputs(scope, out);
  root_.erase_dead();
  out.program.graph = std::move(root_);
  for (auto& [name, value] : weights_) out.program.weights.emplace(name, std::move(value));
  out.fixed.assign(fixed_.begin(), fixed_.end());
  out.notes.assign(notes_.begin(), notes_.end());
  return out;
}

namespace {

// Imports again with more inputs fixed as long as sizes turn out to depend on their contents.
Imported import_fixing(const file::Model& model, const ImportOptions& options, bool fix_sizes) {
  std::set<std::string> fixed;
  while (true) {
    try {
      return Importer(model, options, fixed, fix_sizes).run();
    } catch (const NeedsValue& e) {
      const size_t before = fixed.size();
      for (const std::string& name : e.inputs()) {
        if (options.values.contains(name)) fixed.insert(name);
      }
      if (fixed.size() == before) throw;
    }
  }
}

// Throws where the graph cannot have the sizes of the values; what it was made of took symbols to be large enough for slices,
// and equal, or a number, where one of them could be 1.
void check_sizes(const ir::Graph& g, const NamedLiterals& values) {
  std::vector<Shape> given;
  for (const ir::NodeId id : g.leaves()) {
    const ir::Node& leaf = g.node(id);
    const auto at = values.find(leaf.name);
    if (at == values.end() && !leaf.shapes[0].num_elements().is_static()) return;
    given.push_back(at == values.end() ? leaf.shapes[0] : at->second.shape());
  }
  g.bind(ir::solve_sizes(g, given));
}

}  // namespace

Imported import_model(const file::Model& model, const ImportOptions& options) {
  const bool symbolic =
      std::any_of(model.graph.inputs.begin(), model.graph.inputs.end(), [&](const file::ValueInfo& v) {
        return options.values.contains(v.name) && v.type.shape &&
               std::any_of(v.type.shape->begin(), v.type.shape->end(),
                           [](const file::Dimension& d) { return !d.value || *d.value < 0; });
      });
  try {
    Imported out = import_fixing(model, options, false);
    if (symbolic) check_sizes(out.program.graph, options.values);
    return out;
  } catch (const Error&) {
    if (!symbolic) throw;  // with sizes known, less has to be expressed
  }
  Imported out = import_fixing(model, options, true);
  out.notes.push_back("the graph is for the sizes of the given values only");
  return out;
}

}  // namespace rlx::onnx
