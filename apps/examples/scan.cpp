// A loop: compound interest over ten years, and its derivative by the rate.
#include <iostream>

#include "rlx/rlx.h"

using namespace rlx;

int main() {
  const Graph g = trace("interest", [](Tracer& t) {
    const Tensor start = t.input("start", {}, DType::f64), rate = t.input("rate", {}, DType::f64);
    return NamedTensors{
        {"end", scan(start, {.length = 10}, [&](Tensor money) { return money + money * rate; })}};
  });
  const NamedLiterals at = {{"start", Literal::scalar(DType::f64, 100)},
                            {"rate", Literal::scalar(DType::f64, 0.5)}};
  std::cout << g << "end " << cat(g.interpret(at).at("end")) << "\n";
  std::cout << "by rate " << cat(grad(g, {"rate"}).interpret(at).at("d_rate")) << "\n";
}
