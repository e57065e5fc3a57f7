// A loop: compound interest over ten years, and its derivative by the rate.
#include <iostream>

#include "rlx/rlx.h"

using namespace rlx;

int main() {
  const Graph step = Graph::parse(
      "graph(money: f64[], rate: f64[]) {\n  next = add(money, mul(money, rate))\n  return next\n}");
  Graph g("interest");
  const Value start = g.input("start", Shape::scalar(DType::f64)),
              rate = g.input("rate", Shape::scalar(DType::f64));
  g.set_outputs({g.scan_with_bcasts_and_xs(start, {rate}, {}, step, 10)}, {"end"});
  const NamedLiterals at = {{"start", Literal::scalar(DType::f64, 100)},
                            {"rate", Literal::scalar(DType::f64, 0.5)}};
  std::cout << g << "end " << cat(g.interpret(at).at("end")) << "\n";
  std::cout << "by rate " << cat(ir::interpret(transform::grad(g, {"rate"}), at).at("d_rate")) << "\n";
}
