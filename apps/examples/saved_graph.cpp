// A graph with its weights, saved and loaded again.
#include <filesystem>
#include <iostream>

#include "rlx/rlx.h"

using namespace rlx;

int main() {
  const Graph g = trace("mlp", std::function([](Tracer& t) {
                          const Tensor x = t.input_dyn("x", {Dim::batch(), 2}), w = t.param("w", {2, 3});
                          return NamedTensors{{"y", x.matmul(w).relu()}};
                        }));
  const std::string path = (std::filesystem::temp_directory_path() / "rlx-example-mlp.safetensors").string();
  g.save(path, {{"w", Literal::of<float>({2, 3}, {1, 2, 3, -1, 0, 1})}});

  GraphFile file = load_graph(path);
  std::filesystem::remove(path);
  NamedLiterals in = file.weights;
  in.emplace("x", Literal::of<float>({1, 2}, {2, 3}));
  std::cout << (file.graph == g ? "equal" : "different") << "\n"
            << "y " << cat(ir::interpret(file.graph, in).at("y")) << "\n";
}
