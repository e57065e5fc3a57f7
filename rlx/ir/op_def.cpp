#include "rlx/ir/op_def.h"

#include <algorithm>

#include "rlx/ir/build_def.h"
#include "rlx/ir/graph.h"
#include "rlx/ir/leaves.h"

namespace rlx::ir {

const Shape& Infer::in(int i) const {
  RLX_CHECK(i >= 0 && i < count(), op_.name, " has no operand ", i);
  return in_[size_t(i)];
}

void Infer::fail_text(std::string text) const { throw invalid(op_.name, ": ", text); }

std::string Infer::operand_name(int i) const {
  if (op_.operands.empty()) return cat("operand ", i);
  const size_t last = op_.operands.size() - 1;
  std::string name = op_.operands[std::min(size_t(i), last)];
  if (name.ends_with("...")) return cat(name.substr(0, name.size() - 3), "[", size_t(i) - last, "]");
  if (name.ends_with("?")) name.pop_back();
  return name;
}

Dim Infer::same(Dim a, Dim b, std::string_view what) {
  const auto decided = decide_equal(a, b);
  if (decided == false) fail(what, " differ, ", a, " and ", b);
  if (!decided && equations_) equations_->push_back({a, b, kNoNode, std::string(what)});
  return a.is_static() ? a : b.is_static() ? b : a;
}

Dims Infer::broadcast(const Shape& a, const Shape& b) {
  const int rank = std::max(a.rank(), b.rank());
  Dims out(static_cast<size_t>(rank));
  for (int i = 1; i <= rank; ++i) {
    const Dim x = i <= a.rank() ? a.dim(-i) : Dim(1), y = i <= b.rank() ? b.dim(-i) : Dim(1);
    Dim& d = out[size_t(rank - i)];
    if (x == Dim(1)) {
      d = y;
    } else if (y == Dim(1)) {
      d = x;
    } else {
      if (decide_equal(x, y) == false) {
        fail(a, " and ", b, " do not broadcast; axis ", -i, " has sizes ", x, " and ", y,
             "; they must be equal or one of them 1");
      }
      d = same(x, y, "sizes");
    }
  }
  return out;
}

int Infer::axis(int axis, int i) const {
  int canonical = axis;
  if (!normalize_axis(canonical, in(i).rank())) {
    fail("axis ", axis, " is out of range for ", operand_name(i), ": ", in(i));
  }
  return canonical;
}

std::vector<int> Infer::axes(std::vector<int> axes, int i) const {
  for (int& a : axes) a = axis(a, i);
  std::sort(axes.begin(), axes.end());
  const auto twice = std::adjacent_find(axes.begin(), axes.end());
  if (twice != axes.end()) fail("axis ", *twice, " is listed twice for ", operand_name(i), ": ", in(i));
  return axes;
}

void Infer::same_dtype(std::initializer_list<int> operands) const {
  const int first = *operands.begin();
  for (const int i : operands) {
    if (i >= count() || in(i).dtype() == in(first).dtype()) continue;
    fail("dtypes differ, ", operand_name(first), ": ", in(first), " and ", operand_name(i), ": ", in(i),
         "; cast ", operand_name(i), " to ", in(first).dtype());
  }
}

void Infer::require_rank(int i, int rank) const {
  if (in(i).rank() != rank)
    fail(operand_name(i), ": ", in(i), " has rank ", in(i).rank(), "; it must have rank ", rank);
}

void Infer::require_min_rank(int i, int rank) const {
  if (in(i).rank() < rank) {
    fail(operand_name(i), ": ", in(i), " has rank ", in(i).rank(), "; it must have rank ", rank, " or more");
  }
}

void Infer::require_float(int i) const {
  const DType t = in(i).dtype();
  if (!is_float(t) || is_storage_only(t)) {
    fail(operand_name(i), ": ", in(i), " has dtype ", t, "; it must be f16, bf16, f32 or f64");
  }
}

void Infer::require_float_or_complex(int i) const {
  if (!is_differentiable(in(i).dtype())) {
    fail(operand_name(i), ": ", in(i), " has dtype ", in(i).dtype(),
         "; it must be f16, bf16, f32, f64 or c64");
  }
}

void Infer::require_numeric(int i) const {
  const DType t = in(i).dtype();
  if (t == DType::bool_ || is_storage_only(t)) {
    fail(operand_name(i), ": ", in(i), " has dtype ", t, "; cast it to a numeric type first");
  }
}

void Infer::require_index(int i) const {
  const DType t = in(i).dtype();
  if (!is_integer(t) && t != DType::f32 && t != DType::f64) {
    fail(operand_name(i), ": ", in(i), " has dtype ", t, "; indices are integers");
  }
}

const FieldInfo* OpDef::find_field(std::string_view wanted) const {
  for (const FieldInfo& f : fields) {
    if (f.name == wanted) return &f;
  }
  return nullptr;
}

std::string OpDef::operand_count_error(int count) const {
  if (count >= min_operands && (max_operands < 0 || count <= max_operands)) return "";
  if (max_operands == 0) return cat(name, ": ", count, " operands; it takes none");
  return cat(name, ": ", count, " operands; it takes ", min_operands,
             max_operands < 0               ? " or more"
             : max_operands != min_operands ? cat(" to ", max_operands)
                                            : "",
             " (", join(operands), ")");
}

namespace {

// Of a composite that holds products: what its parts do, each as this one.
double operations_of_parts(const OpDef& op, std::span<const Shape> in, std::span<const Shape> out,
                           const void* attrs) {
  Graph parts(std::string(op.name));
  Values leaves, results;
  for (size_t i = 0; i < in.size(); ++i) leaves.push_back(parts.input(cat("x", i), in[i]));
  for (const Expr& e : op.decompose(Lower{parts, leaves, out}, attrs)) results.push_back(e.value);
  parts.set_outputs(std::move(results));
  parts.erase_dead();
  double sum = 0;
  for (const Node* n : parts.nodes()) {
    if (n->op->traits.leaf) continue;
    Shapes types;
    for (const Value v : n->inputs) types.push_back(parts.shape(v));
    sum += cost_of(*n->op, types, n->shapes, n->attrs.get()).operations;
  }
  return sum;
}

}  // namespace

Cost cost_of(const OpDef& op, std::span<const Shape> in, std::span<const Shape> out, const void* attrs) {
  Cost cost;
  for (const Shape& s : in) cost.bytes += double(s.size_bytes());
  for (const Shape& s : out) {
    cost.bytes += double(s.size_bytes());
    cost.operations += double(s.elements());
  }
  if (op.operations) {
    cost.operations = op.operations(in, out, attrs);
  } else if (op.traits.contraction && op.is_composite()) {
    cost.operations = operations_of_parts(op, in, out, attrs);
  }
  return cost;
}

void OpTable::add(const OpDef& d) {
  if (!by_name_.emplace(std::string(d.name), &d).second)
    throw invalid("ops: the table has an operator '", d.name, "' already; names must be unique");
}

const OpDef* OpTable::find(std::string_view name) const {
  const auto it = by_name_.find(name);
  return it == by_name_.end() ? nullptr : it->second;
}

const OpDef& OpTable::at(std::string_view name) const {
  if (const OpDef* d = find(name)) return *d;
  std::vector<std::string> names;
  for (const auto& [known, d] : by_name_) names.push_back(known);
  const std::string near = nearest_name(name, names);
  throw invalid("ops: unknown operator '", name, "'", near.empty() ? "" : cat("; did you mean '", near, "'"));
}

namespace detail {
namespace {

std::vector<std::string> split_names(std::string_view list) {
  std::vector<std::string> out;
  while (!list.empty()) {
    const size_t comma = list.find(',');
    std::string_view name = list.substr(0, comma);
    while (name.starts_with(' ')) name.remove_prefix(1);
    while (name.ends_with(' ')) name.remove_suffix(1);
    out.emplace_back(name);
    list = comma == std::string_view::npos ? std::string_view{} : list.substr(comma + 1);
  }
  return out;
}

}  // namespace

OpDef filled(void (*fill)(OpDef&)) {
  OpDef d;
  fill(d);
  return d;
}

void set_names(OpDef& d, std::string_view operands, std::string_view results) {
  d.operands = split_names(operands);
  d.results = split_names(results);
  d.min_operands = d.max_operands = 0;
  for (const std::string& name : d.operands) {
    if (name.ends_with("...")) {
      d.max_operands = -1;
    } else {
      ++d.max_operands;
      if (!name.ends_with("?")) ++d.min_operands;
    }
  }
}

void add_sample(std::vector<Sample>& samples, AttrsRef attrs, std::vector<std::string>&& inputs) {
  samples.push_back({std::move(attrs), std::move(inputs)});
}

}  // namespace detail

Expr Vjp::dy(int i) const {
  if (has_dy(i)) return cotangents[size_t(i)];
  return zeros_like(out(i));
}

Expr Jvp::dx(int i) const {
  if (has_dx(i)) return tangents[size_t(i)];
  return zeros_like(in(i));
}

}  // namespace rlx::ir
