// The same projection, traced from an expression.
#include <iostream>

#include "rlx/rlx.h"

using namespace rlx;

int main() {
  const Graph g = trace("qkv", [](Tracer& t) {
    const Tensor x = t.input("x", {4, 15, 384}), w = t.param("w", {384, 1152}), b = t.param("b", {1152});
    return NamedTensors{{"qkv", x.matmul(w) + b}};
  });
  std::cout << g << g.len() << " nodes\n";
}
