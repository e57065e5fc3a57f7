// A saved graph that loads is sound, and its weights fit its params.
#include "rlx/lang/graph_file.h"
#include "tests/fuzz/only_errors.h"

using namespace rlx;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  return fuzz::only_errors([&] {
    const GraphFile file = parse_graph_file(fuzz::bytes_of(data, size), nullptr, "fuzz");
    fuzz::require(file.graph.verify().empty());
    for (const auto& [name, value] : file.weights) {
      const auto id = file.graph.find_leaf(name);
      fuzz::require(id && file.graph.node(*id).shapes[0] == value.shape());
    }
  });
}
