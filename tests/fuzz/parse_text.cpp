// A text that parses prints to a text that parses to an equal graph, and verifies.
#include "rlx/ir/text.h"
#include "rlx/ops/all.h"
#include "tests/fuzz/only_errors.h"

using namespace rlx;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  return fuzz::only_errors([&] {
    const ir::Graph g = ir::parse_graph({reinterpret_cast<const char*>(data), size}, ops::table());
    fuzz::require(g.verify().empty());
    const std::string text = ir::to_text(g);
    const ir::Graph back = ir::parse_graph(text, ops::table());
    fuzz::require(back == g);
    fuzz::require(ir::to_text(back) == text);
  });
}
