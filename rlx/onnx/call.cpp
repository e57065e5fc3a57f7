#include "rlx/onnx/call.h"

#include <algorithm>

#include "rlx/onnx/import.h"
#include "rlx/onnx/importer.h"
#include "rlx/ops/index/indices.h"
#include "rlx/ops/shape/iota.h"

namespace rlx::onnx {

std::string Call::where() const {
  const std::string& op = node_.domain.empty() ? node_.op : cat(node_.domain, ".", node_.op);
  if (!node_.name.empty()) return cat("node '", node_.name, "' (", op, ")");
  return cat(op, " that makes '", node_.outputs.empty() ? std::string() : node_.outputs[0], "'");
}

const Item& Call::item(int i) const {
  if (!has(i)) throw wrong("operand ", i, " is missing");
  return inputs_[size_t(i)];
}

Tensor Call::in(int i) const {
  const Item& it = item(i);
  if (!it.is_tensor()) unsupported(cat("operand ", i, " is a sequence, not a tensor"));
  return importer_.tensor_of(it);
}

Tensors Call::all(int from) const {
  Tensors out;
  for (int i = from; i < count(); ++i) out.push_back(in(i));
  return out;
}

std::optional<Literal> Call::constant(int i) const {
  if (!has(i) || !inputs_[size_t(i)].is_tensor()) return std::nullopt;
  return inputs_[size_t(i)].constant;
}

Literal Call::known(int i, std::string_view what) const {
  const Item& it = item(i);
  if (it.constant) return *it.constant;
  needs_value(it, what);
}

std::vector<int64_t> Call::known_ints(int i, std::string_view what) const {
  return known(i, what).to_integers();
}

int64_t Call::known_int(int i, std::string_view what) const {
  const Literal l = known(i, what);
  if (l.elements() != 1) throw wrong(what, " has ", l.elements(), " elements; it must have one");
  return l.integer_at(0);
}

double Call::known_real(int i, std::string_view what) const {
  const Literal l = known(i, what);
  if (l.elements() != 1) throw wrong(what, " has ", l.elements(), " elements; it must have one");
  return l.real_at(0);
}

std::vector<Size> Call::sizes(int i, std::string_view what) const {
  const Item& it = item(i);
  if (it.sizes) return it.sizes->values;
  const std::vector<int64_t> numbers = known(i, what).to_integers();
  return {numbers.begin(), numbers.end()};
}

Dims Call::dims(int i, std::string_view what) const {
  for (const Size& s : sizes(i, what)) {
    if (s.is_counted()) unsupported(cat(what, " with a size that depends on data"));
  }
  return most_dims(i, what);
}

Dims Call::most_dims(int i, std::string_view what) const {
  Dims out;
  for (const Size& s : sizes(i, what)) {
    const auto d = s.is_counted() ? s.most() : s.dim();
    if (!d) throw wrong(what, " has a size of ", *s.number());
    out.push_back(*d);
  }
  return out;
}

const file::Attribute* Call::find(std::string_view name) const {
  read_.insert(std::string(name));
  for (const file::Attribute& a : node_.attributes) {
    if (a.name == name) return &a;
  }
  return nullptr;
}

int64_t Call::integer(std::string_view name, int64_t otherwise) const {
  const file::Attribute* a = find(name);
  return a == nullptr ? otherwise : a->integer;
}

double Call::real(std::string_view name, double otherwise) const {
  const file::Attribute* a = find(name);
  return a == nullptr ? otherwise : double(a->real);
}

std::string Call::text(std::string_view name, std::string_view otherwise) const {
  const file::Attribute* a = find(name);
  return a == nullptr ? std::string(otherwise) : a->string;
}

std::vector<int64_t> Call::integers(std::string_view name, std::vector<int64_t> otherwise) const {
  const file::Attribute* a = find(name);
  return a == nullptr ? std::move(otherwise) : a->integers;
}

std::vector<float> Call::reals(std::string_view name) const {
  const file::Attribute* a = find(name);
  return a == nullptr ? std::vector<float>{} : a->reals;
}

std::vector<std::string> Call::texts(std::string_view name) const {
  const file::Attribute* a = find(name);
  return a == nullptr ? std::vector<std::string>{} : a->strings;
}

std::optional<Literal> Call::tensor(std::string_view name) const {
  const file::Attribute* a = find(name);
  if (a == nullptr || a->tensor == nullptr) return std::nullopt;
  return importer_.contents().literal(*a->tensor);
}

Literal Call::literal(const file::SparseTensor& s) const { return importer_.contents().literal(s); }

const file::Graph& Call::body(std::string_view name) const {
  const file::Attribute* a = find(name);
  if (a == nullptr || a->graph == nullptr) throw wrong("attribute '", name, "' must be a graph");
  return *a->graph;
}

file::ElementType Call::element(std::string_view name, file::ElementType otherwise) const {
  const int64_t number = integer(name, int64_t(otherwise));
  const file::ElementInfo* info = file::find_element(int32_t(number));
  if (info == nullptr) throw wrong("attribute '", name, "' is ", number, ", which is no element type");
  if (!info->dtype) unsupported(cat("elements of type ", info->name));
  return info->type;
}

std::vector<std::string> Call::unread() const {
  std::vector<std::string> out;
  for (const file::Attribute& a : node_.attributes) {
    if (!read_.contains(a.name)) out.push_back(a.name);
  }
  return out;
}

ir::Graph& Call::graph() const { return importer_.graph(); }

Tensor Call::constant(const Literal& l) const { return ir::Expr{&graph(), graph().constant(l)}; }

Tensor Call::full(const Dims& dims, DType dtype, double value) const {
  return ir::full(graph(), Shape(dtype, dims), value);
}

Tensor Call::iota(const Shape& shape, int axis) const { return ops::iota(graph(), shape, axis); }

Tensor Call::dim_value(Dim d, DType dtype) const {
  if (d.is_static()) return scalar(dtype, double(d.value()));
  const Tensor v = ops::dim_value(graph(), d);
  return dtype == DType::i64 ? v : v.cast(dtype);
}

Tensor Call::tensor_of(const Item& it) const { return importer_.tensor_of(it); }

void Call::unsupported(const std::string& what) const {
  throw Unsupported(cat("onnx: ", where(), ": ", what, " is not supported"));
}

void Call::needs_value(const Item& it, std::string_view what) const {
  if (it.sources.empty()) {
    const std::string text = cat("onnx: ", where(), ": ", what,
                                 " is computed from data; it must be known while the graph is built");
    // It may be computed from sizes alone, in a way that has no expression.
    if (importer_.has_open_sizes()) throw invalid(text, "; give values to the import");
    throw Unsupported(text);
  }
  throw NeedsValue(cat("onnx: ", where(), ": ", what, " depends on the contents of input '",
                       join(it.sources, "', '"), "'; give its value to the import"),
                   it.sources);
}

void Call::require_table(std::initializer_list<int64_t> sizes, std::string_view what) const {
  constexpr double kMost = double(1 << 26);
  double count = 1;
  for (const int64_t n : sizes) {
    count *= double(n);
    if (n < 0 || count > kMost)
      throw wrong(what, " has a size of ", n, "; tables have at most ", int64_t(kMost), " elements");
  }
}

int Call::axis(int64_t axis, int rank) const {
  if (axis < -rank || axis >= rank) throw wrong("axis ", axis, " is out of range for rank ", rank);
  return int(axis < 0 ? axis + rank : axis);
}

std::vector<int> Call::axes(const std::vector<int64_t>& axes, int rank) const {
  std::vector<int> out;
  for (const int64_t a : axes) out.push_back(axis(a, rank));
  std::sort(out.begin(), out.end());
  if (std::adjacent_find(out.begin(), out.end()) != out.end())
    throw wrong("axes ", axes, " name an axis twice");
  return out;
}

std::optional<std::vector<int64_t>> Call::ints_of(std::string_view name, int i) const {
  if (has_attr(name)) return integers(name);
  if (has(i)) return known_ints(i, name);
  return std::nullopt;
}

void Call::note(const std::string& text) const { importer_.note(cat(where(), ": ", text)); }

}  // namespace rlx::onnx
