#include "rlx/passes/precision.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "rlx/ir/bodies.h"
#include "rlx/ir/clone.h"
#include "rlx/ir/leaves.h"
#include "rlx/ops/attention/paged_attention.h"
#include "rlx/ops/attention/rope.h"
#include "rlx/ops/control/while.h"
#include "rlx/ops/elementwise/cast.h"
#include "rlx/ops/elementwise/clamp.h"
#include "rlx/ops/elementwise/classify.h"
#include "rlx/ops/elementwise/select.h"
#include "rlx/ops/index/gather.h"
#include "rlx/ops/index/take_along.h"
#include "rlx/ops/norm/axis_norm.h"
#include "rlx/ops/norm/group_norm.h"
#include "rlx/ops/norm/residual_norm.h"
#include "rlx/ops/reduce/cumulative.h"
#include "rlx/ops/reduce/reduce.h"
#include "rlx/ops/reduce/softmax.h"
#include "rlx/ops/reduce/variance.h"
#include "rlx/ops/shape/concat.h"
#include "rlx/ops/shape/pad.h"
#include "rlx/ops/table.h"
#include "rlx/passes/exact_values.h"

namespace rlx::passes {
namespace {

double largest_of(DType t) { return t == DType::f16 ? 65504 : 0x1.fep127; }

enum class Class : uint8_t { none, compute, reduction, elementwise, movement };

/// Operators whose class no trait tells.
Class listed_class(const ir::OpDef* op) {
  using ir::def;
  static const std::map<const ir::OpDef*, Class> classes = {
      {&def<ops::Rope>(), Class::elementwise},          {&def<ops::Reduce>(), Class::reduction},
      {&def<ops::Softmax>(), Class::reduction},         {&def<ops::LogSoftmax>(), Class::reduction},
      {&def<ops::Logsumexp>(), Class::reduction},       {&def<ops::Variance>(), Class::reduction},
      {&def<ops::Cumsum>(), Class::reduction},          {&def<ops::LayerNorm>(), Class::reduction},
      {&def<ops::RmsNorm>(), Class::reduction},         {&def<ops::GroupNorm>(), Class::reduction},
      {&def<ops::FusedResidualLn>(), Class::reduction}, {&def<ops::FusedResidualRmsNorm>(), Class::reduction},
      {&def<ops::Concat>(), Class::movement},           {&def<ops::Pad>(), Class::movement},
      {&def<ops::Gather>(), Class::movement},           {&def<ops::TakeAlong>(), Class::movement},
  };
  const auto it = classes.find(op);
  return it == classes.end() ? Class::none : it->second;
}

Class class_of(const ir::Node& n) {
  if (n.is<ops::Cast>() || n.op->traits.leaf || n.inputs.empty() || !n.op->traits.pure) return Class::none;
  if (n.is<ops::PagedAttention>())
    return Class::none;  // a cast would copy the store of all texts in every run
  if (const Class c = listed_class(n.op); c != Class::none) return c;
  if (n.op->traits.contraction) return Class::compute;
  if (n.op->view != nullptr) return Class::movement;
  return n.op->traits.elementwise ? Class::elementwise : Class::none;
}

/// The type for results of the node; f32 when it belongs to no class.
DType stored_as(const ir::Node& n, const PrecisionPolicy& p) {
  if (std::find(p.keep.begin(), p.keep.end(), n.op->name) != p.keep.end()) return DType::f32;
  switch (class_of(n)) {
    case Class::compute:
      return p.compute;
    case Class::reduction:
      return p.reduction;
    case Class::elementwise:
      return p.elementwise;
    case Class::movement:
      return p.movement;
    case Class::none:
      return DType::f32;
  }
  return DType::f32;
}

class Precision {
 public:
  /// `outputs`: those that are wanted exactly.
  Precision(const ir::Graph& g, const PrecisionPolicy& policy, bool trained, bool is_body,
            const std::vector<bool>& outputs)
      : g_(g),
        policy_(policy),
        trained_(trained),
        is_body_(is_body),
        out_(g.name()),
        copy_(out_),
        exact_(exact_values(g, outputs)) {
    out_.assume_sizes_of(g);
  }

