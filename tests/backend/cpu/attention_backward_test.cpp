#include "rlx/backend/cpu/kernels/attention_backward.h"

#include <map>

#include "tests/backend/cpu/attention_case.h"

namespace rlx::cpu {
namespace {

using test::Array, test::at, test::AttentionCase, test::AttentionProblem, test::random_array;

struct Gradients {
  Array<float> dq, dk, dv, dbias;
};

// Runs the kernels: attention for lse and o, then its gradient. With `delta` that is handed over instead of
// o.
Gradients gradients(Team team, AttentionProblem& x, const Array<float>& dy, bool delta) {
  const AttentionCase& c = x.c;
  Gradients g{Array<float>(c.batch * x.qs.batch, 1), Array<float>(c.batch * x.ks.batch, 3),
              Array<float>(c.batch * x.vs.batch), Array<float>(x.bias.size())};
  for (Array<float>* a : {&g.dq, &g.dk, &g.dv, &g.dbias}) {
    for (int64_t i = 0; i < a->size(); ++i) (*a)[i] = 55;  // every element must be written
  }
  Attention p = x.parameters();
  Array<std::byte> forward(int64_t(attention_workspace(p, team.threads())));
  attention(team, p, forward.data());
  Array<float> deltas(c.batch * c.q_heads * c.q_len);
  for (int64_t b = 0; b < c.batch && delta; ++b) {
    for (int64_t h = 0; h < c.q_heads; ++h) {
      for (int64_t i = 0; i < c.q_len; ++i) {
        for (int64_t d = 0; d < c.value_dim; ++d) {
          deltas[(b * c.q_heads + h) * c.q_len + i] += x.o[at(x.os, b, h, i) + d] * dy[at(x.os, b, h, i) + d];
        }
      }
    }
  }
  if (delta) p.o = nullptr;
  const AttentionBackward backward{.forward = p,
                                   .dy = dy.data(),
                                   .dy_strides = x.os,
                                   .delta = delta ? deltas.data() : nullptr,
                                   .dq = g.dq.data(),
                                   .dq_strides = x.qs,
                                   .dk = g.dk.data(),
                                   .dk_strides = x.ks,
                                   .dv = g.dv.data(),
                                   .dv_strides = x.vs,
                                   .dbias = c.bias ? g.dbias.data() : nullptr};
  Array<std::byte> workspace(int64_t(attention_backward_workspace(backward, team.threads())));
  attention_backward(team, backward, workspace.data());
  return g;
}

struct Wanted {
  std::vector<double> dq, dk, dv, dbias;
};

Wanted plain_loop(const AttentionProblem& x, const Array<float>& dy) {
  const AttentionCase& c = x.c;
  Wanted w{std::vector<double>(size_t(x.q.size())), std::vector<double>(size_t(x.k.size())),
           std::vector<double>(size_t(x.v.size())), std::vector<double>(size_t(x.bias.size()))};
  for (int64_t b = 0; b < c.batch; ++b) {
    for (int64_t h = 0; h < c.q_heads; ++h) {
      for (int64_t i = 0; i < c.q_len; ++i) {
        const auto weights = x.weights(b, h, i);
        std::vector<double> dp(static_cast<size_t>(c.k_len));
        double delta = 0;
        for (int64_t j = 0; j < c.k_len; ++j) {
          for (int64_t d = 0; d < c.value_dim; ++d) {
            const int64_t v = at(x.vs, b, x.kv_head(h), j) + d;
            const double g = double(dy[at(x.os, b, h, i) + d]);
            dp[size_t(j)] += g * double(x.v[v]);
            w.dv[size_t(v)] += g * weights.p[size_t(j)];
          }
          delta += dp[size_t(j)] * weights.p[size_t(j)];
        }
        for (int64_t j = 0; j < c.k_len; ++j) {
          const double ds = weights.p[size_t(j)] * (dp[size_t(j)] - delta);
          w.dbias[size_t(at(x.bias_strides, b, h, i) + j)] += ds;
          const double dz = ds * weights.scores[size_t(j)].slope * double(0.3f);
          for (int64_t d = 0; d < c.head_dim; ++d) {
            const int64_t q = at(x.qs, b, h, i) + d, k = at(x.ks, b, x.kv_head(h), j) + d;
            w.dq[size_t(q)] += dz * double(x.k[k]);
            w.dk[size_t(k)] += dz * double(x.q[q]);
          }
        }
      }
    }
  }
  return w;
}

// Each gradient is a sum of at most `terms` numbers of size about 2 whose weights carry the error of a score
// of size 20, so 20 * dim * 2^-24 at worst; random signs keep the sum near its square root.
double tolerance(int64_t terms) { return 1e-4 * std::sqrt(1.0 + double(terms)); }

void check_case(Team team, const AttentionCase& c, bool delta = false) {
  SCOPED_TRACE(testing::Message() << c);
  AttentionProblem x(c);
  const Array<float> dy = random_array(c.batch * x.os.batch, 7, -1, 1, 1);
  const Gradients got = gradients(team, x, dy, delta);
  const Wanted want = plain_loop(x, dy);
  const int64_t group = c.q_heads / c.kv_heads;
  test::expect_near(got.dq.data(), want.dq.data(), got.dq.size(), tolerance(c.k_len / 16), "dq");
  test::expect_near(got.dk.data(), want.dk.data(), got.dk.size(), tolerance(c.q_len * group / 16), "dk");
  test::expect_near(got.dv.data(), want.dv.data(), got.dv.size(), tolerance(c.q_len * group / 16), "dv");
  if (c.bias) {
    const int64_t size = std::max<int64_t>(0, 1 + (c.batch - 1) * x.bias_strides.batch +
                                                  (c.q_heads - 1) * x.bias_strides.head +
                                                  (c.q_len - 1) * x.bias_strides.row + c.k_len - 1);
    test::expect_near(got.dbias.data(), want.dbias.data(), size, tolerance(c.batch * c.q_heads), "dbias");
  }
}

TEST(AttentionBackward, every_mask_and_combination_agrees_with_a_plain_loop) {
  test::at_every_level([](Team team) {
    for (int64_t q_len : {7, 40}) {
      for (int bits = 0; bits < 32; ++bits) {
        check_case(team, {.batch = 1,
                          .q_len = q_len,
                          .k_len = 53,
                          .causal = (bits & 1) != 0,
                          .key_mask = (bits & 2) != 0,
                          .mask = (bits & 4) != 0,
                          .bias = (bits & 8) != 0,
                          .window = bits & 16 ? 5 : -1,
                          .softcap = bits & 8 ? 3.0f : 0.0f});
      }
    }
  });
}

TEST(AttentionBackward, odd_sizes_layouts_and_formats_agree_with_a_plain_loop) {
  test::at_every_level([](Team team) {
    for (int64_t dim : {1, 5, 24, 64}) {
      for (KvFormat f : {KvFormat::f32, KvFormat::f16, KvFormat::bf16}) {
        check_case(team,
                   {.q_len = 19,
                    .k_len = 19,
                    .head_dim = dim,
                    .value_dim = dim + 3,
                    .causal = true,
                    .format = f,
                    .packed = f != KvFormat::f16},
                   dim % 2 == 0);
      }
    }
    check_case(team, {.q_len = 1, .k_len = 1});
    check_case(team, {.q_len = 70, .k_len = 1});
    check_case(team, {.q_len = 1, .k_len = 130});
    check_case(
        team,
        {.batch = 1, .q_heads = 1, .kv_heads = 1, .q_len = 150, .k_len = 300, .causal = true, .window = 100});
  });
}

TEST(AttentionBackward, a_bias_that_repeats_gets_the_sum) {
  test::at_every_level([](Team team) {
    for (int bits = 1; bits < 8; ++bits) {
      check_case(team, {.q_len = 9,
                        .k_len = 33,
                        .causal = true,
                        .bias = true,
                        .bias_shares_batch = (bits & 1) != 0,
                        .bias_shares_head = (bits & 2) != 0,
                        .bias_shares_row = (bits & 4) != 0});
    }
  });
}

TEST(AttentionBackward, queries_that_see_nothing_give_zero) {
  test::at_every_level([](Team team) {
    check_case(team, {.q_len = 40, .k_len = 9, .causal = true});
    check_case(team, {.q_len = 4, .k_len = 0});
    check_case(team, {.q_len = 0, .k_len = 4});
    AttentionProblem x({.q_len = 40, .k_len = 9, .causal = true, .bias = true});
    const Gradients g = gradients(team, x, random_array(x.o.size(), 7), false);
    for (int64_t d = 0; d < 16; ++d) ASSERT_EQ(g.dq[d], 0);
  });
}

TEST(AttentionBackward, thread_counts_give_the_same_bits) {
  const AttentionCase cases[] = {
      {.batch = 1, .q_heads = 2, .kv_heads = 1, .q_len = 70, .k_len = 500, .causal = true},
      {.q_len = 33, .k_len = 260, .bias = true, .bias_shares_batch = true, .bias_shares_head = true}};
  for (const AttentionCase& c : cases) {
    std::map<Isa, std::vector<float>> first;
    test::at_every_level([&](Team team) {
      AttentionProblem x(c);
      const Gradients g = gradients(team, x, random_array(x.o.size(), 7), false);
      std::vector<float> all;
      for (const Array<float>* a : {&g.dq, &g.dk, &g.dv, &g.dbias})
        all.insert(all.end(), a->data(), a->data() + a->size());
      const auto [at, is_new] = first.try_emplace(current_isa(), all);
      ASSERT_TRUE(at->second == all);
    });
  }
}

}  // namespace
}  // namespace rlx::cpu
