// Fits the rate of an ordinary differential equation by differentiating through its integration.
//
// x' = -k x, integrated by 1,000 Euler steps as one scan; the loss is the squared distance of x(1) to a
// measurement. The gradient with respect to k runs the loop backwards. With checkpoints the values are the
// same bits and the memory of the reference run falls. Last, the sensitivity of x(1) to (k, x0) for three
// start values at once: a Jacobian by vmap.
#include <cmath>
#include <cstdio>

#include "rlx/rlx.h"

namespace {

using namespace rlx;

constexpr int64_t kSteps = 1000;

// The input p = [k, x0]; the output is x(1), or its squared distance to 0.5.
Graph integrate(int64_t checkpoints, bool loss) {
  return trace("decay", [=](Tracer& t) {
    const Tensor p = t.input("p", {2}, DType::f64), k = p[0], x0 = p[1];
    const Tensor end = scan(x0, {.length = kSteps, .checkpoints = checkpoints},
                            [&](Tensor x) { return x - k * x * (1.0 / kSteps); });
    return loss ? NamedTensors{{"loss", (end - 0.5).square()}} : NamedTensors{{"end", end}};
  });
}

Literal parameters(double k, double x0) { return Literal::of<double>({2}, {k, x0}); }

}  // namespace

int main() {
  const Graph fit = value_and_grad(integrate(0, true), {"p"});
  double k = 0.1;
  for (int i = 0; i <= 30; ++i) {
    const NamedLiterals out = fit.interpret({{"p", parameters(k, 1)}});
    if (i % 10 == 0) std::printf("step %2d: k = %.6f, loss = %.2e\n", i, k, out.at("loss").real_at(0));
    k -= 1.5 * out.at("d_p").real_at(0);
  }
  std::printf("exact:   k = %.6f (ln 2 as the step goes to 0)\n", std::log(2.0));

  Literal first;
  for (const int64_t checkpoints : {int64_t(0), int64_t(32)}) {
    ir::Interpreter run;
    const Literals out =
        run.run(value_and_grad(integrate(checkpoints, true), {"p"}), Literals{parameters(k, 1)});
    if (checkpoints == 0) first = out[1];
    std::printf("checkpoints %2lld: peak %6lld bytes, gradient %s\n", static_cast<long long>(checkpoints),
                static_cast<long long>(run.stats().peak_bytes),
                out[1] == first ? "the same bits" : "different");
  }

  const Graph batch = vmap(jacrev(integrate(0, false), "p"), {.in_axes = {{"p", 0}}, .size = 3});
  const Literal j = ir::interpret(batch, Literals{Literal::of<double>({3, 2}, {k, 1, k, 2, k, 3})})[0];
  for (int64_t i = 0; i < 3; ++i) {
    std::printf("x0 = %lld: d end / d k = %.4f, d end / d x0 = %.4f\n", static_cast<long long>(i + 1),
                j.real_at(2 * i), j.real_at(2 * i + 1));
  }
  return 0;
}
