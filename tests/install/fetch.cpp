#include <iostream>

#include "rlx/base/shape.h"
#include "rlx/base/text.h"
#include "rlx/base/version.h"

int main() {
  using namespace rlx;
  const Shape shape(DType::f32, {Dim::symbol("n") * Dim(2), 3});
  std::cout << "fetched " << RLX_VERSION << ": " << cat(shape) << "\n";
}
