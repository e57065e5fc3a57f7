// Derivatives of every operator that takes operands of any shape, for scalars, broadcast operands and
// batches, with and without kept axes, in both precisions.
#include <gtest/gtest.h>

#include "rlx/ops/all.h"
#include "tests/support/derivatives.h"
#include "tests/support/samples.h"

namespace rlx::ir {
namespace {

// The fill of a sample operand without its type: " positive" of "f32[2,3] positive".
std::string fill_of(const std::string& spec) {
  const size_t space = spec.find(' ');
  return space == std::string::npos ? "" : spec.substr(space);
}

// Sample `index` with the extents of its operands replaced; none where it names values one by one.
std::optional<test::SampleCase> with_extents(const OpDef& op, size_t index,
                                             const std::vector<std::string>& extents) {
  const Sample sample = op.samples()[index];
  test::SampleCase out{Graph(std::string(op.name)), {}};
  Values operands;
  for (size_t i = 0; i < sample.inputs.size(); ++i) {
    const std::string& spec = sample.inputs[i];
    if (spec.find(" near ") != std::string::npos) return std::nullopt;
    const std::string type = spec.substr(0, spec.find('[')) + extents[i % extents.size()];
    out.leaves.push_back(sample_literal(type + fill_of(spec), 1000 * index + i, DType::f64));
    operands.push_back(out.graph.input(cat("x", i), out.leaves.back().shape()));
  }
  const NodeId id = out.graph.append(op, test::retype_attrs(op, sample.attrs.get(), DType::f64), operands);
  out.graph.set_outputs({out.graph.value(id)});
  return out;
}

class EveryShape : public testing::TestWithParam<const OpDef*> {};
INSTANTIATE_TEST_SUITE_P(Derivative, EveryShape, testing::ValuesIn(test::ops_of(ops::table())),
                         test::OpName());

TEST_P(EveryShape, scalar_broadcast_and_batch_of_an_elementwise_operator) {
  const OpDef& op = *GetParam();
  if (!op.traits.elementwise) return;
  const std::vector<std::vector<std::string>> shapes = {
      {"[]"}, {"[2,1]", "[3]", "[]"}, {"[3]", "[2,3]", "[2,1,1]"}, {"[2,2,2]"}};
  for (size_t i = 0; i < op.samples().size(); ++i) {
    for (const auto& extents : shapes) {
      const auto c = with_extents(op, i, extents);
      if (!c) continue;
      SCOPED_TRACE(cat("sample ", i, "\n", c->graph));
      test::DerivativeCheck check(c->graph, c->leaves, !op.traits.surrogate_gradient, true);
      if (check.applies()) check.run();
    }
  }
}

TEST_P(EveryShape, with_and_without_kept_axes) {
  const OpDef& op = *GetParam();
  const FieldInfo* keep = op.find_field("keep_dim");
  if (keep == nullptr) return;
  for (size_t i = 0; i < op.samples().size(); ++i) {
    for (const bool kept : {false, true}) {
      const Sample sample = op.samples()[i];
      const auto base = test::make_case(op, i, DType::f64);
      const auto attrs = test::retype_attrs(op, sample.attrs.get(), DType::f64);
      keep->set(attrs.get(), AttrValue(kept));
      Graph g(std::string(op.name));
      Values operands;
      for (size_t k = 0; k < base.leaves.size(); ++k)
        operands.push_back(g.input(cat("x", k), base.leaves[k].shape()));
      g.set_outputs({g.value(g.append(op, attrs, operands))});
      SCOPED_TRACE(cat("sample ", i, "\n", g));
      test::DerivativeCheck check(g, base.leaves, !op.traits.surrogate_gradient, true);
      if (check.applies()) check.run();
    }
  }
}

// In f32 a derivative has no second rule: it must be the f64 one at the same point, to single precision.
TEST_P(EveryShape, gradients_in_f32_are_those_in_f64) {
  const OpDef& op = *GetParam();
  if (op.traits.leaf) return;
  for (size_t i = 0; i < op.samples().size(); ++i) {
    const auto narrow = test::make_case(op, i, DType::f32), wide = test::make_case(op, i, DType::f64);
    if (narrow.graph.has_dynamic_dims()) continue;
    SCOPED_TRACE(cat("sample ", i, "\n", narrow.graph));
    std::vector<std::string> names;
    Literals narrow_in = narrow.leaves, wide_in;
    for (size_t k = 0; k < narrow.leaves.size(); ++k) {
      const Literal& x = narrow.leaves[k];
      const bool real = x.dtype() == DType::f32;
      wide_in.push_back(real ? x.cast(DType::f64) : x);
      if (real) names.push_back(cat("x", k));
    }
    if (names.empty() || !test::DerivativeCheck(narrow.graph, narrow.leaves, true).applies()) continue;
    const Graph narrow_grad = transform::grad(narrow.graph, names, {.cotangent_inputs = true}),
                wide_grad = transform::grad(wide.graph, names, {.cotangent_inputs = true});
    const auto leaves = narrow_grad.leaves();
    for (size_t k = narrow.leaves.size(); k < leaves.size(); ++k) {
      const Literal dy = test::random_like(narrow_grad.node(leaves[k]).shapes[0], 30 + k);
      narrow_in.push_back(dy);
      wide_in.push_back(dy.dtype() == DType::f32 ? dy.cast(DType::f64) : dy);
    }
    const Literals got = interpret(narrow_grad, narrow_in), want = interpret(wide_grad, wide_in);
    for (size_t k = 0; k < got.size(); ++k) {
      SCOPED_TRACE(names[k]);
      EXPECT_EQ(got[k].dtype(), DType::f32);
      double scale = 1;
      for (const double v : want[k].to_reals()) scale = std::max(scale, std::fabs(v));
      test::expect_close(got[k].cast(DType::f64), want[k], 1e-4 * scale);
    }
  }
}

}  // namespace
}  // namespace rlx::ir
