// Every operator x every sample, in f64: differentiating the batched function is batching the derivative.
// Where an operand is shared by the batch its gradient is the sum over the examples.
#include <gtest/gtest.h>

#include "rlx/ops/all.h"
#include "rlx/transform/transform.h"
#include "tests/support/batches.h"
#include "tests/support/derivatives.h"

namespace rlx::ir {
namespace {

constexpr int64_t kBatch = 3;

// The sum over axis 0.
Literal sum_rows(const Literal& x) {
  const Dims dims(x.shape().dims().begin() + 1, x.shape().dims().end());
  const Shape shape = x.shape().with_dims(dims);
  std::vector<std::complex<double>> sum(size_t(shape.elements()));
  for (int64_t i = 0; i < x.elements(); ++i) sum[size_t(i % shape.elements())] += x.complex_at(i);
  return is_complex(x.dtype()) ? Literal::complexes(shape, sum)
                               : Literal::reals(shape, test::real_parts(sum));
}

struct Differentiable {
  std::vector<size_t> leaves;
  std::vector<std::string> names;
  bool single = false;  // complex numbers have single precision
};

Differentiable differentiable(const test::SampleCase& c) {
  Differentiable out;
  for (size_t i = 0; i < c.leaves.size(); ++i) {
    if (!is_differentiable(c.leaves[i].dtype())) continue;
    out.leaves.push_back(i);
    out.names.push_back(cat("x", i));
    out.single = out.single || is_complex(c.leaves[i].dtype());
  }
  return out;
}

// All leaves but `shared` carry a batch; so do the cotangents.
void check(const OpDef& op, size_t sample, const test::SampleCase& c, const Differentiable& d,
           std::optional<size_t> shared) {
  const Graph pulled = transform::grad(c.graph, d.names, {.cotangent_inputs = true});
  transform::VmapOptions forward{.in_axes = {}, .size = kBatch}, backward{.in_axes = {}, .size = kBatch};
  Literals in;
  for (size_t i = 0; i < c.leaves.size(); ++i) {
    if (i == shared) {
      in.push_back(c.leaves[i]);
      continue;
    }
    forward.in_axes[cat("x", i)] = backward.in_axes[cat("x", i)] = 0;
    Literals examples;
    for (int64_t k = 0; k < kBatch; ++k) examples.push_back(test::example(op, sample, i, k));
    in.push_back(test::stack(examples));
  }
  const auto leaves = pulled.leaves();
  for (size_t i = c.leaves.size(); i < leaves.size(); ++i) {
    const Node& n = pulled.node(leaves[i]);
    backward.in_axes[n.name] = 0;
    Literals examples;
    for (int64_t k = 0; k < kBatch; ++k)
      examples.push_back(test::random_like(n.shapes[0], 400 + 10 * uint64_t(k) + i));
    in.push_back(test::stack(examples));
  }
  const Literals per_example = interpret(transform::vmap(pulled, backward), in);
  const Graph whole = transform::grad(transform::vmap(c.graph, forward), d.names, {.cotangent_inputs = true});
  for (const auto& e : whole.verify()) ADD_FAILURE() << cat(e);
  const Literals got = interpret(whole, in);
  ASSERT_EQ(got.size(), per_example.size());
  for (size_t i = 0; i < got.size(); ++i) {
    SCOPED_TRACE(cat("gradient of ", d.names[i]));
    test::expect_close(got[i], d.leaves[i] == shared ? sum_rows(per_example[i]) : per_example[i],
                       d.single ? 1e-4 : 1e-9);
  }
}

class EveryBatchedGradient : public testing::TestWithParam<const OpDef*> {};
INSTANTIATE_TEST_SUITE_P(GradVmap, EveryBatchedGradient, testing::ValuesIn(test::ops_of(ops::table())),
                         test::OpName());

TEST_P(EveryBatchedGradient, is_the_gradient_of_each_example_summed_where_shared) {
  const OpDef& op = *GetParam();
  if (op.traits.leaf) return;
  for (size_t i = 0; i < op.samples().size(); ++i) {
    const auto c = test::make_case(op, i, DType::f64);
    const Differentiable d = differentiable(c);
    if (c.graph.has_dynamic_dims() || d.leaves.empty() ||
        !test::DerivativeCheck(c.graph, c.leaves, true).applies())
      continue;
    SCOPED_TRACE(cat("sample ", i, "\n", c.graph));
    try {
      check(op, i, c, d, std::nullopt);
      if (c.leaves.size() < 2) continue;
      for (const size_t shared : d.leaves) {
        SCOPED_TRACE(cat("shared operand ", shared));
        check(op, i, c, d, shared);
      }
    } catch (const Error& e) {
      ADD_FAILURE() << e.what();
    }
  }
}

}  // namespace
}  // namespace rlx::ir
