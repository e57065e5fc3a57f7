// Mistakes that must not compile; the test looks for the sentences among the errors.
#include "rlx/lang/trace.h"

using namespace rlx;

Tensor condition(const Tensor& x, const Tensor& y) {
  if (x.lt(y)) return x;
  return y;
}

Graph number() {
  return trace("f", [](Tracer&) { return 3; });
}

Graph no_tracer() {
  return trace("f", [](Tensor x) { return x; });
}
