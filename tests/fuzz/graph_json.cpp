// A JSON document that reads as a graph writes to one that reads as an equal graph.
#include "rlx/ir/json.h"
#include "rlx/ops/all.h"
#include "tests/fuzz/only_errors.h"

using namespace rlx;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  return fuzz::only_errors([&] {
    const ir::Graph g = ir::graph_from_json({reinterpret_cast<const char*>(data), size}, ops::table());
    fuzz::require(g.verify().empty());
    fuzz::require(ir::graph_from_json(ir::to_json(g), ops::table()) == g);
  });
}
