// Every operator x every sample survives the JSON form and the file form.
#include <gtest/gtest.h>

#include "rlx/ir/json.h"
#include "rlx/lang/graph_file.h"
#include "rlx/ops/all.h"
#include "tests/support/samples.h"
#include "tests/support/scratch.h"

namespace rlx {
namespace {

class EveryOpInFiles : public testing::TestWithParam<const ir::OpDef*> {};

INSTANTIATE_TEST_SUITE_P(Files, EveryOpInFiles, testing::ValuesIn(test::ops_of(ops::table())),
                         test::OpName());

TEST_P(EveryOpInFiles, json_reads_back_to_an_equal_graph) {
  for (size_t i = 0; i < GetParam()->samples().size(); ++i) {
    const ir::Graph g = test::make_case(*GetParam(), i).graph;
    const std::string text = ir::to_json(g);
    SCOPED_TRACE(text);
    const ir::Graph back = ir::graph_from_json(text, ops::table());
    EXPECT_TRUE(back == g);
    EXPECT_EQ(ir::to_json(back), text);
  }
}

TEST_P(EveryOpInFiles, a_saved_file_loads_to_an_equal_graph) {
  const test::Scratch scratch;
  for (size_t i = 0; i < GetParam()->samples().size(); ++i) {
    const ir::Graph g = test::make_case(*GetParam(), i).graph;
    save_graph({g, {}, "mir"}, scratch.path("g.rlx"));
    const ir::Graph back = load_graph(scratch.path("g.rlx")).graph;
    EXPECT_TRUE(back == g);
    EXPECT_TRUE(back.hash() == g.hash());
  }
}

}  // namespace
}  // namespace rlx