  ir::Graph run() {
    for (const ir::Node* n : g_.nodes()) add(*n);
    ir::Values outputs;
    for (const ir::Value v : g_.outputs()) outputs.push_back(as(v, g_.shape(v).dtype()));
    out_.set_outputs(outputs, g_.output_names());
    return std::move(out_);
  }

 private:
  void add(const ir::Node& n) {
    // A value that is stored in the type that is asked for.
    if (n.is<ops::Cast>() && out_.shape(copy_.at(n.inputs[0])) == n.shapes[0]) {
      copy_.set(n.result(), copy_.at(n.inputs[0]));
      return;
    }
    const DType wanted = exact_.nodes[n.id] ? DType::f32 : stored_as(n, policy_);
    if (wanted != DType::f32 && add_as(n, wanted)) return;
    ir::Values operands;
    for (const ir::Value v : n.inputs) operands.push_back(as(v, g_.shape(v).dtype()));
    append(n, operands, ir::map_bodies(n, [&](const ir::FieldInfo& field, const ir::GraphRef& body) {
             if (n.is<ops::While>() && field.name == "cond") return body;  // says how often the loop runs
             const auto wanted = exact_.body_outputs.find(n.id);
             return std::make_shared<const ir::Graph>(
                 Precision(*body, policy_, trained_, true,
                           wanted == exact_.body_outputs.end() ? std::vector<bool>() : wanted->second)
                     .run());
           }));
  }

  bool add_as(const ir::Node& n, DType wanted) {
    if (types_as(n, wanted).empty()) return false;
    ir::Values operands;
    for (size_t i = 0; i < n.inputs.size(); ++i) {
      const DType declared = g_.shape(n.inputs[i]).dtype();
      operands.push_back(as(n.inputs[i], changes(n, i) ? wanted : declared));
    }
    append(n, operands, n.attrs);
    return true;
  }

  bool changes(const ir::Node& n, size_t operand) const {
    return g_.shape(n.inputs[operand]).dtype() == DType::f32 && !is_index(g_, n, operand);
  }

  // Result types on operands of the wanted type; none when the operator refuses them or gives other types than the same
  // ones with f32 replaced in the first. Further ones, such as the sums of attention, may stay.
  Shapes types_as(const ir::Node& n, DType wanted) const {
    Shapes in, expected;
    bool any = false;
    for (size_t i = 0; i < n.inputs.size(); ++i) {
      in.push_back(g_.shape(n.inputs[i]));
      if (!changes(n, i)) continue;
      in.back() = in.back().with_dtype(wanted);
      any = true;
    }
    for (const Shape& s : n.shapes) expected.push_back(s.dtype() == DType::f32 ? s.with_dtype(wanted) : s);
    if (!any) return {};
    try {
      const Shapes got = infer_types(n, in);
      for (size_t i = 0; i < got.size(); ++i) {
        if (got[i] != expected[i] && (i == 0 || got[i] != n.shapes[i])) return {};
      }
      return got;
    } catch (const Error& e) {
      if (e.kind() == ErrorKind::internal) throw;
      return {};
    }
  }

  void append(const ir::Node& n, const ir::Values& operands, const ir::AttrsRef& attrs) {
    if (n.op->traits.leaf) {
      copy_.copy(n);
      return;
    }
    const ir::OriginScope scope(out_, n.origin ? n.origin : out_.current_origin());
    const ir::NodeId id = out_.append(*n.op, attrs, operands, n.name);
    for (uint32_t i = 0; i < n.shapes.size(); ++i) copy_.set(n.result(i), out_.value(id, i));
  }

