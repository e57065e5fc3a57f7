#include "rlx/backend/cpu/kernels/attention.h"

#include "tests/backend/cpu/attention_case.h"

namespace rlx::cpu {
namespace {

using test::Array, test::at, test::AttentionCase, test::AttentionProblem;

void check_problem(Team team, AttentionProblem& x) {
  const AttentionCase& c = x.c;
  SCOPED_TRACE(testing::Message() << c);
  const Attention p = x.parameters();
  Array<std::byte> workspace(int64_t(attention_workspace(p, team.threads())));
  attention(team, p, workspace.data());
  ASSERT_EQ(x.o[x.o.size() - 1], 77);
  for (int64_t b = 0; b < c.batch; ++b) {
    for (int64_t h = 0; h < c.q_heads; ++h) {
      for (int64_t i = 0; i < c.q_len; ++i) {
        const auto w = x.weights(b, h, i);
        std::vector<double> want(static_cast<size_t>(c.value_dim));
        for (int64_t j = 0; j < c.k_len; ++j) {
          for (int64_t d = 0; d < c.value_dim; ++d)
            want[size_t(d)] += w.p[size_t(j)] * double(x.v[at(x.vs, b, x.kv_head(h), j) + d]);
        }
        const float got_lse = x.lse[(b * c.q_heads + h) * c.q_len + i];
        if (w.lse == -INFINITY) {
          ASSERT_EQ(got_lse, -INFINITY);
        } else {
          ASSERT_NEAR(got_lse, w.lse, 1e-5 * (1 + std::abs(w.lse)));
        }
        // Scores of size up to 20 carry an error of 20 * dim * 2^-24 each, and the weights as much.
        for (int64_t d = 0; d < c.value_dim; ++d) {
          ASSERT_NEAR(x.o[at(x.os, b, h, i) + d], want[size_t(d)], 4e-5)
              << "b " << b << " h " << h << " i " << i << " d " << d;
        }
      }
    }
  }
}

void check_case(Team team, const AttentionCase& c) {
  AttentionProblem x(c);
  check_problem(team, x);
}

TEST(Attention, every_mask_and_combination_agrees_with_a_plain_loop) {
  test::at_every_level([](Team team) {
    for (int64_t q_len : {1, 7, 33, 40}) {
      for (int bits = 0; bits < 32; ++bits) {
        check_case(team, {.q_len = q_len,
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

TEST(Attention, odd_sizes_layouts_and_formats_agree_with_a_plain_loop) {
  test::at_every_level([](Team team) {
    for (int64_t dim : {1, 5, 24, 32, 64, 80, 96}) {
      for (KvFormat f : {KvFormat::f32, KvFormat::f16, KvFormat::bf16, KvFormat::q8_0}) {
        if (f == KvFormat::q8_0 && dim % 32 != 0) continue;
        check_case(team, {.q_len = 19,
                          .k_len = 19,
                          .head_dim = dim,
                          .value_dim = f == KvFormat::q8_0 ? dim + 32 : dim + 3,
                          .causal = true,
                          .format = f,
                          .packed = true});
        check_case(team, {.q_len = 1,
                          .k_len = 300,
                          .head_dim = dim,
                          .value_dim = dim,
                          .format = f,
                          .packed = dim % 2 == 0});
        check_case(team, {.q_heads = 8,
                          .kv_heads = 2,
                          .q_len = 3,
                          .k_len = 80,
                          .head_dim = dim,
                          .value_dim = dim,
                          .causal = true,
                          .format = f});
      }
    }
    check_case(team, {.q_len = 1, .k_len = 1});
    check_case(team, {.q_len = 70, .k_len = 1});
    check_case(team,
               {.q_heads = 3, .kv_heads = 3, .q_len = 150, .k_len = 400, .causal = true, .window = 100});
  });
}

// From so many heads on a thread packs each for itself.
TEST(Attention, many_heads_agree_with_a_plain_loop) {
  test::at_every_level([](Team team) {
    for (KvFormat f : {KvFormat::f32, KvFormat::bf16}) {
      for (const bool shared : {false, true}) {
        check_case(team, {.batch = 9,
                          .q_heads = 12,
                          .kv_heads = 6,
                          .q_len = 37,
                          .k_len = 41,
                          .causal = !shared,
                          .mask = shared,
                          .bias = true,
                          .format = f,
                          .packed = shared,
                          .bias_shares_head = shared,
                          .bias_shares_row = shared});
      }
    }
  });
}

TEST(Attention, a_bias_of_nan_gives_nan) {
  test::at_every_level([](Team team) {
    for (const int64_t q_len : {1, 33}) {
      AttentionProblem x({.q_len = q_len, .k_len = 53, .bias = true});
      for (int64_t j = 0; j < x.c.k_len; ++j) x.bias[j] = NAN;  // of the first query of the first head
      const Attention p = x.parameters();
      Array<std::byte> workspace(int64_t(attention_workspace(p, team.threads())));
      attention(team, p, workspace.data());
      for (int64_t d = 0; d < x.c.value_dim; ++d) ASSERT_TRUE(std::isnan(x.o[d])) << d;
      ASSERT_FALSE(std::isnan(x.o[at(x.os, 0, 1, 0)]));
    }
  });
}

TEST(Attention, every_number_of_heads_a_group_agrees_with_a_plain_loop_when_decoding) {
  test::at_every_level([](Team team) {
    for (int64_t group : {1, 2, 3, 4, 5, 7, 8, 16}) {
      check_case(team, {.q_heads = 2 * group, .q_len = 1, .k_len = 530, .head_dim = 64, .value_dim = 100});
    }
    for (int64_t queries : {2, 3, 4}) {
      check_case(team, {.q_len = queries, .k_len = 530, .head_dim = 64, .causal = true, .window = 270});
    }
  });
}

// Batches and guesses rely on it: the heads of a group, taken together, get what each gets alone.
TEST(Attention, a_row_has_the_bits_it_has_alone_when_decoding) {
  test::at_every_level([](Team team) {
    for (const KvFormat format : {KvFormat::f32, KvFormat::f16, KvFormat::bf16, KvFormat::q8_0}) {
      for (const int64_t group : {2, 3, 4, 7, 9}) {
        AttentionProblem x({.batch = 1,
                            .q_heads = group,
                            .kv_heads = 1,
                            .q_len = 1,
                            .k_len = 331,
                            .head_dim = 64,
                            .value_dim = 96,
                            .format = format});
        const Attention p = x.parameters();
        Array<std::byte> workspace(int64_t(attention_workspace(p, team.threads())));
        attention(team, p, workspace.data());
        Array<float> o(p.value_dim);
        for (int64_t h = 0; h < group; ++h) {
          Attention one = p;
          one.q_heads = 1;
          one.q += h * p.q_strides.head;
          one.o = o.data();
          one.lse = nullptr;
          attention(team, one, workspace.data());
          ASSERT_TRUE(std::equal(o.data(), o.data() + p.value_dim, p.o + h * p.o_strides.head))
              << "format " << int(format) << " head " << h << " of " << group;
        }
      }
    }
  });
}

TEST(Attention, every_format_agrees_with_a_plain_loop_when_decoding) {
  test::at_every_level([](Team team) {
    for (const KvFormat format : {KvFormat::f32, KvFormat::f16, KvFormat::bf16, KvFormat::q8_0}) {
      for (const int64_t group : {3, 4, 7}) {
        for (const int64_t dim : {32, 64, 160}) {
          check_case(team, {.q_heads = 2 * group,
                            .q_len = 1,
                            .k_len = 331,
                            .head_dim = dim,
                            .value_dim = 64,
                            .causal = true,
                            .format = format,
                            .packed = true});
        }
      }
    }
  });
}

// The log-sum-exp of one key is its score: within a few roundings to 24 bits of the largest number of each block.
TEST(Attention, scores_of_q8_0_keys_are_those_of_decoded_keys) {
  test::at_every_level([](Team team) {
    for (const int64_t group : {1, 2, 3, 4, 9}) {
      AttentionProblem x({.batch = 1,
                          .q_heads = group,
                          .kv_heads = 1,
                          .q_len = 1,
                          .k_len = 1,
                          .head_dim = 96,
                          .value_dim = 32,
                          .format = KvFormat::q8_0});
      for (int64_t i = 0; i < x.q.size(); i += 5) x.q[i] *= 1e-3f;  // small beside large
      for (int64_t i = 0; i < 32; ++i) x.q[i] *= 1e20f;
      for (int64_t i = 32; i < 64; ++i) x.q[i] *= 1e-25f;
      const Attention p = x.parameters();
      Array<std::byte> workspace(int64_t(attention_workspace(p, team.threads())));
      attention(team, p, workspace.data());
      for (int64_t h = 0; h < group; ++h) {
        double bound = 0;
        for (int64_t b = 0; b < 96; b += 32) {
          double top = 0, sum = 0;
          for (int64_t d = b; d < b + 32; ++d) {
            top = std::max(top, std::abs(double(x.q[at(x.qs, 0, h, 0) + d])));
            sum += std::abs(double(x.k[d]));
          }
          bound += 0.3 * top * sum;
        }
        ASSERT_NEAR(x.lse[h], x.score(0, h, 0, 0).value, 0x1p-22 * bound) << "head " << h << " of " << group;
      }
    }
  });
}

// Foreign blocks may have scales below zero, and a scale that is no number spoils its 32 lanes only.
TEST(Attention, q8_0_scales_of_every_kind_agree_with_a_plain_loop_when_decoding) {
  test::at_every_level([](Team team) {
    for (const int64_t group : {1, 4, 6}) {
      AttentionProblem x({.batch = 1,
                          .q_heads = 2 * group,
                          .q_len = 1,
                          .k_len = 203,
                          .head_dim = 64,
                          .value_dim = 96,
                          .format = KvFormat::q8_0,
                          .packed = group == 4});
      const auto turn_sign = [](Array<float>& decoded, std::vector<std::byte>& stored, int64_t block) {
        stored[size_t(block * 34 + 1)] ^= std::byte{0x80};
        for (int64_t i = 0; i < 32; ++i) decoded[block * 32 + i] *= -1;
      };
      for (int64_t block = 0; block < x.k.size() / 32; block += 7) turn_sign(x.k, x.stored_k, block);
      for (int64_t block = 100; block < x.v.size() / 32; block += 131) turn_sign(x.v, x.stored_v, block);
      check_problem(team, x);

      // Head 0, key 5, lanes 32 to 64 become infinite.
      const int64_t block = at(x.vs, 0, 0, 5) / 32 + 1;
      x.stored_v[size_t(block * 34)] = std::byte{0}, x.stored_v[size_t(block * 34 + 1)] = std::byte{0x7c};
      const Attention p = x.parameters();
      Array<std::byte> workspace(int64_t(attention_workspace(p, team.threads())));
      attention(team, p, workspace.data());
      for (int64_t h = 0; h < 2 * group; ++h) {
        for (int64_t d = 0; d < 96; ++d) {
          const bool spoilt = h < group && d / 32 == 1;
          ASSERT_EQ(std::isfinite(x.o[at(x.os, 0, h, 0) + d]), !spoilt) << "head " << h << " lane " << d;
        }
      }
    }
  });
}

TEST(Attention, a_query_with_nan_gives_nan_when_decoding_q8_0) {
  test::at_every_level([](Team team) {
    for (const float bad : {NAN, INFINITY}) {
      AttentionProblem x({.batch = 1, .q_len = 1, .head_dim = 32, .value_dim = 32, .format = KvFormat::q8_0});
      x.q[3] = bad;
      const Attention p = x.parameters();
      Array<std::byte> workspace(int64_t(attention_workspace(p, team.threads())));
      attention(team, p, workspace.data());
      for (int64_t d = 0; d < 32; ++d) {
        ASSERT_TRUE(std::isnan(x.o[d]));
        ASSERT_FALSE(std::isnan(x.o[32 + d]));
      }
    }
  });
}

TEST(Attention, more_queries_than_keys_leave_the_first_rows_empty) {
  test::at_every_level([](Team team) {
    check_case(team, {.q_len = 40, .k_len = 9, .causal = true});
    check_case(team, {.q_len = 3, .k_len = 2, .causal = true});
    check_case(team, {.q_len = 4, .k_len = 0});
    check_case(team, {.q_len = 40, .k_len = 0, .causal = true});
  });
}

}  // namespace
}  // namespace rlx::cpu
