// An operator of one's own, registered by name: y = x^3 with its derivative.
#include <iostream>

#include "rlx/ops/control/custom.h"
#include "rlx/ops/elementwise/binary.h"
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
    using namespace ops;  // NOLINT: arithmetic between tensors
    return ir::Exprs{c.dy() * c.in(0) * c.in(0) * 3.0};
  };
  ops::register_custom_op(cube);

  Graph g("cubes");
  const Value x = g.input("x", Shape(DType::f32, {3}));
  g.set_outputs({g.sum(g.custom_op("cube", "", {x})[0], {}, false)}, {"loss"});
  const NamedLiterals at = {{"x", Literal::of<float>({3}, {1, 2, 3})}};
  std::cout << "loss " << cat(g.interpret(at).at("loss")) << "\n";
  std::cout << "gradient " << cat(ir::interpret(transform::grad(g, {"x"}), at).at("d_x")) << "\n";
}
