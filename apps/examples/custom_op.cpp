// An operator of one's own, registered by name: y = x^3 with its derivative.
#include <iostream>

#include "rlx/rlx.h"

using namespace rlx;

int main() {
  ops::CustomOp cube;
  cube.name = "cube";
  cube.num_inputs = 1;
  cube.infer = [](std::span<const Shape> in, std::string_view) { return Shapes{in[0]}; };
  cube.reference = [](const ir::Eval& c, std::string_view) {
    std::vector<double> v = c.in(0).to_reals();
    for (double& x : v) x = x * x * x;
    return Literals{Literal::reals(c.out(), v)};
  };
  cube.vjp = [](const ir::Vjp& c, std::string_view) {
    const Tensor x = c.in(0), dy = c.dy();
    return ir::Exprs{dy * x * x * 3};
  };
  ops::register_custom_op(cube);

  const Graph g = trace("cubes", [](Tracer& t) {
    return NamedTensors{{"loss", custom_op("cube", "", {t.input("x", {3})})[0].sum()}};
  });
  const NamedLiterals at = {{"x", Literal::of<float>({3}, {1, 2, 3})}};
  std::cout << "loss " << cat(g.interpret(at).at("loss")) << "\n";
  std::cout << "gradient " << cat(grad(g, {"x"}).interpret(at).at("d_x")) << "\n";
}
