// The same projection, traced from an expression.
#include <iostream>

#include "rlx/rlx.h"

using namespace rlx;

int main() {
  const Graph g = trace("qkv", [](Tracer& t) {
    const Tensor x = t.input("x", {4, 15, 384});
    return NamedTensors{{"qkv", x.matmul(t.param("w", {384, 1152})) + t.param("b", {1152})}};
  });
  std::cout << g << g.len() << " nodes\n";
}
