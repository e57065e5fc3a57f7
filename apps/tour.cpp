// ./dev run: a transformer block is traced, verified, printed, run and differentiated, and each step is told.
#include <chrono>
#include <cmath>
#include <cstdio>

#include "rlx/ir/sample.h"
#include "rlx/rlx.h"

using namespace rlx;

namespace {

constexpr int64_t kWidth = 16, kHeads = 2, kHidden = 40;

// Pre-norm attention and feed-forward net, each with its residual sum.
Graph transformer_block() {
  return trace(
      "block", std::function([](Tracer& t) {
        const Tensor x = t.input_dyn("x", {Dim::batch(), Dim::seq(), kWidth});
        const auto norm = [&t](const Tensor& v, const std::string& name) {
          return t.layer_norm(v, t.param(name + ".gamma", {kWidth}), t.param(name + ".beta", {kWidth}));
        };
        const auto linear = [&t](const Tensor& v, const std::string& name, int64_t in, int64_t out) {
          return v.matmul(t.param(name, {in, out}));
        };
        const Tensor a = norm(x, "norm1");
        const Tensor mixed =
            linear(a, "q", kWidth, kWidth)
                .attention_kind(linear(a, "k", kWidth, kWidth), linear(a, "v", kWidth, kWidth), kHeads,
                                kWidth / kHeads, ops::MaskKind::causal);
        const Tensor p = x + linear(mixed, "o", kWidth, kWidth);
        const Tensor f = norm(p, "norm2");
        const Tensor y = p + linear((linear(f, "up", kWidth, kHidden)).gelu(), "down", kHidden, kWidth);
        return NamedTensors{{"y", y}};
      }));
}

NamedLiterals random_leaves(const ir::Graph& g, const NamedLiterals& given = {}) {
  NamedLiterals out = given;
  for (const ir::NodeId id : g.leaves()) {
    const ir::Node& n = g.node(id);
    out.emplace(n.name, ir::sample_literal(cat(n.shapes[0]), id));
  }
  return out;
}

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

int main() {
  std::printf("The tour: one transformer block, traced from C++ expressions.\n\n");
  const Graph g = transformer_block();
  const auto errors = g.verify();
  std::printf(
      "1. Built %zu nodes; verify finds %zu errors. Its text form, which parses back to an equal graph "
      "(%s):\n\n%s\n",
      g.len(), errors.size(), Graph::parse(g.to_text()) == g ? "checked" : "WRONG", g.to_text().c_str());

  const Graph bound = g.bind(DimBinding::batch_seq(2, 5));
  const NamedLiterals leaves = random_leaves(bound);
  const auto start = std::chrono::steady_clock::now();
  const Literal y = bound.interpret(leaves).at("y");
  std::printf(
      "2. Bound batch = 2, seq = 5 and run by the reference interpreter: y is %s, y[0] = %.6f, %.1f ms.\n\n",
      cat(y.shape()).c_str(), y.real_at(0), 1e3 * seconds_since(start));

  // The gradient of sum(y) by x, against the difference of two runs.
  Graph loss = bound;
  loss.set_outputs({loss.sum(loss.outputs()[0], {}, false)}, {"loss"});
  const ir::Graph derivative = transform::grad(loss, {"x"});
  const double dx = ir::interpret(derivative, leaves).at("d_x").real_at(0);
  const auto loss_at = [&](double shift) {
    NamedLiterals moved = leaves;
    moved.at("x").mutable_data<float>()[0] += float(shift);
    return loss.interpret(moved).at("loss").real_at(0);
  };
  const double difference = (loss_at(1e-2) - loss_at(-1e-2)) / 2e-2;
  std::printf("3. Differentiated: %zu nodes. d loss / d x[0] = %.4f; by differences %.4f.\n",
              derivative.len(), dx, difference);
  return errors.empty() && std::fabs(dx - difference) < 1e-2 * (1 + std::fabs(difference)) ? 0 : 1;
}
