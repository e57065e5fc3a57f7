#include "rlx/backend/cpu/kernels/attention.h"

#include "rlx/base/float16.h"
#include "tests/backend/cpu/support.h"

namespace rlx::cpu {
namespace {

using test::Array;
using test::random_array;

struct Case {
  int64_t batch = 2, q_heads = 4, kv_heads = 2, q_len = 5, k_len = 9, head_dim = 16, value_dim = 16;
  bool causal = false, key_mask = false, mask = false, bias = false;
  int64_t window = -1;
  float softcap = 0;
  DType dtype = DType::f32;
  bool packed = false;  // [batch, length, heads, dim] instead of [batch, heads, length, dim]
};

HeadStrides strides(int64_t heads, int64_t length, int64_t dim, bool packed) {
  if (packed) return {length * heads * dim, dim, heads * dim};
  return {heads * length * dim, length * dim, dim};
}
int64_t at(const HeadStrides& s, int64_t b, int64_t h, int64_t i) {
  return b * s.batch + h * s.head + i * s.row;
}

// The values as kept in `dtype`, and the stored form.
std::vector<uint16_t> narrow(Array<float>& x, DType t) {
  std::vector<uint16_t> out(static_cast<size_t>(x.size()));
  for (int64_t i = 0; i < x.size() && t != DType::f32; ++i) {
    out[size_t(i)] = t == DType::f16 ? f32_to_f16(x[i]) : f32_to_bf16(x[i]);
    x[i] = t == DType::f16 ? f16_to_f32(out[size_t(i)]) : bf16_to_f32(out[size_t(i)]);
  }
  return out;
}

void check_case(Team team, const Case& c) {
  SCOPED_TRACE(testing::Message() << "q_len " << c.q_len << " k_len " << c.k_len << " dim " << c.head_dim
                                  << "/" << c.value_dim << " causal " << c.causal << " window " << c.window
                                  << " cap " << c.softcap << " masks " << c.key_mask << c.mask << " bias "
                                  << c.bias << " " << dtype_name(c.dtype));
  const HeadStrides qs = strides(c.q_heads, c.q_len, c.head_dim, c.packed),
                    ks = strides(c.kv_heads, c.k_len, c.head_dim, c.packed);
  const HeadStrides vs = strides(c.kv_heads, c.k_len, c.value_dim, c.packed),
                    os = strides(c.q_heads, c.q_len, c.value_dim, c.packed);
  const Array<float> q = random_array(c.batch * qs.batch, 1, -2, 2, 1);
  Array<float> k = random_array(c.batch * ks.batch, 2, -2, 2, 1),
               v = random_array(c.batch * vs.batch, 3, -1, 1, 3);
  const auto k16 = narrow(k, c.dtype), v16 = narrow(v, c.dtype);
  const HeadStrides full = {c.q_heads * c.q_len * c.k_len, c.q_len * c.k_len, c.k_len},
                    shared = {0, 0, c.k_len};
  const Array<float> bias = random_array(c.batch * full.batch, 4),
                     key_mask = random_array(c.batch * c.k_len, 5, 0, 1);
  Array<uint8_t> mask(c.q_len * c.k_len);
  for (int64_t i = 0; i < mask.size(); ++i) mask[i] = uint8_t(philox_block(6, 0, uint64_t(i))[0] % 3 != 0);
  Array<float> o(c.batch * os.batch + 1), lse(c.batch * c.q_heads * c.q_len);
  for (int64_t i = 0; i < o.size(); ++i) o[i] = 77;
  Attention p{.batch = c.batch,
              .q_heads = c.q_heads,
              .kv_heads = c.kv_heads,
              .q_len = c.q_len,
              .k_len = c.k_len,
              .head_dim = c.head_dim,
              .value_dim = c.value_dim,
              .scale = 0.3f,
              .softcap = c.softcap,
              .causal = c.causal,
              .window = c.window,
              .q = q.data(),
              .q_strides = qs,
              .kv_dtype = c.dtype,
              .k = c.dtype == DType::f32 ? static_cast<const void*>(k.data()) : k16.data(),
              .k_strides = ks,
              .v = c.dtype == DType::f32 ? static_cast<const void*>(v.data()) : v16.data(),
              .v_strides = vs,
              .o = o.data(),
              .o_strides = os,
              .lse = lse.data(),
              .key_mask = c.key_mask ? key_mask.data() : nullptr,
              .mask = c.mask ? mask.data() : nullptr,
              .mask_strides = shared,
              .bias = c.bias ? bias.data() : nullptr,
              .bias_strides = full};
  std::vector<std::byte> workspace(attention_workspace(p, team.threads()) + 64);
  attention(team, p,
            reinterpret_cast<std::byte*>((reinterpret_cast<uintptr_t>(workspace.data()) + 63) / 64 * 64));
  ASSERT_EQ(o[o.size() - 1], 77);
  for (int64_t b = 0; b < c.batch; ++b) {
    for (int64_t h = 0; h < c.q_heads; ++h) {
      for (int64_t i = 0; i < c.q_len; ++i) {
        const int64_t kv = h / (c.q_heads / c.kv_heads), position = c.k_len - c.q_len + i;
        std::vector<double> s(static_cast<size_t>(c.k_len), -INFINITY);
        double top = -INFINITY, total = 0;
        for (int64_t j = 0; j < c.k_len; ++j) {
          if (c.causal && j > position) continue;
          if (c.window >= 0 && j < position - c.window) continue;
          if (c.key_mask && key_mask[b * c.k_len + j] < 0.5f) continue;
          if (c.mask && !mask[i * c.k_len + j]) continue;
          double dot = 0;
          for (int64_t d = 0; d < c.head_dim; ++d)
            dot += double(q[at(qs, b, h, i) + d]) * double(k[at(ks, b, kv, j) + d]);
          dot *= double(0.3f);
          if (c.softcap > 0) dot = double(c.softcap) * std::tanh(dot / double(c.softcap));
          if (c.bias) dot += double(bias[at(full, b, h, i) + j]);
          s[size_t(j)] = dot;
          top = std::max(top, dot);
        }
        std::vector<double> want(static_cast<size_t>(c.value_dim));
        for (int64_t j = 0; j < c.k_len && top > -INFINITY; ++j) {
          const double e = std::exp(s[size_t(j)] - top);
          total += e;
          for (int64_t d = 0; d < c.value_dim; ++d) want[size_t(d)] += e * double(v[at(vs, b, kv, j) + d]);
        }
        const float got_lse = lse[(b * c.q_heads + h) * c.q_len + i];
        if (total == 0) {
          ASSERT_EQ(got_lse, -INFINITY);
        } else {
          ASSERT_NEAR(got_lse, top + std::log(total), 1e-5 * (1 + std::abs(top)));
        }
        // Scores of size up to 20 carry an error of 20 * dim * 2^-24 each, and the weights as much.
        for (int64_t d = 0; d < c.value_dim; ++d) {
          ASSERT_NEAR(o[at(os, b, h, i) + d], total == 0 ? 0 : want[size_t(d)] / total, 4e-5)
              << "b " << b << " h " << h << " i " << i << " d " << d;
        }
      }
    }
  }
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

TEST(Attention, odd_sizes_layouts_and_dtypes_agree_with_a_plain_loop) {
  test::at_every_level([](Team team) {
    for (int64_t dim : {1, 5, 24, 64, 80}) {
      for (DType t : {DType::f32, DType::f16, DType::bf16}) {
        check_case(team, {.q_len = 19,
                          .k_len = 19,
                          .head_dim = dim,
                          .value_dim = dim + 3,
                          .causal = true,
                          .dtype = t,
                          .packed = true});
        check_case(team, {.q_len = 1,
                          .k_len = 300,
                          .head_dim = dim,
                          .value_dim = dim,
                          .dtype = t,
                          .packed = dim % 2 == 0});
        check_case(team, {.q_heads = 8,
                          .kv_heads = 2,
                          .q_len = 3,
                          .k_len = 20,
                          .head_dim = dim,
                          .value_dim = dim,
                          .causal = true,
                          .dtype = t});
      }
    }
    check_case(team, {.q_len = 1, .k_len = 1});
    check_case(team, {.q_len = 70, .k_len = 1});
    check_case(team,
               {.q_heads = 3, .kv_heads = 3, .q_len = 150, .k_len = 400, .causal = true, .window = 100});
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
