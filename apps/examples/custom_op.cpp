// An operator of one's own, defined like those of the library: y = x^3 with its derivative.
#include <iostream>

#include "rlx/rlx.h"

namespace {

struct Cube {
  static constexpr std::string_view name = "cube", summary = "Third power.", doc = "y = x^3", operands = "x";
  using Attrs = rlx::ir::NoAttrs;

  static rlx::Shapes infer(rlx::ir::Infer& c, Attrs&) { return {c.in(0)}; }
  static rlx::Literals reference(const rlx::ir::Eval& c, const Attrs&) {
    std::vector<double> v = c.in(0).to_reals();
    for (double& x : v) x = x * x * x;
    return {rlx::Literal::reals(c.out(), v)};
  }
  static rlx::ir::Exprs vjp(const rlx::ir::Vjp& c, const Attrs&) {
    const rlx::Tensor x = c.in(0), dy = c.dy();
    return {dy * x * x * 3};
  }
};

}  // namespace

int main() {
  using namespace rlx;
  ir::OpTable operators = ops::table();
  operators.add<Cube>();

  // A text that names it reads with the table that has it.
  const Graph g = Graph::parse("graph @cubes(x: f32[3]) { return loss=reduce(cube(x)) }", operators);
  const NamedLiterals at = {{"x", Literal::of<float>({3}, {1, 2, 3})}};
  std::cout << "loss " << cat(g.interpret(at).at("loss")) << "\n";
  std::cout << "gradient " << cat(grad(g, {"x"}).interpret(at).at("d_x")) << "\n";
}
