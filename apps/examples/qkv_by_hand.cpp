// A projection to queries, keys and values, node by node.
#include <iostream>

#include "rlx/rlx.h"

using namespace rlx;

int main() {
  Graph g("qkv");
  const Value x = g.input("x", Shape(DType::f32, {4, 15, 384}));
  const Value w = g.param("w", Shape(DType::f32, {384, 1152}));
  const Value b = g.param("b", Shape(DType::f32, {1152}));
  g.set_outputs({g.add(g.mm(x, w), b)}, {"qkv"});
  std::cout << g << g.len() << " nodes\n";
}
