// Faults that no node shows alone, and how exact results have to be.
#include <gtest/gtest.h>

#include <algorithm>

#include "rlx/ir/leaves.h"
#include "rlx/runtime/lockstep.h"
#include "tests/support/graphs.h"
#include "tests/support/named_samples.h"

namespace rlx {
namespace {

using test::graph;
using test::named_samples;

// A device whose softmax takes every operand for dense: one that is a broadcast view it reads in another order.
Literals takes_views_for_dense(const ir::Graph& g, const NamedLiterals& leaves) {
  const Literals given = ir::arrange_leaves(g, leaves);
  ir::Interpreter rules;
  std::vector<Literals> values(g.next_id());
  size_t leaf = 0;
  for (const ir::Node* n : g.nodes()) {
    if (n->op->traits.leaf) {
      values[n->id] = {given[leaf++]};
      continue;
    }
    Literals in;
    for (const ir::Value v : n->inputs) in.push_back(values[v.node][v.index]);
    if (n->op->name == "softmax" && g.node(n->inputs[0]).op->name == "expand") {
      const Literal dense = in[0];
      in[0] = Literal::zeros(dense.shape());
      const auto from = dense.data<float>();
      std::reverse_copy(from.begin(), from.end(), in[0].mutable_data<float>().begin());
    }
    values[n->id] = rules.run_node(*n, in);
  }
  Literals out;
  for (const ir::Value v : g.outputs()) out.push_back(values[v.node][v.index]);
  return out;
}

const char* const kBroadcastRows = R"(graph @g(x: f32[2,1,8], c: f32[2,4,8]) {
  t = tanh(x)
  e = expand(t, shape=(2,4,8))
  s = softmax(e)
  y = mul(s, c)
  z = exp(c)
  return y, z
})";

TEST(LockstepWhole, finds_what_no_node_shows_alone_and_makes_it_small) {
  const ir::Graph g = graph(kBroadcastRows);
  EXPECT_FALSE(run_in_lockstep(g, named_samples(g)).parting);
  const LockstepOptions faulty{.run_b = takes_views_for_dense};
  const LockstepResult r = run_in_lockstep(g, named_samples(g), faulty);
  ASSERT_TRUE(r.parting);
  EXPECT_FALSE(r.nodes.empty());
  EXPECT_EQ(r.parting->where, "the whole program");
  EXPECT_NE(r.parting->text.find("no node differs alone"), std::string::npos) << r.parting->text;
  EXPECT_TRUE(r.parting->graph.verify().empty());
  EXPECT_EQ(r.parting->graph.len(), 3u) << cat(r.parting->graph);  // a leaf, expand and softmax
  EXPECT_TRUE(outputs_part(r.parting->graph, r.parting->values, faulty));
  EXPECT_FALSE(outputs_part(r.parting->graph, r.parting->values, {}));
}

// An f64 that was an f16 on the way has the roundings of an f16, in another order of additions as well.
TEST(LockstepTolerance, follows_the_least_exact_type_on_the_way) {
  const ir::Graph g = graph(R"(graph @g(x: f16[4], y: f64[4]) {
    a = exp(x)
    b = cast(a, to=f64)
    c = cast(x, to=f64)
    d = exp(c)
    e = add(d, y)
    r:2 = if(constant(value=bool[]{true}), y, then_body=graph(p: f64[4]) { q = cast(p, to=f32) return u=cast(q, to=f64), v=p }, else_body=graph(p: f64[4]) { return p, p })
    i = argmax(a, axis=0)
    return b, e, r, i, x
  })");
  const double f16 = default_tolerance(DType::f16);
  EXPECT_EQ(output_tolerances(g, {}), (std::vector<double>{f16, 1e-10, 1e-4, 0, 0}));
  EXPECT_EQ(output_tolerances(g, 0.5), (std::vector<double>{0.5, 0.5, 0.5, 0, 0.5}));
}

TEST(LockstepTolerance, lets_an_f64_be_as_coarse_as_the_f16_before_it) {
  const ir::Graph g = graph(R"(graph @g(x: f16[4,65]) {
    a = rms_norm(x)
    b = cast(a, to=f64)
    return b
  })");
  const LockstepResult r = run_in_lockstep(g, named_samples(g));
  EXPECT_FALSE(r.parting) << r.parting->where << " " << r.parting->text;
}

}  // namespace
}  // namespace rlx
