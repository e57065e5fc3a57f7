#include <iostream>

#include "rlx/base/version.h"
#include "rlx/rlx.h"

int main() {
  using namespace rlx;
  const Graph g = trace("g", [](Tracer& t) { return t.input("x", {2}) * 3; });
  std::cout << "installed " << RLX_VERSION << ": "
            << cat(ir::interpret(g, Literals{Literal::of<float>({2}, {1, 2})})[0]) << "\n";
}
