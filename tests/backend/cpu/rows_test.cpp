#include "rlx/backend/cpu/kernels/rows.h"

#include <cstring>

#include "tests/backend/cpu/support.h"

namespace rlx::cpu {
namespace {

using test::Array;
using test::random_array;

std::vector<std::byte> bytes(size_t n) { return std::vector<std::byte>(n + 64); }

struct Stats {
  double mean = 0, inverse = 0;
};
Stats stats(NormKind kind, const float* x, int64_t n, double epsilon) {
  Stats s;
  for (int64_t i = 0; i < n && kind == NormKind::layer; ++i) s.mean += double(x[i]) / double(n);
  double squares = 0;
  for (int64_t i = 0; i < n; ++i) squares += (double(x[i]) - s.mean) * (double(x[i]) - s.mean);
  s.inverse = 1 / std::sqrt(squares / double(n) + epsilon);
  return s;
}

TEST(Rows, norms_agree_with_a_plain_loop) {
  test::at_every_level([](Team team) {
    for (NormKind kind : {NormKind::layer, NormKind::rms}) {
      for (int64_t n : {1, 5, 16, 64, 67, 1000}) {
        for (int64_t rows : {0, 1, 3, 40}) {
          const int64_t stride = n + 3;
          const Array<float> x = random_array(rows * stride, 1, -2, 3, 1),
                             r = random_array(rows * stride, 2, -1, 1, 2);
          const Array<float> gamma = random_array(n, 3), beta = random_array(n, 4);
          Array<float> y(rows * stride + 1), sum(rows * stride + 1), mean(rows), inverse(rows);
          Norm p{.kind = kind,
                 .rows = rows,
                 .n = n,
                 .gamma_offset = 1,
                 .x = x.data(),
                 .x_stride = stride,
                 .residual = r.data(),
                 .sum = sum.data(),
                 .gamma = gamma.data(),
                 .beta = beta.data(),
                 .y = y.data(),
                 .y_stride = stride,
                 .mean = mean.data(),
                 .inverse_deviation = inverse.data()};
          norm(team, p);
          for (int64_t i = 0; i < rows; ++i) {
            std::vector<float> h(static_cast<size_t>(n));
            for (int64_t j = 0; j < n; ++j) h[size_t(j)] = x[i * stride + j] + r[i * stride + j];
            const Stats s = stats(kind, h.data(), n, 1e-5);
            ASSERT_NEAR(mean[i], s.mean, 1e-5);
            for (int64_t j = 0; j < n; ++j) {
              ASSERT_EQ(sum[i * stride + j], h[size_t(j)]);
              const double scale = n == 1 ? 400 : 1;  // one element: the deviation is all rounding
              ASSERT_NEAR(
                  y[i * stride + j],
                  (double(h[size_t(j)]) - s.mean) * s.inverse * (double(gamma[j]) + 1) + double(beta[j]),
                  2e-5 * scale);
            }
            ASSERT_EQ(y[i * stride + n], 0);
          }
        }
      }
    }
  });
}

// With the bits of a sum and a norm one after the other, wherever the results lie, also past the caches.
TEST(Rows, a_norm_of_a_sum_has_the_bits_of_two_passes) {
  for (const auto& [rows, n] : {std::pair<int64_t, int64_t>{7, 1}, {5, 67}, {9, 3000}, {1030, 4096}}) {
    const bool large = rows > 1000;
    const Array<float> x = random_array(rows * n, 1, -2, 3), r = random_array(rows * n, 2, -1, 1),
                       gamma = random_array(n, 3);
    Array<float> total(rows * n);
    for (int64_t i = 0; i < rows * n; ++i) total[i] = x[i] + r[i];
    test::at_every_level([&, rows = rows, n = n](Team team) {
      for (const NormKind kind : {NormKind::layer, NormKind::rms}) {
        if (large && kind == NormKind::layer) continue;
        SCOPED_TRACE(cat(rows, " x ", n));
        Array<float> y(rows * n);
        Norm p{.kind = kind, .rows = rows, .n = n, .x = total.data(), .x_stride = n, .gamma = gamma.data()};
        p.y = y.data();
        p.y_stride = n;
        norm(team, p);
        for (int place = 0; place < (large ? 1 : 5); ++place) {
          SCOPED_TRACE(cat("place ", place));
          Array<float> a = x, b = r, c(rows * n), d(rows * n);
          p.x = a.data();
          p.residual = b.data();
          Array<float>* const to[][2] = {{&c, &d}, {nullptr, &d}, {&a, &d}, {&b, &a}, {nullptr, &b}};
          const auto [s, z] = to[place];
          p.sum = s != nullptr ? s->data() : nullptr;
          p.y = z->data();
          norm(team, p);
          const size_t bytes = size_t(rows * n) * sizeof(float);
          EXPECT_TRUE(s == nullptr || std::memcmp(s->data(), total.data(), bytes) == 0);
          EXPECT_EQ(std::memcmp(z->data(), y.data(), bytes), 0);
        }
      }
    });
  }
}

TEST(Rows, norm_gradients_agree_with_the_formula_in_double) {
  test::at_every_level([](Team team) {
    for (NormKind kind : {NormKind::layer, NormKind::rms}) {
      for (auto [rows, n] : {std::pair<int64_t, int64_t>{1, 7}, {5, 33}, {300, 130}}) {
        const Array<float> x = random_array(rows * n, 5), dy = random_array(rows * n, 6),
                           gamma = random_array(n, 7);
        Array<float> dx(rows * n), dgamma(n), dbeta(n);
        NormBackward p{.kind = kind,
                       .rows = rows,
                       .n = n,
                       .x = x.data(),
                       .gamma = gamma.data(),
                       .dy = dy.data(),
                       .dx = dx.data(),
                       .dgamma = dgamma.data(),
                       .dbeta = dbeta.data()};
        auto workspace = bytes(norm_backward_workspace(p, team.threads()));
        norm_backward(team, p, workspace.data());
        std::vector<double> dg(static_cast<size_t>(n)), db(static_cast<size_t>(n));
        for (int64_t i = 0; i < rows; ++i) {
          const Stats s = stats(kind, x.data() + i * n, n, 1e-5);
          double mean_g = 0, mean_gh = 0;
          for (int64_t j = 0; j < n; ++j) {
            const double h = (double(x[i * n + j]) - s.mean) * s.inverse, d = double(dy[i * n + j]);
            dg[size_t(j)] += d * h;
            db[size_t(j)] += d;
            mean_g += d * double(gamma[j]) / double(n);
            mean_gh += d * double(gamma[j]) * h / double(n);
          }
          for (int64_t j = 0; j < n; ++j) {
            const double h = (double(x[i * n + j]) - s.mean) * s.inverse,
                         g = double(dy[i * n + j]) * double(gamma[j]);
            ASSERT_NEAR(dx[i * n + j], s.inverse * (g - (kind == NormKind::layer ? mean_g : 0) - h * mean_gh),
                        2e-5);
          }
        }
        test::expect_near(dgamma.data(), dg.data(), n, 3e-4, "dgamma");
        test::expect_near(dbeta.data(), db.data(), n, 3e-4, "dbeta");
      }
    }
  });
}

TEST(Rows, softmax_and_its_gradient_agree_with_a_plain_loop) {
  test::at_every_level([](Team team) {
    for (bool logarithm : {false, true}) {
      for (int64_t n : {1, 3, 16, 50, 257}) {
        const int64_t rows = 9;
        Array<float> x = random_array(rows * n, 8, -30, 30, 1);
        for (int64_t j = 0; j < n; ++j) x[4 * n + j] = -INFINITY;
        if (n > 1) x[5 * n] = -INFINITY;
        const Array<float> dy = random_array(rows * n, 9);
        Array<float> y(rows * n + 1), dx(rows * n);
        softmax(team, {.rows = rows,
                       .n = n,
                       .x = x.data(),
                       .x_stride = n,
                       .y = y.data(),
                       .y_stride = n,
                       .scale = 0.5f,
                       .logarithm = logarithm});
        softmax_backward(team, {.rows = rows,
                                .n = n,
                                .y = y.data(),
                                .dy = dy.data(),
                                .dx = dx.data(),
                                .scale = 0.5f,
                                .logarithm = logarithm});
        ASSERT_EQ(y[rows * n], 0);
        for (int64_t i = 0; i < rows; ++i) {
          if (i == 4) {
            for (int64_t j = 0; j < n; ++j) ASSERT_TRUE(std::isnan(y[i * n + j]));
            continue;
          }
          double top = -INFINITY, sum = 0, dot = 0;
          for (int64_t j = 0; j < n; ++j) top = std::max(top, 0.5 * double(x[i * n + j]));
          for (int64_t j = 0; j < n; ++j) sum += std::exp(0.5 * double(x[i * n + j]) - top);
          const auto p = [&](int64_t j) { return std::exp(0.5 * double(x[i * n + j]) - top) / sum; };
          for (int64_t j = 0; j < n; ++j) dot += double(dy[i * n + j]) * (logarithm ? 1 : p(j));
          for (int64_t j = 0; j < n; ++j) {
            const double want = logarithm ? 0.5 * double(x[i * n + j]) - top - std::log(sum) : p(j);
            if (std::isinf(want)) {
              ASSERT_EQ(y[i * n + j], -INFINITY);
            } else {
              ASSERT_NEAR(y[i * n + j], want, logarithm ? 2e-5 : 1e-6);
            }
            const double slope =
                logarithm ? double(dy[i * n + j]) - p(j) * dot : p(j) * (double(dy[i * n + j]) - dot);
            ASSERT_NEAR(dx[i * n + j], 0.5 * slope, 2e-5);
          }
        }
      }
    }
  });
}

// Masks of whole rows hold the lowest number; what is equal shares evenly.
TEST(Rows, softmax_of_equal_numbers_is_even_wherever_they_are) {
  test::at_every_level([](Team team) {
    for (const float value :
         {-3.4028235e38f, -2.5e38f, 3.4028235e38f, 1e37f, -1e20f, 3.6e9f, -3.7e9f, 123456.7f}) {
      for (const int64_t n : {1, 7, 50, 257}) {
        Array<float> x(2 * n), y(2 * n);
        for (int64_t i = 0; i < 2 * n; ++i) x[i] = value;
        Softmax s{
            .rows = 2, .n = n, .x = x.data(), .x_stride = n, .y = y.data(), .y_stride = n, .scale = 1.0f};
        softmax(team, s);
        for (int64_t i = 0; i < 2 * n; ++i) ASSERT_NEAR(y[i], 1.0 / double(n), 1e-6) << value << " " << n;
        s.logarithm = true;
        softmax(team, s);
        for (int64_t i = 0; i < 2 * n; ++i)
          ASSERT_NEAR(y[i], -std::log(double(n)), 1e-5) << value << " " << n;
      }
    }
  });
}

TEST(Rows, results_too_large_for_the_caches_have_the_same_bits) {
  Pool pool(2);
  const Isa before = current_isa();
  const int64_t rows = 4400, n = 1003, stride = 1008;  // 35 MB read and written
  const Array<float> x = random_array(rows * stride, 14, -3, 3), gamma = random_array(n, 15),
                     beta = random_array(n, 16);
  for (Isa isa : available_isas()) {
    if (isa == Isa::avx512vnni) continue;  // the same code as avx512
    use_isa(isa);
    Array<float> large(rows * stride), odd(rows * stride, 1);
    const auto expect_same = [&](const char* what) {
      for (int64_t i = 0; i < rows * stride; ++i) ASSERT_EQ(large[i], odd[i]) << what << " element " << i;
    };
    for (Array<float>* y : {&large, &odd}) {  // at an odd address nothing is streamed
      norm(pool, {.rows = rows,
                  .n = n,
                  .x = x.data(),
                  .x_stride = stride,
                  .gamma = gamma.data(),
                  .beta = beta.data(),
                  .y = y->data(),
                  .y_stride = stride});
    }
    expect_same("norm");
    for (Array<float>* y : {&large, &odd}) {
      softmax(pool,
              {.rows = rows, .n = n, .x = x.data(), .x_stride = stride, .y = y->data(), .y_stride = stride});
    }
    expect_same("softmax");
  }
  use_isa(before);
}

// What is sure costs next to nothing, however large the logits are, with a gradient and without.
TEST(Rows, cross_entropy_of_large_logits_is_exact) {
  test::at_every_level([](Team team) {
    const int64_t n = 20;
    const std::vector<float> tops = {77.7f, -77.7f, 1234.5f, 98765.4f, -98765.4f, 3.6e9f};
    const auto rows = int64_t(tops.size());
    Array<float> x(rows * n), loss(rows), plain(rows), dx(rows * n);
    const std::vector<int64_t> target(tops.size(), 3);
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t j = 0; j < n; ++j)
        x[i * n + j] = j == 3 ? tops[size_t(i)] : tops[size_t(i)] - float(9 + j);
    }
    CrossEntropy p{
        .rows = rows, .n = n, .x = x.data(), .target = target.data(), .loss = loss.data(), .dx = dx.data()};
    cross_entropy(team, p);
    p.dx = nullptr, p.loss = plain.data();
    cross_entropy(team, p);
    for (int64_t i = 0; i < rows; ++i) {
      double others = 0;
      for (int64_t j = 0; j < n; ++j)
        others += j == 3 ? 0 : std::exp(double(x[i * n + j]) - double(x[i * n + 3]));
      ASSERT_NEAR(plain[i], std::log1p(others), 2e-7) << tops[size_t(i)];
      ASSERT_NEAR(loss[i], std::log1p(others), 2e-7) << tops[size_t(i)];
      ASSERT_NEAR(dx[i * n + 3], 1 / (1 + others) - 1, 2e-7) << tops[size_t(i)];
    }
  });
}