  // The value in this type; one cast for all who want the same.
  ir::Value as(ir::Value v, DType t) {
    const ir::Value stored = copy_.at(v);
    if (out_.shape(stored).dtype() == t) return stored;
    // What was widened is there in its own type.
    if (const ir::Node& made = out_.node(stored); made.is<ops::Cast>()) {
      const DType before = out_.shape(made.inputs[0]).dtype(), now = out_.shape(stored).dtype();
      if (before == t && is_float(t) && is_float(now) && dtype_size(t) < dtype_size(now))
        return made.inputs[0];
    }
    auto [it, is_new] = casts_.try_emplace({stored.node, stored.index, t});
    if (is_new) it->second = is_float(t) && dtype_size(t) == 2 ? narrowed(stored, t) : plain_cast(stored, t);
    return it->second;
  }

  ir::Value plain_cast(ir::Value v, DType t) { return ops::cast({&out_, v}, t); }

  // Numbers beyond the largest of the type, as masks are written, would become infinite and sums with them NaN. What a program computes is
  // its own.
  ir::Value narrowed(ir::Value v, DType t) {
    const ir::Node& n = out_.node(v);
    const double most = largest_of(t);
    const auto limited = [most](double x) {
      return std::isfinite(x) && std::fabs(x) > most ? std::copysign(most, x) : x;
    };
    if (n.is<ir::Full>()) {
      const auto& fill = n.as<ir::Full>();
      if (limited(fill.value) == fill.value || std::isnan(fill.value)) return plain_cast(v, t);
      return ir::full(out_, fill.shape.with_dtype(t), limited(fill.value));
    }
    if (n.is<ir::Constant>()) {
      std::vector<double> numbers = n.as<ir::Constant>().value.to_reals();
      if (std::ranges::none_of(numbers, [&](double x) { return std::isfinite(x) && limited(x) != x; }))
        return plain_cast(v, t);
      std::ranges::transform(numbers, numbers.begin(), limited);
      return out_.constant(Literal::reals(n.shapes[0].with_dtype(t), numbers));
    }
    // Weights that are trained, also where a body takes them, are cast alone: nothing stands in the way of their gradients.
    if (!n.op->traits.leaf || (trained_ && (is_body_ || n.is<ir::Param>()))) return plain_cast(v, t);
    const ir::Expr x{&out_, v}, is_number = ops::is_finite(x), inside = ops::clamp(x, -most, most);
    return ops::cast(ops::where(is_number, inside, x), t);
  }

  const ir::Graph& g_;
  const PrecisionPolicy& policy_;
  const bool trained_, is_body_;
  ir::Graph out_;
  ir::Cloner copy_;
  ExactValues exact_;
  std::map<std::tuple<ir::NodeId, uint16_t, DType>, ir::Value> casts_;
};

// An operator of the caller's own is known where the graph has it.
void check_kept(const ir::Graph& g, const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    if (ops::table().find(name) || ir::any_node(g, [&](const ir::Node& n) { return n.op->name == name; }))
      continue;
    std::vector<std::string> known;
    for (const auto& [op, def] : ops::table().all()) known.push_back(op);
    const std::string near = nearest_name(name, known);
    throw invalid("precision: '", name, "' is to stay in f32, but no operator has that name",
                  near.empty() ? "" : cat("; did you mean '", near, "'"));
  }
}

}  // namespace

ir::Graph apply_precision(const ir::Graph& g, const PrecisionPolicy& policy, bool trained) {
  for (const DType t : {policy.compute, policy.reduction, policy.elementwise, policy.movement}) {
    if (t != DType::f32 && t != DType::f16 && t != DType::bf16)
      throw invalid("precision: values cannot be stored as ", t, "; f32, f16 or bf16 expected");
  }
  check_kept(g, policy.keep);
  if (policy.changes_nothing()) return g;
  return Precision(g, policy, trained, false, {}).run();
}

}  // namespace rlx::passes
