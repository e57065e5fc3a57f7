// A program, which is a graph with its weights, saved and opened again.
#include <filesystem>
#include <iostream>

#include "rlx/rlx.h"

using namespace rlx;

int main() {
  const Graph g = trace("mlp", [](Tracer& t) {
    const Tensor x = t.input("x", {Dim::batch(), 2}), w = t.param("w", {2, 3});
    return NamedTensors{{"y", x.matmul(w).relu()}};
  });
  const std::string path = (std::filesystem::temp_directory_path() / "rlx-example-mlp.safetensors").string();
  Program{g, {{"w", Literal::of<float>({2, 3}, {1, 2, 3, -1, 0, 1})}}}.save(path);

  const Program program = Program::open(path);
  std::filesystem::remove(path);
  std::cout << (program.graph == g ? "equal" : "different") << "\n"
            << "y " << cat(program.interpret({{"x", Literal::of<float>({1, 2}, {2, 3})}}).at("y")) << "\n";
}
