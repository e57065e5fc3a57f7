// Rows of the public surface: attention and rotary positions, against a plain computation.
#include <cmath>

#include "tests/lang/rows.h"

namespace rlx {
namespace {

using namespace test;
using ops::MaskKind;

constexpr int64_t kBatch = 2, kQueries = 2, kKeys = 3, kHeads = 2, kDim = 2, kWidth = kHeads * kDim;
const Literal kQ = mixed({kBatch, kQueries, kWidth}, 1), kK = mixed({kBatch, kKeys, kWidth}, 2),
              kV = mixed({kBatch, kKeys, kWidth}, 3);

// score(b, h, i, j, s) maps the scaled product to the final score; -inf blocks.
template <class Score>
Literal plain_attention(double scale, Score score) {
  Literal out = Literal::zeros(Shape(DType::f64, {kBatch, kQueries, kWidth}));
  auto y = out.mutable_data<double>();
  for (int64_t b = 0; b < kBatch; ++b) {
    for (int64_t h = 0; h < kHeads; ++h) {
      for (int64_t i = 0; i < kQueries; ++i) {
        double weight[kKeys], total = 0;
        for (int64_t j = 0; j < kKeys; ++j) {
          double s = 0;
          for (int64_t d = 0; d < kDim; ++d)
            s += kQ.real_at((b * kQueries + i) * kWidth + h * kDim + d) *
                 kK.real_at((b * kKeys + j) * kWidth + h * kDim + d);
          total += weight[j] = std::exp(score(b, h, i, j, s * scale));
        }
        for (int64_t j = 0; j < kKeys; ++j) {
          for (int64_t d = 0; d < kDim && total > 0; ++d)
            y[size_t((b * kQueries + i) * kWidth + h * kDim + d)] +=
                weight[j] / total * kV.real_at((b * kKeys + j) * kWidth + h * kDim + d);
        }
      }
    }
  }
  return out;
}
const double kScale = 1 / std::sqrt(double(kDim));
constexpr double kBlocked = -INFINITY;
const Literal kMask = f64({kBatch, kKeys}, {1, 0, 1, 0, 1, 1});
double masked(int64_t b, int64_t, int64_t, int64_t j, double s) {
  return kMask.real_at(b * kKeys + j) < 0.5 ? kBlocked : s;
}
// The last query sees the last key.
double causal(int64_t, int64_t, int64_t i, int64_t j, double s) {
  return j > i + kKeys - kQueries ? kBlocked : s;
}

TEST(GraphRow, attention) {
  expect_row(
      {kQ, kK, kV, kMask},
      [](Graph& g, const Values& v) { return g.attention(v[0], v[1], v[2], v[3], kHeads, kDim); },
      plain_attention(kScale, masked), 1e-12);
}
TEST(GraphRow, attention_) {
  expect_row(
      {kQ, kK, kV},
      [](Graph& g, const Values& v) { return g.attention_(v[0], v[1], v[2], {}, kHeads, kDim); },
      plain_attention(kScale, [](auto, auto, auto, auto, double s) { return s; }), 1e-12);
}
TEST(GraphRow, attention_opts) {
  // Scale, then soft-cap, then mask.
  expect_row(
      {kQ, kK, kV, kMask},
      [](Graph& g, const Values& v) {
        return g.attention_opts(v[0], v[1], v[2], v[3], kHeads, kDim, 0.3, 0.5);
      },
      plain_attention(0.3, [](int64_t b, int64_t h, int64_t i, int64_t j,
                              double s) { return masked(b, h, i, j, 0.5 * std::tanh(s / 0.5)); }),
      1e-12);
}
TEST(GraphRow, attention_kind) {
  expect_row(
      {kQ, kK, kV},
      [](Graph& g, const Values& v) {
        return g.attention_kind(v[0], v[1], v[2], kHeads, kDim, MaskKind::causal);
      },
      plain_attention(kScale, causal), 1e-12);
  // A window of w sees w + 1 keys.
  expect_row(
      {kQ, kK, kV},
      [](Graph& g, const Values& v) {
        return g.attention_kind(v[0], v[1], v[2], kHeads, kDim, MaskKind::sliding_window, 1);
      },
      plain_attention(kScale,
                      [](int64_t b, int64_t h, int64_t i, int64_t j, double s) {
                        return j < i + kKeys - kQueries - 1 ? kBlocked : causal(b, h, i, j, s);
                      }),
      1e-12);
}
TEST(GraphRow, attention_kind_opts) {
  expect_row(
      {kQ, kK, kV},
      [](Graph& g, const Values& v) {
        return g.attention_kind_opts(v[0], v[1], v[2], kHeads, kDim, MaskKind::causal, 0.7);
      },
      plain_attention(0.7, causal), 1e-12);
}
TEST(GraphRow, attention_bias) {
  const Literal bias = mixed({kBatch, kHeads, kQueries, kKeys}, 4);
  expect_row(
      {kQ, kK, kV, bias},
      [](Graph& g, const Values& v) { return g.attention_bias(v[0], v[1], v[2], v[3], kHeads, kDim); },
      plain_attention(kScale,
                      [&](int64_t b, int64_t h, int64_t i, int64_t j, double s) {
                        return s + bias.real_at(((b * kHeads + h) * kQueries + i) * kKeys + j);
                      }),
      1e-12);
}

// Position 0 turns by nothing, position 1 by a quarter: (a, b) becomes (-b, a).
const Literal kCos = f64({2, 1}, {1, 0}), kSin = f64({2, 1}, {0, 1});
TEST(GraphRow, rope) {
  expect_row(
      {f64({1, 2, 2}, {1, 2, 3, 4}), kCos, kSin},
      [](Graph& g, const Values& v) { return g.rope(v[0], v[1], v[2], 2); }, f64({1, 2, 2}, {1, 2, -4, 3}));
}
TEST(GraphRow, rope_n) {
  // Of four lanes two are turned, the others pass.
  expect_row(
      {f64({1, 2, 4}, {1, 2, 5, 6, 3, 4, 7, 8}), f64({2, 2}, {1, 1, 0, 0}), f64({2, 2}, {0, 0, 1, 1})},
      [](Graph& g, const Values& v) { return g.rope_n(v[0], v[1], v[2], 4, 2); },
      f64({1, 2, 4}, {1, 2, 5, 6, -4, 3, 7, 8}));
}
TEST(GraphRow, rope_backward) {
  // The gradient turns back: (c, d) becomes (d, -c).
  expect_row(
      {f64({1, 2, 2}, {1, 2, 3, 4}), kCos, kSin},
      [](Graph& g, const Values& v) { return g.rope_backward(v[0], v[1], v[2], 2, 2); },
      f64({1, 2, 2}, {1, 2, 4, -3}));
}
TEST(GraphRow, axial_rope2d) {
  // The grid's first cell has position (0, 0): it is not turned; rotation keeps lengths everywhere.
  const Literal x = mixed({1, 4, 4}, 5), y = run({x}, [](Graph& g, const Values& v) {
                                           return g.axial_rope2d(v[0], 2, 2, 4, 1, 10000);
                                         })[0];
  double before = 0, after = 0;
  for (int64_t i = 0; i < 4; ++i) EXPECT_NEAR(y.real_at(i), x.real_at(i), 1e-12);
  for (int64_t i = 12; i < 16; ++i)
    before += x.real_at(i) * x.real_at(i), after += y.real_at(i) * y.real_at(i);
  EXPECT_NEAR(before, after, 1e-12);
  EXPECT_GT(std::fabs(y.real_at(12) - x.real_at(12)), 1e-3);
}

TEST(GraphRow, attention_backward) {
  const Literal dy = mixed({kBatch, kQueries, kWidth}, 6);
  const auto forward = [](Graph& g, const Values& v) {
    return g.attention_kind(v[0], v[1], v[2], kHeads, kDim, MaskKind::causal);
  };
  expect_row(
      {kQ, kK, kV, dy},
      [](Graph& g, const Values& v) {
        return g.attention_backward(ops::AttentionWrt::key, v[0], v[1], v[2], v[3], kHeads, kDim,
                                    MaskKind::causal);
      },
      difference_gradient({kQ, kK, kV}, 1, dy, forward), 1e-8);
}
TEST(GraphRow, attention_backward_all) {
  const Literal dy = mixed({kBatch, kQueries, kWidth}, 6);
  const auto forward = [](Graph& g, const Values& v) {
    return g.attention(v[0], v[1], v[2], v[3], kHeads, kDim);
  };
  const Literals out = run({kQ, kK, kV, dy, kMask}, [](Graph& g, const Values& v) {
    return g.attention_backward_all(v[0], v[1], v[2], v[3], kHeads, kDim, MaskKind::custom, v[4]);
  });
  ASSERT_EQ(out.size(), 3u);
  for (size_t k = 0; k < 3; ++k)
    expect_close(out[k], difference_gradient({kQ, kK, kV, kMask}, k, dy, forward), 1e-8);
}

}  // namespace
}  // namespace rlx
