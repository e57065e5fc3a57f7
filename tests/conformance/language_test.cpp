// Every operator x every sample: it verifies, runs, prints, parses, hashes and compares as promised.
#include <gtest/gtest.h>

#include "rlx/ir/leaves.h"
#include "rlx/ir/text.h"
#include "rlx/ops/all.h"
#include "tests/support/compare.h"
#include "tests/support/samples.h"

namespace rlx::ir {
namespace {

class EveryOp : public testing::TestWithParam<const OpDef*> {
 protected:
  const OpDef& op() const { return *GetParam(); }
  size_t count() const { return op().samples().size(); }
};

INSTANTIATE_TEST_SUITE_P(Language, EveryOp, testing::ValuesIn(test::ops_of(ops::table())), test::OpName());

TEST_P(EveryOp, is_documented_and_has_five_samples) {
  EXPECT_FALSE(op().summary.empty());
  EXPECT_FALSE(op().doc.empty());
  EXPECT_TRUE(op().reference || op().decompose || op().traits.leaf);
  EXPECT_GE(count(), 5u);
  for (const FieldInfo& f : op().fields) EXPECT_FALSE(f.doc.empty()) << f.name;
}

TEST_P(EveryOp, has_a_sample_with_nothing_in_it_and_one_with_a_single_element) {
  // Heads of axial_rope2d are multiples of four; the blocks of dequant_moe_weights and encode_blocks hold 32 numbers or more.
  const bool wide =
      op().name == "axial_rope2d" || op().name == "dequant_moe_weights" || op().name == "encode_blocks";
  bool empty = false, single = wide;
  for (size_t i = 0; i < count(); ++i) {
    const auto c = test::make_case(op(), i);
    for (const Node* n : c.graph.nodes()) {
      for (const Shape& s : n->shapes) {
        if (!s.is_static()) continue;
        empty |= s.elements() == 0;
        single |= s.elements() == 1;
      }
    }
  }
  EXPECT_TRUE(empty);
  EXPECT_TRUE(single);
}

TEST_P(EveryOp, verifies_and_runs_to_the_inferred_types) {
  for (size_t i = 0; i < count(); ++i) {
    SCOPED_TRACE(cat("sample ", i));
    const auto c = test::make_case(op(), i);
    for (const VerifyError& e : c.graph.verify()) ADD_FAILURE() << cat(e);
    if (c.graph.has_dynamic_dims()) continue;
    if (op().traits.leaf) continue;
    EXPECT_NO_THROW(interpret(c.graph, c.leaves)) << to_text(c.graph);
  }
}

TEST_P(EveryOp, prints_to_a_text_that_parses_back_to_an_equal_graph) {
  for (size_t i = 0; i < count(); ++i) {
    const auto c = test::make_case(op(), i);
    const std::string text = to_text(c.graph);
    SCOPED_TRACE(text);
    try {
      const Graph back = parse_graph(text, ops::table());
      EXPECT_EQ(to_text(back), text);
      EXPECT_TRUE(back == c.graph);
      EXPECT_TRUE(back.hash() == c.graph.hash());
    } catch (const Error& e) {
      ADD_FAILURE() << e.what();
    }
  }
}

TEST_P(EveryOp, different_samples_are_different_graphs) {
  for (size_t i = 1; i < count(); ++i) {
    const auto a = test::make_case(op(), i - 1), b = test::make_case(op(), i);
    EXPECT_FALSE(a.graph == b.graph) << to_text(a.graph);
    EXPECT_FALSE(a.graph.hash() == b.graph.hash()) << to_text(a.graph);
    EXPECT_TRUE(Graph(a.graph) == a.graph);
  }
}

// An operator that states its meaning twice, as a rule and as a decomposition, must mean one thing.
TEST_P(EveryOp, its_decomposition_agrees_with_its_reference) {
  if (!op().reference || !op().decompose) return;
  for (size_t i = 0; i < count(); ++i) {
    SCOPED_TRACE(cat("sample ", i));
    const auto c = test::make_case(op(), i, DType::f64);
    Graph expanded(c.graph.name());
    Values operands;
    for (size_t k = 0; k < c.leaves.size(); ++k)
      operands.push_back(expanded.input(cat("x", k), c.leaves[k].shape()));
    const Node& n = c.graph.node(c.graph.outputs()[0]);
    Values outputs;
    for (const Expr& t : op().decompose(Lower{expanded, operands, n.shapes}, n.attrs.get()))
      outputs.push_back(t);
    expanded.set_outputs(outputs);
    test::expect_close(interpret(expanded, c.leaves), interpret(c.graph, c.leaves), 1e-9);
  }
}

}  // namespace
}  // namespace rlx::ir
