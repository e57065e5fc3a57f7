#include "rlx/ops/attention/fused_block.h"

#include <gtest/gtest.h>

#include <cmath>

#include "rlx/ir/sample.h"
#include "rlx/ops/attention/rope.h"
#include "rlx/ops/linalg/matmul.h"
#include "rlx/ops/shape/narrow.h"
#include "tests/support/compare.h"
#include "tests/support/evaluate.h"

namespace rlx::ops {
namespace {

using test::evaluate, test::expect_close;

Literal reals(Dims dims, const std::vector<double>& values) { return Literal::of<double>(dims, values); }

// q and k are 0, so every allowed token weighs the same; v = hidden, and out_w doubles.
const Literal kTokens = reals({1, 3, 2}, {1, 2, 3, 4, 5, 9}),
              kQkv = reals({2, 6}, {0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 1}),
              kDouble = reals({2, 2}, {2, 0, 0, 2});

TEST(FusedAttentionBlock, averages_the_unmasked_tokens_when_all_scores_are_equal) {
  const auto y =
      evaluate({kTokens, kQkv, kDouble, reals({1, 3}, {1, 0, 1}), reals({6}, {0, 0, 0, 0, 10, 20}),
                reals({2}, {0.5, 0})},
               [](const Exprs& t) {
                 return Exprs{fused_attention_block(t[0], t[1], t[2], t[3], {}, {}, {}, {}, 2, 1),
                              fused_attention_block(t[0], t[1], t[2], t[3], t[4], t[5], {}, {}, 1, 2)};
               });
  expect_close(y[0], reals({1, 3, 2}, {6, 11, 6, 11, 6, 11}), 1e-12);
  expect_close(y[1], reals({1, 3, 2}, {26.5, 51, 26.5, 51, 26.5, 51}), 1e-12);
}

TEST(FusedAttentionBlock, rotates_queries_and_keys) {
  const Literals in{ir::sample_literal("f64[2,3,4]", 1), ir::sample_literal("f64[4,12]", 2),
                    ir::sample_literal("f64[4,4]", 3),   reals({2, 3}, {1, 1, 1, 1, 1, 0}),
                    ir::sample_literal("f64[3,1]", 5),   ir::sample_literal("f64[3,1]", 6)};
  const auto y = evaluate(in, [](const Exprs& t) {
    const Expr qkv = matmul(t[0], t[1]);
    const Expr q = rope(narrow(qkv, 2, 0, 4), t[4], t[5], 2), k = rope(narrow(qkv, 2, 4, 4), t[4], t[5], 2);
    return Exprs{fused_attention_block(t[0], t[1], t[2], t[3], {}, {}, t[4], t[5], 2, 2),
                 matmul(attention(q, k, narrow(qkv, 2, 8, 4), t[3], 2, 2), t[2])};
  });
  expect_close(y[0], y[1], 1e-12);
}

// Without linear biases the norms keep theirs: ten operands.
TEST(FusedTransformerLayer, without_bias_takes_ten_operands_and_keeps_the_norm_shifts) {
  const Literal none = reals({2, 6}, std::vector<double>(12, 0)), zero = reals({2, 2}, {0, 0, 0, 0});
  const auto y =
      evaluate({reals({1, 1, 2}, {1, 3}), none, zero, reals({2}, {2, 2}), reals({2}, {7, 7}), zero, zero,
                reals({2}, {3, 3}), reals({2}, {0.5, 1}), reals({1, 1}, {1})},
               [](const Exprs& t) {
                 return fused_transformer_layer(t[0], Exprs(t.begin() + 1, t.end()),
                                                {.num_heads = 1, .eps1 = 0, .eps2 = 0, .has_bias = false});
               });
  expect_close(y[0], reals({1, 1, 2}, {-2.5, 4}),
               1e-12);  // norm to -1, 1; then again, times 3, plus the shift
}

// Zero attention; fc1 doubles, relu, fc2 negates, with biases on the way.
TEST(FusedTransformerLayer, adds_attention_and_feed_forward_before_each_norm) {
  const Literal none = reals({2, 6}, std::vector<double>(12, 0));
  const auto y =
      evaluate({reals({1, 1, 2}, {1, 3}), none, reals({6}, {0, 0, 0, 0, 1, 2}), reals({2, 2}, {1, 0, 0, 1}),
                reals({2}, {0, 4}), reals({2}, {1, 1}), reals({2}, {0, 0}), reals({2, 2}, {2, 0, 0, 2}),
                reals({2}, {0, 1}), reals({2, 2}, {-1, 0, 0, -1}), reals({2}, {0, 0.5}), reals({2}, {1, 1}),
                reals({2}, {0, 0}), reals({1, 1}, {1})},
               [](const Exprs& t) {
                 return fused_transformer_layer(
                     t[0], Exprs(t.begin() + 1, t.end()),
                     {.num_heads = 1, .eps1 = 0, .eps2 = 1, .activation = Activation::relu});
               });
  // hidden + attention = 2, 9 -> norm -1, 1. fc1: -2, 3 -> relu 0, 3 -> fc2 -0, -2.5; sum -1, -1.5: mean
  // -1.25, deviation 0.25.
  const double scale = 0.25 / std::sqrt(0.0625 + 1);
  expect_close(y[0], reals({1, 1, 2}, {scale, -scale}), 1e-12);
}

}  // namespace
}  // namespace rlx::ops
