// Fits the rate of an ordinary differential equation by differentiating through its integration.
//
// x' = -k x, integrated by 1,000 Euler steps as one scan; the loss is the squared distance of x(1) to a
// measurement. The gradient with respect to k runs the loop backwards. With checkpoints the values are the
// same bits and the memory of the reference run falls. Last, the sensitivity of x(1) to (k, x0) for three
// start values at once: a Jacobian by vmap.
#include <cmath>
#include <cstdio>

#include "rlx/ir/interpreter.h"
#include "rlx/ops/all.h"
#include "rlx/transform/transform.h"

namespace {

using namespace rlx;  // NOLINT
using ops::operator*;
using ops::operator-;

constexpr int64_t kSteps = 1000;

// Inputs k and x0 joined to p = [k, x0]; the output is x(1), or its squared distance to 0.5.
ir::Graph integrate(int64_t checkpoints, bool loss) {
  ir::Graph g("decay");
  const ir::Expr p{&g, g.input("p", parse_shape("f64[2]"))};
  const ir::Expr k = ops::reshape(ops::narrow(p, 0, 0, 1), {}),
                 x0 = ops::reshape(ops::narrow(p, 0, 1, 1), {});
  ir::Graph step("euler");
  const ir::Expr x{&step, step.input("x", parse_shape("f64[]"))},
      rate{&step, step.input("k", parse_shape("f64[]"))};
  step.set_outputs({x - rate * x * (1.0 / kSteps)});
  const ir::Expr end =
      checkpoints > 0 ? ops::scan_all_checkpointed(g, {x0}, {k}, {}, std::move(step), kSteps, checkpoints)[0]
                      : ops::scan_all(g, {x0}, {k}, {}, std::move(step), kSteps)[0];
  const ir::Expr error = end - ops::scalar_like(end, 0.5);
  g.set_outputs({loss ? error * error : end}, {loss ? "loss" : "end"});
  return g;
}

Literal parameters(double k, double x0) { return Literal::of<double>({2}, {k, x0}); }

}  // namespace

int main() {
  const ir::Graph fit = transform::value_and_grad(integrate(0, true), {"p"});
  double k = 0.1;
  for (int i = 0; i <= 30; ++i) {
    const Literals out = ir::interpret(fit, Literals{parameters(k, 1)});
    if (i % 10 == 0) std::printf("step %2d: k = %.6f, loss = %.2e\n", i, k, out[0].real_at(0));
    k -= 1.5 * out[1].real_at(0);
  }
  std::printf("exact:   k = %.6f (ln 2 as the step goes to 0)\n", std::log(2.0));

  Literal first;
  for (const int64_t checkpoints : {int64_t(0), int64_t(32)}) {
    ir::Interpreter run;
    const Literals out =
        run.run(transform::value_and_grad(integrate(checkpoints, true), {"p"}), Literals{parameters(k, 1)});
    if (checkpoints == 0) first = out[1];
    std::printf("checkpoints %2lld: peak %6lld bytes, gradient %s\n", static_cast<long long>(checkpoints),
                static_cast<long long>(run.stats().peak_bytes),
                out[1] == first ? "the same bits" : "different");
  }

  const ir::Graph jacobian = transform::jacrev(integrate(0, false), "p");
  const ir::Graph batch = transform::vmap(jacobian, {.in_axes = {{"p", 0}}, .size = 3});
  const Literal j = ir::interpret(batch, Literals{Literal::of<double>({3, 2}, {k, 1, k, 2, k, 3})})[0];
  for (int64_t i = 0; i < 3; ++i) {
    std::printf("x0 = %lld: d end / d k = %.4f, d end / d x0 = %.4f\n", static_cast<long long>(i + 1),
                j.real_at(2 * i), j.real_at(2 * i + 1));
  }
  return 0;
}
