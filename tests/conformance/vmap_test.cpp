// Every operator x every sample: batching each operand alone, over each axis, and all together equals a loop.
#include <gtest/gtest.h>

#include <cstring>

#include "rlx/ops/all.h"
#include "rlx/transform/transform.h"
#include "tests/support/compare.h"
#include "tests/support/samples.h"

namespace rlx::ir {
namespace {

constexpr int64_t kBatch = 3;

// Examples joined along `axis`.
Literal stack(const Literals& examples, int axis) {
  Dims dims = examples[0].shape().dims();
  dims.insert(dims.begin() + axis, Dim(int64_t(examples.size())));
  Literal out = Literal::zeros(examples[0].shape().with_dims(dims));
  const auto view = axis_view(out.shape(), axis);
  const size_t row = size_t(view.inner) * dtype_size(out.dtype());
  std::byte* to = out.mutable_bytes().data();
  for (int64_t o = 0; row > 0 && o < view.outer; ++o) {
    for (int64_t k = 0; k < view.length; ++k) {
      std::memcpy(to + size_t(o * view.length + k) * row,
                  examples[size_t(k)].bytes().data() + size_t(o) * row, row);
    }
  }
  return out;
}

// One example of each operand: the sample's own values under other seeds.
Literal example(const OpDef& op, size_t sample, size_t operand, int64_t k) {
  return sample_literal(op.samples()[sample].inputs[operand], 1000 * sample + operand + 100'000 * uint64_t(k),
                        DType::f64);
}

void check(const OpDef& op, size_t sample, const std::map<size_t, int>& axes) {
  const auto c = test::make_case(op, sample, DType::f64);
  Literals leaves = c.leaves;
  transform::VmapOptions options{.in_axes = {}, .size = kBatch};
  std::vector<Literals> per_example(size_t(kBatch), c.leaves);
  for (const auto& [operand, axis] : axes) {
    options.in_axes[cat("x", operand)] = axis;
    Literals examples;
    for (int64_t k = 0; k < kBatch; ++k) {
      examples.push_back(example(op, sample, operand, k));
      per_example[size_t(k)][operand] = examples.back();
    }
    leaves[operand] = stack(examples, axis);
  }
  const Graph mapped = transform::vmap(c.graph, options);
  for (const auto& e : mapped.verify()) ADD_FAILURE() << cat(e);
  const Literals got = interpret(mapped, leaves);
  std::vector<Literals> results;
  for (const Literals& in : per_example) results.push_back(interpret(c.graph, in));
  for (size_t r = 0; r < got.size(); ++r) {
    Literals rows;
    for (const Literals& one : results) rows.push_back(one[r]);
    test::expect_close(got[r], stack(rows, 0), is_complex(got[r].dtype()) ? 1e-5 : 1e-9);
  }
}

class EveryVmap : public testing::TestWithParam<const OpDef*> {};
INSTANTIATE_TEST_SUITE_P(Vmap, EveryVmap, testing::ValuesIn(test::ops_of(ops::table())), test::OpName());

TEST_P(EveryVmap, equals_a_loop_over_examples) {
  const OpDef& op = *GetParam();
  if (op.traits.leaf) return;
  for (size_t i = 0; i < op.samples().size(); ++i) {
    const auto c = test::make_case(op, i, DType::f64);
    SCOPED_TRACE(cat("sample ", i, "\n", c.graph));
    if (c.leaves.empty()) continue;
    try {
      std::map<size_t, int> all;
      for (size_t operand = 0; operand < c.leaves.size(); ++operand) {
        for (int axis = 0; axis <= c.leaves[operand].shape().rank(); ++axis) {
          SCOPED_TRACE(cat("operand ", operand, " axis ", axis));
          check(op, i, {{operand, axis}});
        }
        all[operand] = 0;
      }
      SCOPED_TRACE("all operands");
      check(op, i, all);
    } catch (const Error& e) {
      ADD_FAILURE() << e.what();
    }
  }
}

}  // namespace
}  // namespace rlx::ir
