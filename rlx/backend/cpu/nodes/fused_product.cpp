// A matrix product with what happens to its result before it leaves the registers.
#include "rlx/backend/cpu/nodes/products.h"
#include "rlx/ir/leaves.h"
#include "rlx/ops/all.h"

namespace rlx::cpu {
namespace {

// The functions that an epilogue applies to single values.
struct NamedFunction {
  const ir::OpDef* op;
  Unary function;
};
template <class Op>
NamedFunction named(Unary f) {
  return {&ir::def<Op>(), f};
}
std::optional<Unary> function_of(const ir::OpDef* op) {
  static const NamedFunction kFunctions[] = {named<ops::Neg>(Unary::neg),
                                             named<ops::Abs>(Unary::abs),
                                             named<ops::Sqrt>(Unary::sqrt),
                                             named<ops::Exp>(Unary::exp),
                                             named<ops::Tanh>(Unary::tanh),
                                             named<ops::Sigmoid>(Unary::sigmoid),
                                             named<ops::Erf>(Unary::erf),
                                             named<ops::Relu>(Unary::relu),
                                             named<ops::Silu>(Unary::silu),
                                             named<ops::Gelu>(Unary::gelu),
                                             named<ops::GeluApprox>(Unary::gelu_tanh),
                                             named<ops::Softplus>(Unary::softplus),
                                             named<ops::Sin>(Unary::sin),
                                             named<ops::Cos>(Unary::cos)};
  for (const NamedFunction& f : kFunctions) {
    if (f.op == op) return f.function;
  }
  return std::nullopt;
}

// How a body reads as a product and a chain of steps, or why it does not.
struct Reading {
  std::string refusal;
  ProductOperands operands;
  ir::Value product;  // of the body
};

class Reader {
 public:
  explicit Reader(const Request& r) : r_(r), body_(*r.node.as<ops::Fused>().body) {
    const auto leaves = body_.leaves();
    for (size_t i = 0; i < leaves.size(); ++i) operand_of_[leaves[i]] = int(i);
  }

  Reading read() {
    const ir::Node* product = nullptr;
    for (const ir::Node* n : body_.nodes()) {
      if (!n->is<ops::Matmul>()) continue;
      if (product) return refuse("two products");
      product = n;
    }
    if (!product) return refuse("no product");
    if (body_.outputs().size() != 1) return refuse("several results");
    const auto a = leaf(product->inputs[0]), b = leaf(product->inputs[1]);
    if (!a || !b) return refuse("an operand of the product is computed");
    out_.operands.a = *a;
    out_.operands.b = *b;
    out_.product = product->result();
    ir::Value at = product->result();
    while (at != body_.outputs()[0]) {
      const ir::Node& now = body_.node(at);
      if (now.uses.size() != 1) return refuse(cat("a result of ", now.op->name, " is used twice"));
      const ir::Node& next = body_.node(now.uses[0].user);
      if (next.shapes[0] != product->shapes[0]) return refuse(cat(next.op->name, " changes the type"));
      if (int(out_.operands.epilogue.size()) == Epilogue::kMaxSteps) return refuse("too many steps");
      if (!add_step(next, now.uses[0].operand)) return refuse(cat("no epilogue step for ", next.op->name));
      at = next.result();
    }
    return out_;
  }

 private:
  Reading refuse(std::string why) {
    out_.refusal = std::move(why);
    return out_;
  }

  std::optional<int> leaf(ir::Value v) const {
    const auto it = operand_of_.find(v.node);
    return it == operand_of_.end() ? std::nullopt : std::optional(it->second);
  }

  static std::optional<double> fill(const ir::Node& n) {
    if (n.is<ir::Full>()) return n.as<ir::Full>().value;
    if (n.is<ir::Constant>() && n.shapes[0].elements() == 1) return n.as<ir::Constant>().value.real_at(0);
    return std::nullopt;
  }

  // How the operand spreads over the result: per column, or one for each element.
  enum class Spread { none, column, element };
  Spread spread(int operand) const {
    const Arg& x = r_.in[size_t(operand)];
    const Shape& y = body_.shape(out_.product);
    if (x.dtype() != DType::f32 || !x.is_row_major()) return Spread::none;
    if (x.shape.dims() == y.dims()) return Spread::element;
    if (x.shape.rank() == 0 || x.shape.dim(-1) != y.dim(-1)) return Spread::none;
    return x.shape.elements() == x.shape.dim(-1).value() ? Spread::column : Spread::none;
  }

  bool add_step(const ir::Node& n, uint32_t side) {
    auto& steps = out_.operands.epilogue;
    if (const auto f = function_of(n.op)) {
      steps.push_back({{.kind = EpilogueKind::unary, .function = *f}});
      return true;
    }
    if (n.inputs.size() != 2) return false;
    const ir::Value other = n.inputs[1 - side];
    const bool add = n.is<ops::Add>(), mul = n.is<ops::Mul>();
    if (!add && !mul) return false;
    if (const auto value = fill(body_.node(other))) {
      if (!mul) return false;
      steps.push_back({{.kind = EpilogueKind::scale, .value = float(*value)}});
      return true;
    }
    const auto operand = leaf(other);
    if (!operand) return false;
    const Spread s = spread(*operand);
    if (s == Spread::none) return false;
    const bool column = s == Spread::column;
    const EpilogueKind kind = add ? (column ? EpilogueKind::column_bias : EpilogueKind::add)
                                  : (column ? EpilogueKind::column_scale : EpilogueKind::multiply);
    steps.push_back(
        {{.kind = kind, .row_stride = column ? 0 : body_.shape(out_.product).dim(-1).value()}, *operand});
    return true;
  }

  const Request& r_;
  const ir::Graph& body_;
  std::map<ir::NodeId, int> operand_of_;
  Reading out_;
};

Support accepts(const Request& r) {
  if (const Support s = all_of(r, DType::f32); !s) return s;
  const Reading reading = Reader(r).read();
  if (!reading.refusal.empty()) return Support::no(reading.refusal);
  const Product p =
      describe_product(r.in[size_t(reading.operands.a)], r.in[size_t(reading.operands.b)], r.out[0]);
  if (!p.outer.empty() || p.gemm.batch != 1) return Support::no("a batch of products");
  if (p.gemm.k == 0 || p.gemm.m == 0 || p.gemm.n == 0) return Support::no("an empty product");
  return Support::yes();
}

std::unique_ptr<Step> prepare(const Request& r) {
  const Reading reading = Reader(r).read();
  const ProductOperands& o = reading.operands;
  auto step = prepare_product(r, describe_product(r.in[size_t(o.a)], r.in[size_t(o.b)], r.out[0]), o);
  step->note += cat(step->note.empty() ? "" : ", ", o.epilogue.size(), " steps on the result");
  return step;
}

}  // namespace

void add_fused_products(KernelTable& table) {
  table.add<ops::Fused>({"matmul_epilogue_f32", accepts, prepare});
}

}  // namespace rlx::cpu
