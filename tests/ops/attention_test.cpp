#include "rlx/ops/attention/attention.h"

#include <gtest/gtest.h>

#include <cmath>

#include "rlx/ir/sample.h"
#include "rlx/ops/elementwise/binary.h"
#include "rlx/ops/reduce/reduce.h"
#include "tests/support/compare.h"
#include "tests/support/evaluate.h"

namespace rlx::ops {
namespace {

using test::evaluate, test::expect_close;

Literal reals(Dims dims, const std::vector<double>& values) { return Literal::of<double>(dims, values); }
Literal random(std::string_view type, uint64_t seed) { return ir::sample_literal(type, seed); }

Literals run(const Literals& in, const AttentionAttrs& a, bool mask = false, bool bias = false) {
  return evaluate(in, [&](const Exprs& t) {
    const auto y =
        attention_with(t[0], t[1], t[2], mask ? t[3] : Expr{}, bias ? t[3 + size_t(mask)] : Expr{}, a);
    return Exprs{y.output, y.lse};
  });
}

// One head of one lane: with q = 0 every allowed key weighs the same, so y is the mean of the allowed values.
const Literal kZeroQuery = reals({3, 1}, {0, 0, 0}), kKeys = reals({3, 1}, {1, 2, 3}),
              kValues = reals({3, 1}, {1, 10, 100});

TEST(Attention, scales_then_caps_the_scores) {
  const auto y = run({reals({1, 1}, {2}), reals({2, 1}, {1, 3}), reals({2, 1}, {0, 1})},
                     {.score_scale = 0.5, .attn_logit_softcap = 2.0});
  EXPECT_NEAR(y[0].real_at(0), 0.7080768794483774, 1e-12);
  EXPECT_NEAR(y[1].real_at(0), 2.1554991116817757, 1e-12);
}

TEST(Attention, scales_by_the_root_of_head_dim_by_default) {
  const auto y = run({reals({1, 4}, {1, 1, 1, 1}), reals({2, 4}, {0, 0, 0, 0, 1, 1, 1, 1}),
                      reals({2, 4}, {0, 0, 0, 0, 1, 1, 1, 1})},
                     {});
  EXPECT_NEAR(y[0].real_at(0), 1 / (1 + std::exp(-2.0)), 1e-12);
}

TEST(Attention, a_soft_cap_does_not_leak_masked_keys) {
  const auto y =
      run({kZeroQuery, kKeys, kValues}, {.mask_kind = MaskKind::causal, .attn_logit_softcap = 1.0});
  expect_close(y[0], reals({3, 1}, {1, 5.5, 37}), 1e-12);
}

TEST(Attention, a_window_of_one_sees_two_keys) {
  const auto y = run({kZeroQuery, kKeys, kValues}, {.mask_kind = MaskKind::sliding_window, .window = 1});
  expect_close(y[0], reals({3, 1}, {1, 5.5, 55}), 1e-12);
}

TEST(Attention, queries_are_counted_from_the_end_of_the_keys) {
  const auto y = run({reals({2, 1}, {0, 0}), kKeys, kValues}, {.mask_kind = MaskKind::causal});
  expect_close(y[0], reals({2, 1}, {5.5, 37}), 1e-12);
}

TEST(Attention, a_row_without_an_allowed_key_gives_zeros_and_not_a_mean) {
  const auto y = run({kZeroQuery, kKeys, kValues, reals({1, 3}, {0, 0, 0})}, {}, true);
  expect_close(y[0], reals({3, 1}, {0, 0, 0}), 0);
  EXPECT_EQ(y[1].real_at(0), -INFINITY);
  // More queries than keys: the first two come before every key.
  const auto early =
      run({kZeroQuery, reals({1, 1}, {1}), reals({1, 1}, {7})}, {.mask_kind = MaskKind::causal});
  expect_close(early[0], reals({3, 1}, {0, 0, 7}), 0);
}

TEST(Attention, a_row_without_an_allowed_key_has_no_gradient) {
  const auto d = evaluate(
      {kZeroQuery, kKeys, kValues, reals({1, 3}, {0, 0, 0}), reals({3, 1}, {1, 1, 1})}, [](const Exprs& t) {
        const auto g = attention_backward_all(t[0], t[1], t[2], t[4], 1, 1, MaskKind::custom, t[3]);
        return Exprs{g.dq, g.dk, g.dv};
      });
  for (const Literal& x : d) expect_close(x, reals({3, 1}, {0, 0, 0}), 0);
}

TEST(Attention, no_keys_at_all_give_zeros) {
  const auto y = run({kZeroQuery, reals({0, 1}, {}), reals({0, 1}, {})}, {});
  expect_close(y[0], reals({3, 1}, {0, 0, 0}), 0);
}

TEST(Attention, a_key_mask_blocks_below_one_half) {
  const auto y = run({kZeroQuery, kKeys, kValues, reals({1, 3}, {0.5, 0.49, 1})}, {}, true);
  expect_close(y[0], reals({3, 1}, {50.5, 50.5, 50.5}), 1e-12);
  const auto whole = run({kZeroQuery, kKeys, kValues, Literal::of<int32_t>({1, 3}, {1, 0, 1})}, {}, true);
  expect_close(whole[0], y[0], 0);
}

TEST(Attention, a_full_mask_blocks_per_query) {
  const Literal mask =
      Literal::integers(Shape(DType::bool_, {1, 1, 3, 3}), std::vector<int64_t>{1, 0, 0, 0, 1, 1, 1, 0, 1});
  const auto y = run({kZeroQuery, kKeys, kValues, mask}, {}, true);
  expect_close(y[0], reals({3, 1}, {1, 55, 50.5}), 1e-12);
}

TEST(Attention, causal_window_mask_and_bias_combine) {
  // Query 2 sees keys 1 and 2 by the window; the mask takes key 1; the bias only matters where two are left.
  const auto y = run({kZeroQuery, kKeys, kValues, reals({1, 3}, {1, 0, 1}), reals({1, 1, 1, 3}, {5, 6, 7})},
                     {.mask_kind = MaskKind::sliding_window, .window = 1}, true, true);
  expect_close(y[0], reals({3, 1}, {1, 1, 100}), 1e-12);
  const auto biased = run({kZeroQuery, kKeys, kValues, reals({1, 1, 1, 3}, {std::log(3), 0, -INFINITY})},
                          {.mask_kind = MaskKind::causal}, false, true);
  expect_close(biased[0], reals({3, 1}, {1, 13.0 / 4, 13.0 / 4}), 1e-12);
}

TEST(Attention, the_bias_is_not_capped) {
  const auto y = run({kZeroQuery, kKeys, kValues, reals({1, 1, 1, 3}, {9, 0, 0})},
                     {.attn_logit_softcap = 1.0}, false, true);
  EXPECT_NEAR(y[1].real_at(0), std::log(std::exp(9) + 2), 1e-12);
}

TEST(Attention, query_heads_share_key_heads_in_order) {
  // Heads 0, 1 read key head 0 and heads 2, 3 key head 1.
  const auto y =
      run({reals({1, 4}, {0, 0, 0, 0}), reals({2, 2}, {1, 2, 3, 4}), reals({2, 2}, {1, 10, 3, 30})},
          {.num_heads = 4, .num_kv_heads = 2});
  expect_close(y[0], reals({1, 4}, {2, 2, 20, 20}), 1e-12);
}

TEST(Attention, layouts_agree_when_the_sequence_is_as_long_as_the_heads_are_many) {
  const Literal q = random("f64[2,3,6]", 1), k = random("f64[2,3,6]", 2), v = random("f64[2,3,6]", 3);
  const AttentionAttrs packed{.num_heads = 3, .mask_kind = MaskKind::causal};
  AttentionAttrs open = packed;
  open.layout = HeadLayout::bshd;
  const auto want = run({q, k, v}, packed);
  const auto got = run({q.reshaped({2, 3, 3, 2}), k.reshaped({2, 3, 3, 2}), v.reshaped({2, 3, 3, 2})}, open);
  expect_close(got[0].reshaped({2, 3, 6}), want[0], 0);
  expect_close(got[1], want[1], 0);
  open.layout = HeadLayout::bhsd;  // the same numbers read as heads first are another computation
  const auto other =
      run({q.reshaped({2, 3, 3, 2}), k.reshaped({2, 3, 3, 2}), v.reshaped({2, 3, 3, 2})}, open);
  EXPECT_FALSE(other[0].reshaped({2, 3, 6}) == want[0]);
}

TEST(Attention, values_may_have_their_own_number_of_lanes) {
  const auto y = run({kZeroQuery, kKeys, reals({3, 2}, {1, 2, 3, 4, 5, 6})}, {});
  expect_close(y[0], reals({3, 2}, {3, 4, 3, 4, 3, 4}), 1e-12);
}

TEST(Attention, the_length_may_be_a_symbol) {
  Graph g("decode");
  const Dim past = Dim::symbol("past");
  const Expr q{&g, g.input("q", Shape(DType::f64, {1, 2, 1}))};
  const Expr k{&g, g.input("k", Shape(DType::f64, {1, past + Dim(2), 1}))}, v{&g, g.input("v", k.shape())};
  g.set_outputs({attention_kind(q, k, v, 1, 1, MaskKind::causal)});
  const Graph bound = g.bind({{"past", 1}});
  const auto y = interpret(
      bound, Literals{reals({1, 2, 1}, {0, 0}), kKeys.reshaped({1, 3, 1}), kValues.reshaped({1, 3, 1})});
  expect_close(y[0], reals({1, 2, 1}, {5.5, 37}), 1e-12);
}

// d loss / d operand by central differences, loss = sum(weights y).
Literal difference(Literals in, size_t which, const Literal& weights, const AttentionAttrs& a, bool mask,
                   bool bias) {
  const auto loss = [&] {
    const Literal y = run(in, a, mask, bias)[0];
    double total = 0;
    for (int64_t i = 0; i < y.elements(); ++i) total += y.real_at(i) * weights.real_at(i);
    return total;
  };
  Literal d = Literal::zeros(in[which].shape());
  for (int64_t i = 0; i < d.elements(); ++i) {
    const double x = in[which].real_at(i), h = 1e-5;
    in[which].mutable_data<double>()[size_t(i)] = x + h;
    const double above = loss();
    in[which].mutable_data<double>()[size_t(i)] = x - h;
    d.mutable_data<double>()[size_t(i)] = (above - loss()) / (2 * h);
    in[which].mutable_data<double>()[size_t(i)] = x;
  }
  return d;
}

TEST(AttentionBackward, knows_scale_cap_window_groups_mask_and_bias) {
  const AttentionAttrs a{.num_heads = 4,
                         .num_kv_heads = 2,
                         .mask_kind = MaskKind::sliding_window,
                         .window = 2,
                         .score_scale = 0.8,
                         .attn_logit_softcap = 1.5};
  const Literals in{random("f64[2,3,8]", 1), random("f64[2,4,4]", 2), random("f64[2,4,4]", 3),
                    reals({2, 4}, {1, 0, 1, 1, 1, 1, 1, 0}), random("f64[2,4,3,4]", 5)};
  const Literal dy = random("f64[2,3,8]", 6);
  Literals all = in;
  all.push_back(dy);
  const auto d = evaluate(all, [&](const Exprs& t) {
    const auto g = attention_gradients(t[0], t[1], t[2], t[5], t[3], t[4], a);
    return Exprs{g.dq, g.dk, g.dv, g.dbias};
  });
  const size_t of[] = {0, 1, 2, 4};
  for (size_t i = 0; i < 4; ++i) {
    SCOPED_TRACE(i);
    expect_close(d[i], difference(in, of[i], dy, a, true, true), 1e-8);
  }
}

TEST(AttentionBackward, one_gradient_is_that_of_all) {
  const Literals in{random("f64[1,2,4]", 1), random("f64[1,3,4]", 2), random("f64[1,3,4]", 3),
                    random("f64[1,2,4]", 4), random("f64[1,2,2,3]", 5)};
  const auto one = [&](AttentionWrt wrt) {
    return evaluate(in, [&](const Exprs& t) {
      return attention_backward(wrt, t[0], t[1], t[2], t[3], 2, 2, MaskKind::bias, t[4]);
    })[0];
  };
  const auto all = evaluate(in, [](const Exprs& t) {
    const auto g = attention_backward_all(t[0], t[1], t[2], t[3], 2, 2, MaskKind::bias, t[4]);
    return Exprs{g.dq, g.dk, g.dv, g.dbias};
  });
  for (int i = 0; i < 4; ++i) expect_close(one(AttentionWrt(i)), all[size_t(i)], 0);
}

TEST(Attention, the_short_builders_mean_the_general_one) {
  const Literals in{random("f64[1,2,4]", 1), random("f64[1,3,4]", 2), random("f64[1,3,4]", 3),
                    reals({1, 3}, {1, 0, 1})};
  const auto y = evaluate(in, [](const Exprs& t) {
    return Exprs{attention(t[0], t[1], t[2], t[3], 2, 2),
                 attention_opts(t[0], t[1], t[2], t[3], 2, 2, 0.3, 2.0),
                 attention_kind(t[0], t[1], t[2], 2, 2, MaskKind::sliding_window, 1),
                 attention_kind_opts(t[0], t[1], t[2], 2, 2, MaskKind::causal, 0.3, 2.0)};
  });
  expect_close(y[0], run(in, {.num_heads = 2}, true)[0], 0);
  expect_close(y[1], run(in, {.num_heads = 2, .score_scale = 0.3, .attn_logit_softcap = 2.0}, true)[0], 0);
  const Literals three(in.begin(), in.begin() + 3);
  expect_close(y[2], run(three, {.num_heads = 2, .mask_kind = MaskKind::sliding_window, .window = 1})[0], 0);
  expect_close(
      y[3],
      run(three,
          {.num_heads = 2, .mask_kind = MaskKind::causal, .score_scale = 0.3, .attn_logit_softcap = 2.0})[0],
      0);
}

}  // namespace
}  // namespace rlx::ops