TEST(Rows, cross_entropy_and_its_gradient_agree_with_a_plain_loop) {
  test::at_every_level([](Team team) {
    for (int64_t n : {1, 10, 300}) {
      const int64_t rows = 20;
      const Array<float> x = random_array(rows * n, 10, -5, 5), weight = random_array(rows, 11, 0, 2);
      Array<float> loss(rows), plain(rows), dx(rows * n);
      std::vector<int64_t> target(static_cast<size_t>(rows));
      for (int64_t i = 0; i < rows; ++i) target[size_t(i)] = i == 3 ? -100 : i * 7 % n;
      CrossEntropy p{.rows = rows,
                     .n = n,
                     .x = x.data(),
                     .target = target.data(),
                     .loss = loss.data(),
                     .dx = dx.data(),
                     .weight = weight.data()};
      cross_entropy(team, p);
      p.dx = nullptr, p.loss = plain.data();
      cross_entropy(team, p);
      for (int64_t i = 0; i < rows; ++i) {
        double sum = 0;
        for (int64_t j = 0; j < n; ++j) sum += std::exp(double(x[i * n + j]));
        const bool ignored = i == 3;
        const double want = ignored ? 0 : std::log(sum) - double(x[i * n + target[size_t(i)]]);
        ASSERT_NEAR(loss[i], want, 1e-5);
        ASSERT_NEAR(plain[i], want, 1e-5);
        for (int64_t j = 0; j < n; ++j) {
          const double q = std::exp(double(x[i * n + j])) / sum - (j == target[size_t(i)] ? 1 : 0);
          ASSERT_NEAR(dx[i * n + j], ignored ? 0 : q * double(weight[i]), 1e-6);
        }
      }
    }
  });
}

}  // namespace
}  // namespace rlx::cpu
