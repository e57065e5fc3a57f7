#include "rlx/train/optimizer.h"

#include <algorithm>

#include "rlx/train/settings.h"

namespace rlx::train {

Update::Update(Graph& graph, Tensor count, std::vector<Trained> trained)
    : graph_(graph), count_(std::move(count)), trained_(std::move(trained)) {}

Tensor Update::state(const std::string& name, const Shape& shape, double initial) {
  const ir::Expr leaf{&graph_, graph_.ir::Graph::input(cat("optimizer/", name), shape)};
  states_.push_back({name, initial, leaf, {}});
  return leaf;
}

Tensor Update::state(const std::string& name, const Trained& p, double initial) {
  return state(cat(name, "/", p.name), p.value.shape(), initial);
}

void Update::keep(const std::string& name, const Tensor& next) {
  const auto it =
      std::find_if(states_.begin(), states_.end(), [&](const State& s) { return s.name == name; });
  RLX_CHECK(it != states_.end(), "optimizer state '", name, "' is kept but was never asked for");
  it->after = next;
}

void Update::keep(const std::string& name, const Trained& p, const Tensor& next) {
  keep(cat(name, "/", p.name), next);
}

Tensor as_type_of(const Trained& p, const Tensor& scalar) { return scalar.cast(p.value.dtype()); }

Tensor decayed_gradient(const Trained& p, double own) {
  const double decay = decay_of(p, own);
  return decay == 0 ? p.gradient : p.gradient + p.value * decay;
}

}  // namespace rlx::train
