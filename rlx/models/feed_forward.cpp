#include <cmath>

#include "rlx/models/layers.h"

namespace rlx::models {

Tensor gated_ffn(Net& net, const Tensor& x, int64_t width, std::string_view prefix) {
  const auto key = [&](std::string_view part) { return cat(prefix, part); };
  const int64_t hidden = x.dim(-1).value();
  Tensor gate, up;
  if (prefix.empty() && net.has("gate_up")) {
    const Tensor both = net.linear("gate_up", x, 2 * width);
    gate = both.narrow(-1, 0, width);
    up = both.narrow(-1, width, width);
  } else {
    gate = net.linear(key("gate"), x, width);
    up = net.linear(key("up"), x, width);
  }
  return net.linear(key("down"), net.c.activation(gate) * up, hidden);
}

namespace {

// Scores [tokens, experts], those of all but the best groups out of question: with a correction, scores of the best may be below 0.
Tensor limited_to_groups(const Experts& m, const Tensor& scores) {
  const Dim tokens = scores.dim(0);
  const Tensor grouped = scores.reshape({tokens, m.groups, m.experts / m.groups});
  const Tensor best = top_k(grouped, {.k = m.group_top, .axis = 2})[0].sum({2});
  const Tensor chosen = top_k(best, {.k = m.groups_chosen, .axis = 1})[1];
  const Tensor kept = one_hot(chosen, {.depth = m.groups}).sum({1});  // [tokens, groups]
  return where(kept.unsqueeze(2) > 0.5, grouped, -INFINITY).reshape({tokens, m.experts});
}

struct Routing {
  Tensor experts, weights;  // [tokens, chosen]
};

Routing route(Net& net, const Tensor& x) {
  const Experts& m = net.c.moe;
  const Tensor logits = net.linear("router", x, m.experts);
  const Tensor scores = m.sigmoid ? logits.sigmoid() : logits.softmax(-1);
  Tensor choice = scores;
  if (net.has("router_correction")) choice = choice + net.weight("router_correction", {m.experts});
  if (m.groups > 1) choice = limited_to_groups(m, choice);
  const Tensor experts = top_k(choice, {.k = m.chosen, .axis = 1})[1];
  Tensor weights = take_along(scores, experts, {.axis = 1});
  if (m.normalised) weights = weights / (weights.sum({1}, true) + (m.sigmoid ? 1e-20 : 0));
  if (m.scale != 1) weights = weights * m.scale;
  return {experts, weights};
}

}  // namespace

Tensor expert_ffn(Net& net, const Tensor& input) {
  const Experts& m = net.c.moe;
  const Dim hidden = input.dim(2), tokens = input.dim(0) * input.dim(1), rows = tokens * Dim(m.chosen);
  const Tensor x = input.reshape({tokens, hidden});
  const Routing r = route(net, x);
  const Tensor repeated = x.unsqueeze(1).expand({tokens, m.chosen, hidden}).reshape({rows, hidden});
  const Tensor expert = r.experts.reshape({rows});
  Tensor gate, up;
  if (net.has("expert_gate_up")) {
    const Tensor both = net.expert_linear("expert_gate_up", repeated, expert, 2 * m.width);
    gate = net.adapt_expert("expert_gate", repeated, expert, both.narrow(1, 0, m.width));
    up = net.adapt_expert("expert_up", repeated, expert, both.narrow(1, m.width, m.width));
  } else {
    gate = net.expert_linear("expert_gate", repeated, expert, m.width);
    up = net.expert_linear("expert_up", repeated, expert, m.width);
  }
  const Tensor wide = net.c.activation(gate) * up;
  const Tensor down = net.expert_linear("expert_down", wide, expert, hidden.value());
  Tensor y = (down.reshape({tokens, m.chosen, hidden}) * r.weights.unsqueeze(2)).sum({1});
  if (m.shared_width > 0) {
    Tensor shared = gated_ffn(net, x, m.shared_width, "shared_");
    if (m.shared_gate) {
      const Tensor gate = (x * net.weight("shared_router", {1, hidden})).sum({1}, true);
      shared = shared * net.adapt("shared_router", x, gate).sigmoid();
    }
    y = y + shared;
  }
  return y.reshape(input.shape().dims());
}

Tensor feed_forward(Net& net, const Tensor& x) {
  const Experts& m = net.c.moe;
  if (m.experts > 0 && m.layers[size_t(net.layer)]) return expert_ffn(net, x);
  return gated_ffn(net, x, net.c.intermediate);
}

}  // namespace rlx::models
