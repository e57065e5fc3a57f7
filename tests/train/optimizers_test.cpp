// Every optimiser against its formula, written out again over plain numbers.
#include <gtest/gtest.h>

#include <cmath>

#include "rlx/lang/operators.h"
#include "rlx/train/trainer.h"
#include "tests/support/errors.h"

namespace rlx {
namespace {

using namespace train;
using Numbers = std::vector<double>;

constexpr int64_t kRows = 3, kColumns = 2, kSize = kRows * kColumns;
constexpr int kSteps = 12;
constexpr double kRate = 0.05;

// loss = sum c p + sum p^4 / 4, so that the gradient is c + p^3; c changes with every step.
Graph loss_graph(DType dtype) {
  Graph g("loss");
  const Tensor c = ir::Expr{&g, g.input("c", Shape(dtype, {kRows, kColumns}))};
  const Tensor p = ir::Expr{&g, g.param("p", Shape(dtype, {kRows, kColumns}))};
  g.set_outputs({(c * p + p * p * p * p * 0.25).sum()}, {"loss"});
  return g;
}

Numbers coefficients(int step) {
  Numbers out(kSize);
  for (int i = 0; i < kSize; ++i) out[size_t(i)] = std::sin(1.7 * i + 0.9 * step) + 0.1 * i;
  return out;
}
const Numbers kStart = {0.3, -0.4, 0.9, -1.1, 0.05, 0.7};

Numbers trained(const Optimizer& optimizer, const TrainOptions& base = {}) {
  TrainOptions options = base;
  options.optimizer = optimizer;
  options.rate = constant(kRate);
  const Shape shape(DType::f64, {kRows, kColumns});
  Trainer t(loss_graph(DType::f64), {{"p", Literal::reals(shape, kStart)}}, options);
  for (int s = 0; s < kSteps; ++s) {
    const Literal c = Literal::reals(shape, coefficients(s));
    t.step({{"c", view(c)}});
  }
  return t.weights().at("p").to_reals();
}

// step(t, i, p, g) gives the new p_i; t from 1.
template <class Step>
Numbers by_hand(Step step) {
  Numbers p = kStart;
  for (int t = 1; t <= kSteps; ++t) {
    const Numbers c = coefficients(t - 1);
    for (size_t i = 0; i < p.size(); ++i) p[i] = step(t, i, p[i], c[i] + p[i] * p[i] * p[i]);
  }
  return p;
}

void expect_near(const Numbers& got, const Numbers& want, double tolerance = 1e-12) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(got[i], want[i], tolerance) << "element " << i;
}

TEST(Optimizers, sgd_moves_against_the_gradient) {
  expect_near(trained(sgd()), by_hand([](int, size_t, double p, double g) { return p - kRate * g; }));
}

TEST(Optimizers, sgd_keeps_momentum_with_dampening_and_decay) {
  for (const bool nesterov : {false, true}) {
    for (const double dampening : {0.0, 0.3}) {
      Numbers b(kSize, 0);
      expect_near(
          trained(sgd({.momentum = 0.9, .dampening = dampening, .weight_decay = 0.02, .nesterov = nesterov})),
          by_hand([&](int t, size_t i, double p, double g) {
            g += 0.02 * p;
            b[i] = t == 1 ? g : 0.9 * b[i] + (1 - dampening) * g;
            return p - kRate * (nesterov ? g + 0.9 * b[i] : b[i]);
          }));
    }
  }
}

TEST(Optimizers, adam_and_adamw_differ_in_their_decay) {
  for (const bool amsgrad : {false, true}) {
    for (const bool decoupled : {false, true}) {
      Numbers m(kSize, 0), v(kSize, 0), largest(kSize, 0);
      const auto want = by_hand([&](int t, size_t i, double p, double g) {
        if (decoupled) p *= 1 - kRate * 0.1;
        if (!decoupled) g += 0.1 * p;
        m[i] = 0.8 * m[i] + 0.2 * g;
        v[i] = 0.95 * v[i] + 0.05 * g * g;
        largest[i] = std::max(largest[i], v[i]);
        const double spread =
            std::sqrt(amsgrad ? largest[i] : v[i]) / std::sqrt(1 - std::pow(0.95, t)) + 1e-8;
        return p - kRate / (1 - std::pow(0.8, t)) * m[i] / spread;
      });
      expect_near(
          trained(decoupled ? adamw({.beta1 = 0.8, .beta2 = 0.95, .weight_decay = 0.1, .amsgrad = amsgrad})
                            : adam({.beta1 = 0.8, .beta2 = 0.95, .weight_decay = 0.1, .amsgrad = amsgrad})),
          want);
    }
  }
}

TEST(Optimizers, adam_without_memory_follows_the_sign) {
  expect_near(trained(adam({.beta1 = 0, .beta2 = 0})),
              by_hand([](int, size_t, double p, double g) { return p - kRate * g / (std::fabs(g) + 1e-8); }));
}

TEST(Optimizers, nadam_looks_one_step_ahead) {
  Numbers m(kSize, 0), v(kSize, 0), products(kSize, 1);
  expect_near(trained(nadam({.weight_decay = 0.01})), by_hand([&](int t, size_t i, double p, double g) {
                g += 0.01 * p;
                const double now = 0.9 * (1 - 0.5 * std::pow(0.96, t * 4e-3));
                const double soon = 0.9 * (1 - 0.5 * std::pow(0.96, (t + 1) * 4e-3));
                products[i] *= now;
                m[i] = 0.9 * m[i] + 0.1 * g;
                v[i] = 0.999 * v[i] + 0.001 * g * g;
                const double spread = std::sqrt(v[i] / (1 - std::pow(0.999, t))) + 1e-8;
                return p - kRate * (1 - now) / (1 - products[i]) * g / spread -
                       kRate * soon / (1 - products[i] * soon) * m[i] / spread;
              }));
}

TEST(Optimizers, radam_waits_until_the_variance_is_known) {
  Numbers m(kSize, 0), v(kSize, 0);
  constexpr double kBeta2 = 0.9;
  int rectified = 0;
  const auto want = by_hand([&](int t, size_t i, double p, double g) {
    m[i] = 0.9 * m[i] + 0.1 * g;
    v[i] = kBeta2 * v[i] + (1 - kBeta2) * g * g;
    const double mean = m[i] / (1 - std::pow(0.9, t)), most = 2 / (1 - kBeta2) - 1;
    const double rho = most - 2 * t * std::pow(kBeta2, t) / (1 - std::pow(kBeta2, t));
    if (rho <= 5) return p - kRate * mean;
    ++rectified;
    const double r = std::sqrt((rho - 4) * (rho - 2) * most / ((most - 4) * (most - 2) * rho));
    return p - kRate * mean * r * std::sqrt(1 - std::pow(kBeta2, t)) / (std::sqrt(v[i]) + 1e-8);
  });
  EXPECT_GT(rectified, 0);
  EXPECT_LT(rectified, kSteps * kSize);
  expect_near(trained(radam({.beta2 = kBeta2})), want);
}

TEST(Optimizers, adamax_divides_by_the_largest_gradient) {
  Numbers m(kSize, 0), u(kSize, 0);
  expect_near(trained(adamax()), by_hand([&](int t, size_t i, double p, double g) {
                m[i] = 0.9 * m[i] + 0.1 * g;
                u[i] = std::max(0.999 * u[i], std::fabs(g) + 1e-8);
                return p - kRate / (1 - std::pow(0.9, t)) * m[i] / u[i];
              }));
}

TEST(Optimizers, rmsprop_is_centered_and_has_momentum_where_asked) {
  for (const bool centered : {false, true}) {
    for (const double momentum : {0.0, 0.9}) {
      Numbers v(kSize, 0), m(kSize, 0), b(kSize, 0);
      // eps keeps the root away from 0: after one step v - m^2 is small.
      expect_near(
          trained(rmsprop(
              {.alpha = 0.9, .eps = 1e-3, .momentum = momentum, .weight_decay = 0.01, .centered = centered})),
          by_hand([&](int, size_t i, double p, double g) {
            g += 0.01 * p;
            v[i] = 0.9 * v[i] + 0.1 * g * g;
            m[i] += 0.1 * (g - m[i]);
            const double d = g / (std::sqrt(centered ? v[i] - m[i] * m[i] : v[i]) + 1e-3);
            b[i] = momentum * b[i] + d;
            return p - kRate * b[i];
          }));
    }
  }
}

TEST(Optimizers, adagrad_sums_squares) {
  Numbers v(kSize, 0.1);
  expect_near(trained(adagrad({.lr_decay = 0.2, .initial_accumulator_value = 0.1, .weight_decay = 0.01})),
              by_hand([&](int t, size_t i, double p, double g) {
                g += 0.01 * p;
                v[i] += g * g;
                return p - kRate / (1 + (t - 1) * 0.2) * g / (std::sqrt(v[i]) + 1e-10);
              }));
}

TEST(Optimizers, adadelta_scales_by_what_was_moved) {
  Numbers v(kSize, 0), a(kSize, 0);
  expect_near(trained(adadelta()), by_hand([&](int, size_t i, double p, double g) {
                v[i] = 0.9 * v[i] + 0.1 * g * g;
                const double d = std::sqrt(a[i] + 1e-6) / std::sqrt(v[i] + 1e-6) * g;
                a[i] = 0.9 * a[i] + 0.1 * d * d;
                return p - kRate * d;
              }));
}

TEST(Optimizers, lion_takes_signs) {
  Numbers m(kSize, 0);
  expect_near(trained(lion({.weight_decay = 0.1})), by_hand([&](int, size_t i, double p, double g) {
                const double c = 0.9 * m[i] + 0.1 * g;
                m[i] = 0.99 * m[i] + 0.01 * g;
                return p - kRate * ((c > 0) - (c < 0) + 0.1 * p);
              }));
}

// x x^T for the three by two matrix, transposed to lie flat.
Numbers orthogonalised_by_hand(const Numbers& u) {
  double norm = 0;
  for (const double e : u) norm += e * e;
  norm = std::max(std::sqrt(norm), 1e-7);
  double x[2][3];
  for (int r = 0; r < 3; ++r)
    for (int c = 0; c < 2; ++c) x[c][r] = u[size_t(r * 2 + c)] / norm;
  for (int round = 0; round < 5; ++round) {
    double gram[2][2] = {}, poly[2][2] = {}, next[2][3] = {};
    for (int i = 0; i < 2; ++i)
      for (int j = 0; j < 2; ++j)
        for (int k = 0; k < 3; ++k) gram[i][j] += x[i][k] * x[j][k];
    for (int i = 0; i < 2; ++i)
      for (int j = 0; j < 2; ++j)
        poly[i][j] = -4.7750 * gram[i][j] + 2.0315 * (gram[i][0] * gram[0][j] + gram[i][1] * gram[1][j]);
    for (int i = 0; i < 2; ++i)
      for (int k = 0; k < 3; ++k) next[i][k] = 3.4445 * x[i][k] + poly[i][0] * x[0][k] + poly[i][1] * x[1][k];
    std::copy(&next[0][0], &next[0][0] + 6, &x[0][0]);
  }
  Numbers out(6);
  for (int r = 0; r < 3; ++r)
    for (int c = 0; c < 2; ++c) out[size_t(r * 2 + c)] = x[c][r];
  return out;
}

TEST(Optimizers, muon_moves_matrices_along_orthogonal_directions) {
  for (const bool nesterov : {false, true}) {
    for (const bool matched : {false, true}) {
      Numbers p = kStart, b(kSize, 0);
      for (int t = 0; t < kSteps; ++t) {
        const Numbers c = coefficients(t);
        Numbers u(kSize);
        for (size_t i = 0; i < kSize; ++i) {
          const double g = c[i] + p[i] * p[i] * p[i];
          b[i] += 0.05 * (g - b[i]);
          u[i] = nesterov ? g + 0.95 * (b[i] - g) : b[i];
        }
        const double factor = matched ? 0.2 * std::sqrt(3.0) : std::sqrt(1.5);
        const Numbers d = orthogonalised_by_hand(u);
        for (size_t i = 0; i < kSize; ++i) p[i] = p[i] * (1 - kRate * 0.1) - kRate * factor * d[i];
      }
      expect_near(trained(muon({.nesterov = nesterov, .match_rms_adamw = matched})), p, 1e-10);
    }
  }
}

double dot(const Numbers& a, const Numbers& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

// The two loops with a list that grows, on the same changing loss: some pairs have y.s < 0 and stay out.
Numbers lbfgs_by_hand(size_t most, int& refused) {
  Numbers p = kStart, before, d, moved;
  std::vector<Numbers> s, y;
  double scale = 1;
  for (int k = 1; k <= kSteps; ++k) {
    const Numbers c = coefficients(k - 1);
    Numbers g(kSize);
    for (size_t i = 0; i < kSize; ++i) g[i] = c[i] + p[i] * p[i] * p[i];
    double t = kRate;
    if (k == 1) {
      double size = 0;
      for (const double e : g) size += std::fabs(e);
      t = std::min(1.0, 1 / size) * kRate;
    } else {
      Numbers change(kSize);
      for (size_t i = 0; i < kSize; ++i) change[i] = g[i] - before[i];
      if (dot(change, moved) > 1e-10) {
        s.push_back(moved), y.push_back(change);
        if (s.size() > most) s.erase(s.begin()), y.erase(y.begin());
        scale = dot(change, moved) / dot(change, change);
      } else {
        ++refused;
      }
    }
    Numbers q(kSize), a(s.size());
    for (size_t i = 0; i < kSize; ++i) q[i] = -g[i];
    for (size_t j = s.size(); j-- > 0;) {
      a[j] = dot(s[j], q) / dot(y[j], s[j]);
      for (size_t i = 0; i < kSize; ++i) q[i] -= a[j] * y[j][i];
    }
    d = q;
    for (double& e : d) e *= scale;
    for (size_t j = 0; j < s.size(); ++j) {
      const double b = dot(y[j], d) / dot(y[j], s[j]);
      for (size_t i = 0; i < kSize; ++i) d[i] += s[j][i] * (a[j] - b);
    }
    moved = d;
    for (double& e : moved) e *= t;
    for (size_t i = 0; i < kSize; ++i) p[i] += moved[i];
    before = g;
  }
  return p;
}

TEST(Optimizers, lbfgs_keeps_the_last_pairs_and_refuses_bent_ones) {
  for (const int64_t history : {1, 3, 10}) {
    int refused = 0;
    const Numbers want = lbfgs_by_hand(size_t(history), refused);
    EXPECT_GT(refused, 0);
    expect_near(trained(lbfgs({.history_size = history})), want, 1e-9);
  }
}

TEST(Optimizers, are_found_by_name_with_their_settings) {
  for (const std::string& name : optimizer_names()) {
    const Optimizer o = optimizer_named(name);
    EXPECT_EQ(o.name, name);
    EXPECT_EQ(optimizer_named(name, o.settings).settings, o.settings);
  }
  EXPECT_EQ(optimizer_named("sgd", {{"nesterov", 1}}).settings.at("nesterov"), 1);
  EXPECT_EQ(
      test::message_of([] { optimizer_named("adan"); }),
      "optimizer: unknown optimizer 'adan'; did you mean 'adam'; known: adadelta, adagrad, adam, adamax, "
      "adamw, lbfgs, lion, muon, nadam, radam, rmsprop, sgd");
  EXPECT_EQ(test::message_of([] { optimizer_named("lion", {{"beta", 1}}); }),
            "optimizer: lion has no setting 'beta'; did you mean 'beta1'; it has beta1, beta2, weight_decay");
  EXPECT_EQ(test::message_of([] { optimizer_named("lbfgs", {{"history_size", 1.5}}); }),
            "optimizer: setting 'history_size' of lbfgs is 1.5; a whole number is needed");
}

TEST(Optimizers, refuse_settings_out_of_their_range) {
  const auto message = [](const char* name, const Settings& settings) {
    return test::message_of([&] { optimizer_named(name, settings); });
  };
  EXPECT_EQ(message("adam", {{"beta2", 1}}),
            "optimizer: setting 'beta2' of adam is 1.0; at least 0 and below 1 is needed");
  EXPECT_EQ(message("adadelta", {{"rho", 1.5}}),
            "optimizer: setting 'rho' of adadelta is 1.5; 0 to 1 is needed");
  EXPECT_EQ(message("adam", {{"amsgrad", 2}}),
            "optimizer: setting 'amsgrad' of adam is 2.0; 0 or 1 is needed");
  EXPECT_EQ(test::message_of([] { sgd({.momentum = -1}); }),
            "optimizer: setting 'momentum' of sgd is -1.0; at least 0 and finite is needed");
  for (const auto& [name, setting] :
       std::vector<std::pair<const char*, const char*>>{{"sgd", "weight_decay"},
                                                        {"adamw", "eps"},
                                                        {"radam", "beta1"},
                                                        {"nadam", "momentum_decay"},
                                                        {"rmsprop", "alpha"},
                                                        {"adagrad", "lr_decay"},
                                                        {"adagrad", "initial_accumulator_value"},
                                                        {"muon", "ns_steps"}})
    EXPECT_NE(message(name, {{setting, -1}}).find("is -1.0;"), std::string::npos) << name << " " << setting;
  EXPECT_NE(message("lion", {{"beta1", NAN}}), "no error");
  EXPECT_EQ(message("lbfgs", {{"history_size", 1e18}}),
            "optimizer: setting 'history_size' of lbfgs is 1e+18; 1 to 1000 is needed");
  EXPECT_EQ(message("lbfgs", {{"history_size", 1001}}),
            "optimizer: setting 'history_size' of lbfgs is 1001.0; 1 to 1000 is needed");
  EXPECT_EQ(test::message_of([] { lbfgs({.history_size = 0}); }),
            "optimizer: setting 'history_size' of lbfgs is 0.0; 1 to 1000 is needed");
  EXPECT_EQ(message("muon", {{"ns_steps", 101}}),
            "optimizer: setting 'ns_steps' of muon is 101.0; 0 to 100 is needed");
  EXPECT_EQ(message("muon", {{"ns_steps", -1e300}}),
            "optimizer: setting 'ns_steps' of muon is -1e+300; 0 to 100 is needed");
}

TEST(Optimizers, may_be_written_outside) {
  const Optimizer halve{"halve", {}, [](Update& u) {
                          for (Trained& p : u.trained()) {
                            const Tensor sum = u.state("sum", p) + p.gradient;
                            u.keep("sum", p, sum);
                            p.next = p.value - p.rate * 0.5 * sum;
                          }
                        }};
  Numbers sums(kSize, 0);
  expect_near(trained(halve), by_hand([&](int, size_t i, double p, double g) {
                sums[i] += g;
                return p - kRate * 0.5 * sums[i];
              }));
  const Optimizer forgetful{"forgetful", {}, [](Update&) {}};
  EXPECT_EQ(test::message_of([&] { trained(forgetful); }),
            "train: optimizer 'forgetful' gives no value for 'p', which is f64[3,2]");
}

}  // namespace
}  // namespace rlx
