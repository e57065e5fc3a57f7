// What a program is told: opens the device, and with an argument copies so many numbers on it. No kernel is compiled: NVIDIA's compiler
// looks for functions of a driver that is already there, and this one has few.
#include <cstdio>
#include <cstdlib>

#include "rlx/backend/cuda/device.h"
#include "rlx/runtime/compiled_graph.h"

int main(int argc, char** argv) {
  try {
    rlx::cuda::device();
    std::puts("there is a device");
    if (argc > 1) {
      rlx::ir::Graph g("copy");
      const rlx::Shape shape(rlx::DType::f32, {std::atoll(argv[1])});
      g.set_outputs({g.input("x", shape)}, {"y"});
      rlx::compile(g, {}, {.device = "cuda"}).run({{"x", rlx::Literal::zeros(shape)}});
      std::puts("it ran");
    }
  } catch (const rlx::Error& e) {
    std::printf("%s: %s\n", e.kind() == rlx::ErrorKind::environment ? "environment" : "other", e.what());
    return 0;
  }
  return 0;
}
