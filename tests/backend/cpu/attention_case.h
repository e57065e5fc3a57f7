// Attention problems for the tests: random operands in any layout and storage, and the plain scores.
#pragma once

#include <cstring>

#include "rlx/backend/cpu/kernels/attention.h"
#include "rlx/base/float16.h"
#include "rlx/quant/linear32.h"
#include "tests/backend/cpu/support.h"

namespace rlx::cpu::test {

struct AttentionCase {
  int64_t batch = 2, q_heads = 4, kv_heads = 2, q_len = 5, k_len = 9, head_dim = 16, value_dim = 16;
  bool causal = false, key_mask = false, mask = false, bias = false;
  int64_t window = -1;
  float softcap = 0;
  KvFormat format = KvFormat::f32;
  bool packed = false;  // [batch, length, heads, dim] instead of [batch, heads, length, dim]
  bool bias_shares_batch = false, bias_shares_head = false, bias_shares_row = false;
};

inline std::ostream& operator<<(std::ostream& out, const AttentionCase& c) {
  return out << "heads " << c.q_heads << "/" << c.kv_heads << " q_len " << c.q_len << " k_len " << c.k_len
             << " dim " << c.head_dim << "/" << c.value_dim << " causal " << c.causal << " window "
             << c.window << " cap " << c.softcap << " masks " << c.key_mask << c.mask << " bias " << c.bias
             << c.bias_shares_batch << c.bias_shares_head << c.bias_shares_row << " format " << int(c.format)
             << " packed " << c.packed;
}

inline HeadStrides head_strides(int64_t heads, int64_t length, int64_t dim, bool packed) {
  if (packed) return {length * heads * dim, dim, heads * dim};
  return {heads * length * dim, length * dim, dim};
}
inline int64_t at(const HeadStrides& s, int64_t b, int64_t h, int64_t i) {
  return b * s.batch + h * s.head + i * s.row;
}

/// The stored form of x; x becomes what the stored form means.
inline std::vector<std::byte> store_as(Array<float>& x, KvFormat format) {
  std::vector<std::byte> out(size_t(x.size()) * 4);
  for (int64_t i = 0; i < x.size(); ++i) {
    uint16_t bits;
    if (format == KvFormat::f16) {
      bits = f32_to_f16(x[i]), x[i] = f16_to_f32(bits);
    } else {
      bits = f32_to_bf16(x[i]);
      if (format == KvFormat::bf16) x[i] = bf16_to_f32(bits);
    }
    std::memcpy(out.data() + 2 * i, &bits, 2);
  }
  if (format == KvFormat::q8_0) {
    quant::encode_q8_0(x.data(), out.data(), x.size());
    quant::decode_q8_0(out.data(), x.data(), x.size());
  }
  return out;
}

/// The operands of a case and the kernel's parameters over them; o and lse are written by the kernel.
struct AttentionProblem {
  AttentionCase c;
  HeadStrides qs, ks, vs, os, bias_strides;
  Array<float> q, k, v, bias, key_mask, o, lse;
  Array<uint8_t> mask;
  std::vector<std::byte> stored_k, stored_v;

  explicit AttentionProblem(const AttentionCase& c)
      : c(c),
        qs(head_strides(c.q_heads, c.q_len, c.head_dim, c.packed)),
        ks(head_strides(c.kv_heads, c.k_len, c.head_dim, c.packed)),
        vs(head_strides(c.kv_heads, c.k_len, c.value_dim, c.packed)),
        os(head_strides(c.q_heads, c.q_len, c.value_dim, c.packed)),
        q(random_array(c.batch * qs.batch, 1, -2, 2, 1)),
        k(random_array(c.batch * ks.batch, 2, -2, 2, 1)),
        v(random_array(c.batch * vs.batch, 3, -1, 1, 3)),
        bias(random_array(c.batch * c.q_heads * c.q_len * c.k_len, 4)),
        key_mask(random_array(c.batch * c.k_len, 5, 0, 1)),
        o(c.batch * os.batch + 1),
        lse(c.batch * c.q_heads * c.q_len),
        mask(c.q_len * c.k_len),
        stored_k(store_as(k, c.format)),
        stored_v(store_as(v, c.format)) {
    const int64_t rows = c.bias_shares_row ? 1 : c.q_len, heads = c.bias_shares_head ? 1 : c.q_heads;
    bias_strides = {c.bias_shares_batch ? 0 : heads * rows * c.k_len, heads == 1 ? 0 : rows * c.k_len,
                    c.bias_shares_row ? 0 : c.k_len};
    for (int64_t i = 0; i < mask.size(); ++i) mask[i] = uint8_t(philox_block(6, 0, uint64_t(i))[0] % 3 != 0);
    for (int64_t i = 0; i < o.size(); ++i) o[i] = 77;
  }

  Attention parameters() {
    const bool plain = c.format == KvFormat::f32;
    return {.batch = c.batch,
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
            .kv_format = c.format,
            .k = plain ? static_cast<const void*>(k.data()) : stored_k.data(),
            .k_strides = ks,
            .v = plain ? static_cast<const void*>(v.data()) : stored_v.data(),
            .v_strides = vs,
            .o = o.data(),
            .o_strides = os,
            .lse = lse.data(),
            .key_mask = c.key_mask ? key_mask.data() : nullptr,
            .mask = c.mask ? mask.data() : nullptr,
            .mask_strides = {0, 0, c.k_len},
            .bias = c.bias ? bias.data() : nullptr,
            .bias_strides = bias_strides};
  }

  int64_t kv_head(int64_t h) const { return h / (c.q_heads / c.kv_heads); }

  /// The score of one pair and its slope by the soft-cap; -inf where masked.
  struct Score {
    double value, slope;
  };
  Score score(int64_t b, int64_t h, int64_t i, int64_t j) const {
    const int64_t position = c.k_len - c.q_len + i;
    if ((c.causal && j > position) || (c.window >= 0 && j < position - c.window) ||
        (c.key_mask && key_mask[b * c.k_len + j] < 0.5f) || (c.mask && !mask[i * c.k_len + j])) {
      return {-INFINITY, 0};
    }
    double dot = 0, slope = 1;
    for (int64_t d = 0; d < c.head_dim; ++d)
      dot += double(q[at(qs, b, h, i) + d]) * double(k[at(ks, b, kv_head(h), j) + d]);
    dot *= double(0.3f);
    if (c.softcap > 0) {
      const double t = std::tanh(dot / double(c.softcap));
      dot = double(c.softcap) * t, slope = 1 - t * t;
    }
    if (c.bias) dot += double(bias[at(bias_strides, b, h, i) + j]);
    return {dot, slope};
  }

  /// Softmax of the scores of one query, zeros where it sees nothing, and its log-sum-exp.
  struct Weights {
    std::vector<double> p;
    std::vector<Score> scores;
    double lse;
  };
  Weights weights(int64_t b, int64_t h, int64_t i) const {
    Weights w{std::vector<double>(size_t(c.k_len)), std::vector<Score>(size_t(c.k_len)), -INFINITY};
    double top = -INFINITY, total = 0;
    for (int64_t j = 0; j < c.k_len; ++j) {
      w.scores[size_t(j)] = score(b, h, i, j);
      top = std::max(top, w.scores[size_t(j)].value);
    }
    if (top == -INFINITY) return w;
    for (size_t j = 0; j < w.p.size(); ++j) total += w.p[j] = std::exp(w.scores[j].value - top);
    for (double& x : w.p) x /= total;
    w.lse = top + std::log(total);
    return w;
  }
};

}  // namespace rlx::cpu::test
