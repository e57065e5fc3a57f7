#include "rlx/ops/control/custom.h"

#include <mutex>
#include <shared_mutex>

#include "rlx/ops/elementwise/binary.h"

namespace rlx::ops {
namespace {

struct Registry {
  std::shared_mutex mutex;
  std::map<std::string, std::shared_ptr<const CustomOp>, std::less<>> ops;
};

Registry& registry() {
  static Registry* r = new Registry;  // never destroyed: graphs may outlive static destruction
  return *r;
}

const CustomOp& need(std::string_view name, std::shared_ptr<const CustomOp>& hold) {
  hold = find_custom_op(name);
  if (hold == nullptr) {
    const auto names = custom_op_names();
    const std::string near = nearest_name(name, names);
    throw invalid("custom: no operator '", name, "' is registered",
                  near.empty() ? "; call register_custom_op first" : cat("; did you mean '", near, "'"));
  }
  return *hold;
}

Error no_rule(std::string_view name, std::string_view rule) {
  return invalid("custom: operator '", name, "' has no ", rule, " rule; register one",
                 rule == "vmap" ? "" : ", or wrap its operands in stop_gradient");
}

}  // namespace

void register_custom_op(CustomOp op, bool replace) {
  if (op.name.empty()) throw invalid("register_custom_op: the name is empty");
  if (!op.infer) throw invalid("register_custom_op: '", op.name, "' has no infer rule");
  if (!op.reference) throw invalid("register_custom_op: '", op.name, "' has no reference rule");
  if (op.num_inputs < 0)
    throw invalid("register_custom_op: '", op.name, "' has ", op.num_inputs, " inputs; 0 or more");
  Registry& r = registry();
  const std::unique_lock lock(r.mutex);
  std::string name = op.name;
  auto shared = std::make_shared<const CustomOp>(std::move(op));
  const auto [it, is_new] = r.ops.try_emplace(name, shared);
  if (is_new) return;
  if (!replace)
    throw invalid("register_custom_op: '", name, "' is registered already; pass replace to change it");
  it->second = std::move(shared);
}

std::shared_ptr<const CustomOp> find_custom_op(std::string_view name) {
  Registry& r = registry();
  const std::shared_lock lock(r.mutex);
  const auto it = r.ops.find(name);
  return it == r.ops.end() ? nullptr : it->second;
}

std::vector<std::string> custom_op_names() {
  Registry& r = registry();
  const std::shared_lock lock(r.mutex);
  std::vector<std::string> out;
  for (const auto& [name, op] : r.ops) out.push_back(name);
  return out;
}

Shapes Custom::infer(Infer& c, Attrs& a) {
  std::shared_ptr<const CustomOp> hold;
  const CustomOp& op = need(a.op, hold);
  if (c.count() != op.num_inputs)
    c.fail("operator '", a.op, "' takes ", op.num_inputs, " operands; ", c.count(), " given");
  Shapes out = op.infer(c.in(), a.attrs);
  if (!a.out_shape) return out;
  if (out.size() != 1) c.fail("out_shape is given, but operator '", a.op, "' has ", out.size(), " results");
  return {*a.out_shape};
}

Literals Custom::reference(const Eval& c, const Attrs& a) {
  std::shared_ptr<const CustomOp> hold;
  return need(a.op, hold).reference(c, a.attrs);
}

Exprs Custom::vjp(const Vjp& c, const Attrs& a) {
  std::shared_ptr<const CustomOp> hold;
  const CustomOp& op = need(a.op, hold);
  if (!op.vjp) throw no_rule(a.op, "vjp");
  return op.vjp(c, a.attrs);
}

// Forward mode as the transpose of vjp is the transform's business; it asks here first, so both are offered.
Exprs Custom::jvp(const Jvp& c, const Attrs& a) {
  std::shared_ptr<const CustomOp> hold;
  const CustomOp& op = need(a.op, hold);
  if (!op.jvp) throw no_rule(a.op, "jvp");
  return op.jvp(c, a.attrs);
}

Exprs Custom::vmap(const Vmap& c, const Attrs& a) {
  std::shared_ptr<const CustomOp> hold;
  const CustomOp& op = need(a.op, hold);
  if (!op.vmap) throw no_rule(a.op, "vmap");
  return op.vmap(c, a.attrs);
}

namespace {

// y = x^3, the operator of the samples.
void register_cube() {
  register_custom_op(
      {.name = "sample_cube",
       .num_inputs = 1,
       .infer = [](std::span<const Shape> in, std::string_view) { return Shapes{in[0]}; },
       .reference =
           [](const Eval& c, std::string_view) {
             std::vector<double> v = c.in(0).to_reals();
             for (double& x : v) x = x * x * x;
             return Literals{Literal::reals(c.out(), v)};
           },
       .vjp = [](const Vjp& c, std::string_view) { return Exprs{3.0 * c.in(0) * c.in(0) * c.dy()}; },
       .jvp = [](const Jvp& c, std::string_view) { return Exprs{3.0 * c.in(0) * c.in(0) * c.dx(0)}; },
       .vmap = [](const Vmap& c,
                  std::string_view) { return custom_op(c.graph, "sample_cube", "", {c.in(0)}); }},
      true);
}

}  // namespace

std::vector<OpSample<Custom::Attrs>> Custom::samples() {
  register_cube();
  return {{{"sample_cube"}, {"f32[2,3]"}},
          {{"sample_cube"}, {"f64[4]"}},
          {{"sample_cube"}, {"f32[0]"}},
          {{"sample_cube"}, {"f32[]"}},
          {{"sample_cube"}, {"f16[1]"}}};
}

Exprs custom_op(Graph& g, const std::string& name, const std::string& attrs, const Exprs& inputs) {
  return make_all<Custom>(g, {name, attrs, std::nullopt}, Values(inputs.begin(), inputs.end()));
}

Expr custom_op_packed(Graph& g, const std::string& name, const std::string& attrs, const Exprs& inputs,
                      const Shape& out_shape) {
  return make<Custom>(g, {name, attrs, out_shape}, Values(inputs.begin(), inputs.end()));
}

}  // namespace rlx::ops
