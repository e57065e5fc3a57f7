#include "rlx/lang/body.h"

namespace rlx {
namespace {

thread_local BodyScope* innermost = nullptr;

}  // namespace

BodyScope::BodyScope(std::string name, ir::Graph& parent)
    : graph_(std::move(name)), parent_(parent), before_(innermost) {
  innermost = this;
}

BodyScope::~BodyScope() { innermost = before_; }

BodyScope* BodyScope::of(const ir::Graph& g) {
  for (BodyScope* s = innermost; s != nullptr; s = s->before_) {
    if (&static_cast<const ir::Graph&>(s->graph_) == &g) return s;
  }
  return nullptr;
}

bool BodyScope::sees(const ir::Graph& g) const {
  if (&static_cast<const ir::Graph&>(graph_) == &g || &parent_ == &g) return true;
  const BodyScope* up = of(parent_);
  return up != nullptr && up->sees(g);
}

ir::Graph& BodyScope::home(std::span<const Tensor> operands) {
  ir::Graph* home = &operands[0].graph();
  for (const Tensor& t : operands) {
    BodyScope* inner = of(t.graph());
    if (inner != nullptr && &t.graph() != home && inner->sees(*home)) home = &t.graph();
  }
  return *home;
}

ir::Graph& BodyScope::home_of_control(std::span<const Tensor> operands) {
  ir::Graph& home = BodyScope::home(operands);
  return innermost != nullptr && innermost->sees(home) ? innermost->graph_ : home;
}

Tensor BodyScope::argument(const std::string& name, const Shape& shape) {
  return ir::Expr{&graph_, graph_.ir::Graph::input(name, shape)};
}

Tensor BodyScope::capture(const Tensor& outer) {
  for (size_t i = 0; i < outer_.size(); ++i) {
    if (Value(outer_[i]) == Value(outer)) return inner_[i];
  }
  outer_.push_back(outer);
  inner_.push_back(argument(cat("captured_", inner_.size()), outer.shape()));
  return inner_.back();
}

void BodyScope::capture_all(const Tensors& outer) {
  for (const Tensor& t : outer) capture(t);
}

Tensor BodyScope::localize(const Tensor& t) {
  if (&t.graph() == &static_cast<ir::Graph&>(graph_) || !sees(t.graph())) return t;
  if (&t.graph() == &parent_) return capture(t);
  return capture(of(parent_)->localize(t));
}

void BodyScope::set_outputs(const Tensors& outputs) {
  Values values;
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (outputs[i].is_empty())
      throw invalid(graph_.name(), ": tensor ", i, " that the body returns is empty");
    values.push_back(localize(outputs[i]));
  }
  graph_.set_outputs(std::move(values));
}

}  // namespace rlx
