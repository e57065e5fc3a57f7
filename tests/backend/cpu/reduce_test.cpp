#include "rlx/backend/cpu/kernels/reduce.h"

#include <limits>
#include <span>

#include "tests/backend/cpu/support.h"

namespace rlx::cpu {
namespace {

using test::Array;

constexpr Reduction kKinds[] = {Reduction::sum,      Reduction::mean,       Reduction::max,
                                Reduction::min,      Reduction::prod,       Reduction::sum_of_squares,
                                Reduction::variance, Reduction::log_sum_exp};

struct Case {
  std::vector<int64_t> size;
  std::vector<bool> reduced;
  std::vector<int64_t> stride = {};  // none: contiguous
};
// Rows, columns, every other axis, all and none; long enough to be sliced; strided, repeated, empty, scalar.
std::vector<Case> cases() {
  return {{{7, 133}, {false, true}},
          {{133, 7}, {true, false}},
          {{40, 70}, {true, false}},
          {{5, 6, 7}, {true, false, true}},
          {{5, 6, 70}, {false, true, false}},
          {{3, 4, 5, 66}, {true, false, true, false}},
          {{3, 1, 5}, {true, true, true}},
          {{4, 9}, {false, false}},
          {{200003}, {true}},
          {{2, 70000}, {false, true}},
          {{900, 130}, {true, false}},
          {{300, 3, 100}, {true, false, true}},
          {{20, 30}, {false, true}, {1, 20}},
          {{20, 30}, {true, false}, {1, 20}},
          {{6, 5}, {false, true}, {20, 3}},
          {{6, 5}, {true, false}, {20, 3}},
          {{4, 8, 3}, {false, true, false}, {3, 0, 1}},
          {{3, 0}, {false, true}},
          {{0, 3}, {false, true}},
          {{}, {}},
          {{1, 1}, {true, false}}};
}

template <class T>
T value(uint64_t i, Reduction kind) {
  const PhiloxBlock r = philox_block(3, 0, i);
  if constexpr (std::is_integral_v<T>) return sizeof(T) == 1 ? T(r[0] % 200) : T(uint64_t(r[0]) << 32 | r[1]);
  const double u = double(r[0]) * 0x1p-32;
  return T(kind == Reduction::prod ? 0.999 + 0.002 * u : 8 * u - 3);
}

// The definition, in long double or wrapping integers, element after element.
template <class T>
long double plain(Reduction kind, const std::vector<T>& v, double correction) {
  using Real = long double;
  const Real n = Real(v.size());
  Real sum = 0, squares = 0, product = 1, top = -INFINITY, low = INFINITY;
  for (T t : v) {
    const Real x = Real(t);
    sum += x, squares += x * x, product *= x, top = std::max(top, x), low = std::min(low, x);
  }
  Real spread = 0, exponentials = 0;
  for (T t : v) spread += (Real(t) - sum / n) * (Real(t) - sum / n), exponentials += std::exp(Real(t) - top);
  const Real results[] = {sum,
                          sum / n,
                          top,
                          low,
                          product,
                          squares,
                          spread / std::max(n - Real(correction), Real(0)),
                          v.empty() ? top : top + std::log(exponentials)};
  return results[size_t(kind)];
}
template <class T>
T plain_integer(Reduction kind, const std::vector<T>& v) {
  uint64_t sum = 0, product = 1;
  T top = std::numeric_limits<T>::lowest(), low = std::numeric_limits<T>::max();
  for (T t : v) {
    sum += uint64_t(int64_t(t)), product *= uint64_t(int64_t(t));
    top = std::max(top, t), low = std::min(low, t);
  }
  return kind == Reduction::sum    ? T(sum)
         : kind == Reduction::prod ? T(product)
         : kind == Reduction::max  ? top
                                   : low;
}

// One reduction with the results that its definition gives.
template <class T>
struct Prepared {
  Reduce p;
  Array<T> x;
  int shift;
  std::vector<T> exact;                 // of integers
  std::vector<double> want, tolerance;  // of floats
  int64_t results() const { return int64_t(exact.size() + want.size()); }
};

template <class T>
Prepared<T> prepare(const Case& c, Reduction kind, DType dtype, int shift) {
  Reduce p{.kind = kind, .dtype = dtype, .rank = int(c.size.size()), .correction = 0.5};
  int64_t span = 1, stride = 1, results = 1, elements = 1;
  for (int d = p.rank - 1; d >= 0; --d) {
    p.size[d] = c.size[size_t(d)];
    p.reduced[d] = c.reduced[size_t(d)];
    p.stride[d] = c.stride.empty() ? stride : c.stride[size_t(d)];
    stride *= p.size[d];
    span += std::max<int64_t>(0, p.size[d] - 1) * p.stride[d];
    elements *= p.size[d];
    if (!p.reduced[d]) results *= p.size[d];
  }
  Prepared<T> q{p, Array<T>(span, shift), shift, {}, {}, {}};
  for (int64_t i = 0; i < span; ++i) q.x[i] = value<T>(uint64_t(i), kind);
  std::vector<std::vector<T>> groups(static_cast<size_t>(results));
  for (int64_t i = 0; i < elements; ++i) {
    int64_t rest = i, at = 0, out = 0, out_stride = 1;
    for (int d = p.rank - 1; d >= 0; --d) {
      const int64_t k = rest % p.size[d];
      rest /= p.size[d];
      at += k * p.stride[d];
      if (!p.reduced[d]) out += k * out_stride, out_stride *= p.size[d];
    }
    groups[size_t(out)].push_back(q.x[at]);
  }
  for (const std::vector<T>& v : groups) {
    if constexpr (std::is_integral_v<T>) {
      q.exact.push_back(dtype == DType::bool_ ? T(plain_integer(kind, v) != 0) : plain_integer(kind, v));
    } else {
      const double want = double(plain(kind, v, 0.5));
      double size = 0;  // of what is summed
      for (T t : v) size += std::abs(double(t));
      if (kind == Reduction::mean) size /= double(v.size());
      if (kind != Reduction::sum && kind != Reduction::mean) size = std::abs(want);
      // f32 rounds at the end, and in its exponentials; the carries err by a rounding per step of a lane.
      q.want.push_back(want);
      q.tolerance.push_back(4 * std::numeric_limits<T>::epsilon() * std::abs(want) +
                            double(v.size() + 8) * 0x1p-53 * size);
    }
  }
  return q;
}

template <class T>
void check(Team team, const Prepared<T>& q) {
  SCOPED_TRACE(testing::Message() << "kind " << int(q.p.kind) << " dtype " << dtype_name(q.p.dtype)
                                  << " rank " << q.p.rank << " sizes " << q.p.size[0] << " " << q.p.size[1]);
  const int64_t results = q.results();
  Array<T> y(results + 1, q.shift);
  y[results] = 77;
  Reduce p = q.p;
  p.x = q.x.data(), p.y = y.data();
  std::vector<std::byte> workspace(reduce_workspace(p, team.threads()) + 1);
  reduce(team, p, workspace.data());
  ASSERT_EQ(y[results], 77);
  for (int64_t o = 0; o < results; ++o) {
    if constexpr (std::is_integral_v<T>) {
      ASSERT_EQ(y[o], q.exact[size_t(o)]);
    } else {
      const double want = q.want[size_t(o)];
      if ((std::isnan(want) && std::isnan(y[o])) || double(y[o]) == want) continue;
      ASSERT_NEAR(double(y[o]), want, q.tolerance[size_t(o)]);
    }
  }
}

template <class T>
void check_kinds(std::span<const Reduction> kinds, DType dtype, int shift) {
  std::vector<Prepared<T>> prepared;
  for (const Case& c : cases()) {
    for (Reduction kind : kinds) prepared.push_back(prepare<T>(c, kind, dtype, shift));
  }
  test::at_every_level([&](Team team) {
    for (const Prepared<T>& q : prepared) check(team, q);
  });
}

TEST(Reduce, every_kind_over_every_set_of_axes_agrees_with_a_plain_loop) {
  check_kinds<float>(kKinds, DType::f32, 1);
  check_kinds<double>(kKinds, DType::f64, 0);
  constexpr Reduction exact[] = {Reduction::max, Reduction::min, Reduction::sum, Reduction::prod};
  check_kinds<int32_t>(exact, DType::i32, 1);
  check_kinds<int64_t>(exact, DType::i64, 0);
  check_kinds<uint8_t>(std::span(exact).first(2), DType::u8, 1);
  check_kinds<uint8_t>(std::span(exact).first(2), DType::bool_, 0);
}

TEST(Reduce, nan_and_infinities_pass_as_they_should) {
  test::at_every_level([](Team team) {
    const auto one = [&](Reduction kind, Array<float>& x, int64_t inner) {
      Array<float> y(inner);
      Reduce p{.kind = kind,
               .rank = 2,
               .size = {x.size() / inner, inner},
               .stride = {inner, 1},
               .reduced = {true, false}};
      p.x = x.data(), p.y = y.data();
      std::vector<std::byte> workspace(reduce_workspace(p, team.threads()));
      reduce(team, p, workspace.data());
      return y[inner - 1];
    };
    for (int64_t inner : {1, 10}) {
      for (int64_t at : {0, 5, 39, 99}) {
        Array<float> x = test::random_array(100 * inner, 13);
        x[at * inner + inner - 1] = NAN;
        for (Reduction kind : kKinds) ASSERT_TRUE(std::isnan(one(kind, x, inner))) << int(kind) << " " << at;
        x[at * inner + inner - 1] = INFINITY;
        ASSERT_EQ(one(Reduction::log_sum_exp, x, inner), INFINITY);
        for (int64_t i = 0; i < x.size(); ++i) x[i] = -INFINITY;
        ASSERT_EQ(one(Reduction::log_sum_exp, x, inner), -INFINITY);
      }
    }
  });
}

TEST(Reduce, the_bits_do_not_depend_on_the_number_of_threads) {
  const Array<float> x = test::random_array(300 * 700, 5, -1000, 1000);
  Pool pools[] = {Pool(1), Pool(2), Pool(3)};
  for (std::vector<bool> reduced : {std::vector<bool>{true, true}, {true, false}, {false, true}}) {
    std::vector<std::vector<double>> seen;
    for (Pool& pool : pools) {
      std::vector<double> wide(300 * 700), y(700);
      for (size_t i = 0; i < wide.size(); ++i) wide[i] = double(x[int64_t(i)]) / 3;
      Reduce p{.kind = Reduction::sum,
               .dtype = DType::f64,
               .rank = 2,
               .size = {300, 700},
               .stride = {700, 1},
               .reduced = {reduced[0], reduced[1]}};
      p.x = wide.data(), p.y = y.data();
      std::vector<std::byte> workspace(reduce_workspace(p, Team(pool).threads()));
      reduce(pool, p, workspace.data());
      seen.push_back(y);
    }
    EXPECT_EQ(seen[0], seen[1]);
    EXPECT_EQ(seen[0], seen[2]);
  }
}

template <class T>
void check_positions(Team team, DType dtype) {
  for (auto [outer, n, inner] : {std::array<int64_t, 3>{1, 1, 1},
                                 {3, 7, 1},
                                 {2, 100, 1},
                                 {40, 1003, 1},
                                 {2, 5, 3},
                                 {3, 200, 70},
                                 {0, 4, 2},
                                 {2, 4, 0}}) {
    Array<T> x(outer * n * inner, 1);
    for (int64_t i = 0; i < x.size(); ++i) {
      const uint32_t r = philox_block(4, 0, uint64_t(i))[0];
      x[i] = T(int(r % 50) - 25);  // with ties
      if constexpr (std::is_floating_point_v<T>) {
        if (r % 211 == 0 && i % 3 == 0) x[i] = T(NAN);
      }
    }
    for (bool largest : {false, true}) {
      std::vector<int64_t> y(size_t(outer * inner) + 1, -7);
      arg_extreme(team, {.largest = largest,
                         .dtype = dtype,
                         .outer = outer,
                         .n = n,
                         .inner = inner,
                         .x = x.data(),
                         .y = y.data()});
      ASSERT_EQ(y.back(), -7);
      for (int64_t o = 0; o < outer; ++o) {
        for (int64_t i = 0; i < inner; ++i) {
          int64_t best = 0;
          const auto at = [&](int64_t j) { return x[(o * n + j) * inner + i]; };
          for (int64_t j = 1; j < n; ++j) {
            const bool nan = at(j) != at(j), had = at(best) != at(best);
            if (nan || had ? nan && !had : (largest ? at(j) > at(best) : at(j) < at(best))) best = j;
          }
          ASSERT_EQ(y[size_t(o * inner + i)], best)
              << "n " << n << " inner " << inner << " largest " << largest;
        }
      }
    }
  }
}

TEST(Reduce, positions_of_extremes_are_the_first_and_nan_wins) {
  test::at_every_level([](Team team) {
    check_positions<float>(team, DType::f32);
    check_positions<double>(team, DType::f64);
    check_positions<int32_t>(team, DType::i32);
    check_positions<int64_t>(team, DType::i64);
  });
}

}  // namespace
}  // namespace rlx::cpu
