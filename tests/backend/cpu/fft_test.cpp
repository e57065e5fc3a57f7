#include "rlx/backend/cpu/kernels/fft.h"

#include <complex>
#include <cstring>
#include <map>
#include <numbers>

#include "rlx/base/error.h"
#include "tests/backend/cpu/support.h"

namespace rlx::cpu {
namespace {

using test::Array;
using Wide = std::complex<long double>;

template <class T>
constexpr DType kType = sizeof(T) == 4 ? DType::f32 : DType::f64;
template <class T>
constexpr double kEpsilon = sizeof(T) == 4 ? 0x1p-24 : 0x1p-53;

// Rounding errors of the passes add up like the root of their number; elements are allowed several times the
// root mean square, in units of the length of the input vector.
template <class T>
double tolerance(int64_t n, double norm) {
  return kEpsilon<T> * (4 + 3 * std::log2(double(n))) * norm;
}

Wide unit(int64_t k, int64_t n) {
  const long double angle = 2 * std::numbers::pi_v<long double> * (long double)(k % n) / (long double)(n);
  return {std::cos(angle), std::sin(angle)};
}

std::vector<Wide> plain_transform(const std::vector<Wide>& x, bool inverse) {
  const auto n = int64_t(x.size());
  std::vector<Wide> w, y;
  for (int64_t k = 0; k < n; ++k) w.push_back(inverse ? unit(k, n) : std::conj(unit(k, n)));
  for (int64_t k = 0; k < n; ++k) {
    Wide sum = 0;
    for (int64_t j = 0; j < n; ++j) sum += x[size_t(j)] * w[size_t(j * k % n)];
    y.push_back(sum);
  }
  return y;
}

double norm_of(const std::vector<Wide>& x) {
  long double s = 0;
  for (const Wide& z : x) s += std::norm(z);
  return double(std::sqrt(s));
}

// Where the parts of element i of row r lie.
struct Layout {
  int64_t im = 1, stride = 2, row = 0;
  int64_t size(int64_t rows, int64_t n) const { return im + (n - 1) * stride + (rows - 1) * row + 1; }
};
Layout interleaved(int64_t n) { return {1, 2, 2 * n + 2}; }
Layout apart(int64_t n) { return {n, 1, 2 * n + 1}; }
Layout columns(int64_t rows) { return {1, 2 * rows, 2}; }
Layout apart_columns(int64_t n, int64_t rows) { return {n * rows, rows, 1}; }
Layout wide(int64_t n) { return {1, 3, 3 * n + 5}; }

template <class T>
void put(Array<T>& a, const Layout& l, int64_t row, const std::vector<Wide>& x) {
  for (int64_t i = 0; i < int64_t(x.size()); ++i) {
    a[row * l.row + i * l.stride] = T(x[size_t(i)].real());
    a[row * l.row + i * l.stride + l.im] = T(x[size_t(i)].imag());
  }
}

template <class T>
void run(Team team, const FftPlan& plan, bool inverse, double scale, int64_t rows, const Array<T>& x,
         const Layout& xl, Array<T>& y, const Layout& yl) {
  const Fft p{.plan = &plan,
              .inverse = inverse,
              .scale = scale,
              .rows = rows,
              .x_re = x.data(),
              .x_im = x.data() + xl.im,
              .x_stride = xl.stride,
              .x_row_stride = xl.row,
              .y_re = y.data(),
              .y_im = y.data() + yl.im,
              .y_stride = yl.stride,
              .y_row_stride = yl.row};
  const AlignedBytes workspace = allocate_aligned(fft_workspace(p, team.threads()));
  fft(team, p, workspace.get());
}

// Inputs of the type's precision and their transforms, made once for all levels.
struct Case {
  std::vector<Wide> x, y;
};
template <class T>
const Case& sample(int64_t n, int64_t row, bool inverse) {
  static std::map<std::tuple<int64_t, int64_t, bool>, Case> made;
  Case& c = made[{n, row, inverse}];
  if (c.x.empty()) {
    const Array<float> values = test::random_array(2 * n, uint64_t(100 * n + row));
    for (int64_t i = 0; i < n; ++i) c.x.emplace_back(values[2 * i], values[2 * i + 1]);
    c.y = plain_transform(c.x, inverse);
  }
  return c;
}

template <class T>
void compare(const Array<T>& y, const Layout& l, int64_t row, const std::vector<Wide>& want, double scale,
             double bound) {
  for (int64_t k = 0; k < int64_t(want.size()); ++k) {
    const Wide w = want[size_t(k)] * (long double)(scale);
    ASSERT_NEAR(double(y[row * l.row + k * l.stride]), double(w.real()), bound)
        << "row " << row << " bin " << k;
    ASSERT_NEAR(double(y[row * l.row + k * l.stride + l.im]), double(w.imag()), bound)
        << "row " << row << " bin " << k;
  }
}

template <class T>
void check_lengths(Team team, std::initializer_list<int64_t> lengths, int64_t rows, bool inverse) {
  for (const int64_t n : lengths) {
    SCOPED_TRACE("n " + std::to_string(n) + ", rows " + std::to_string(rows));
    const FftPlan plan(n, kType<T>);
    const Layout l = interleaved(n);
    Array<T> x(l.size(rows, n), 1), y(l.size(rows, n), 1);
    for (int64_t r = 0; r < rows; ++r) put(x, l, r, sample<T>(n, r % 3, inverse).x);
    run(team, plan, inverse, 0.5, rows, x, l, y, l);
    for (int64_t r = 0; r < rows; ++r) {
      const Case& c = sample<T>(n, r % 3, inverse);
      compare(y, l, r, c.y, 0.5, 0.5 * tolerance<T>(n, norm_of(c.x)));
    }
  }
}

TEST(Fft, every_radix_agrees_with_the_plain_sum) {
  test::at_every_level([](Team team) {
    for (const bool inverse : {false, true}) {
      check_lengths<float>(team, {1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 13, 16, 17, 19, 23, 29, 31}, 19, inverse);
      check_lengths<double>(team, {1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 13, 16, 17, 19, 23, 29, 31}, 7, inverse);
    }
  });
}

TEST(Fft, composite_lengths_agree_with_the_plain_sum_for_one_and_many_rows) {
  test::at_every_level([](Team team) {
    for (const int64_t rows : {1, 17}) {
      check_lengths<float>(team, {12, 30, 32, 48, 64, 100, 105, 128, 169, 256}, rows, rows == 1);
      check_lengths<double>(team, {12, 30, 32, 48, 64, 100, 105, 128, 169, 256}, rows, rows != 1);
    }
  });
}

TEST(Fft, lengths_with_large_primes_agree_with_the_plain_sum) {
  test::at_every_level([](Team team) {
    for (const int64_t rows : {1, 4}) {
      check_lengths<float>(team, {37, 74, 127, 211}, rows, rows == 1);
      check_lengths<double>(team, {37, 74, 127, 211}, rows, rows != 1);
    }
  });
}

TEST(Fft, every_layout_gives_the_same_numbers) {
  test::at_every_level([](Team team) {
    for (const auto& [n, rows] : {std::pair<int64_t, int64_t>{15, 18}, {64, 3}, {144, 33}, {41, 3}}) {
      const FftPlan plan(n, DType::f32);
      const Layout layouts[] = {interleaved(n), apart(n), columns(rows), apart_columns(n, rows), wide(n)};
      for (const Layout& from : layouts) {
        for (const Layout& to : layouts) {
          Array<float> x(from.size(rows, n), 3), y(to.size(rows, n), 1);
          for (int64_t r = 0; r < rows; ++r) put(x, from, r, sample<float>(n, r % 3, false).x);
          run(team, plan, false, 1, rows, x, from, y, to);
          for (int64_t r = 0; r < rows; ++r) {
            const Case& c = sample<float>(n, r % 3, false);
            compare(y, to, r, c.y, 1, tolerance<float>(n, norm_of(c.x)));
          }
        }
      }
    }
  });
}

// A few impulses: their transform is a sum of as many terms.
TEST(Fft, long_transforms_of_impulses_agree_with_the_plain_sum) {
  test::at_every_level([](Team team) {
    for (const int64_t n : {1000, 1024, 4096, 10000, 15625, 65536, 2 * 4099}) {
      const FftPlan plan(n, DType::f32);
      const int64_t rows = n < 5000 ? 16 : 1;
      const Layout l{1, 2, 2 * n};
      Array<float> x(l.size(rows, n)), y(l.size(rows, n));
      const int64_t places[] = {1, n / 3, n - 2};
      for (int64_t r = 0; r < rows; ++r) {
        for (int64_t i = 0; i < 3; ++i) x[r * l.row + places[i] * 2] = float(i + 1) * 0.5f;
      }
      run(team, plan, false, 1, rows, x, l, y, l);
      for (const int64_t r : {int64_t(0), rows - 1}) {
        for (int64_t k = 0; k < n; k += n > 2000 ? 37 : 1) {
          Wide want = 0;
          for (int64_t i = 0; i < 3; ++i)
            want += std::conj(unit(places[i] * k, n)) * ((long double)(i + 1) / 2);
          ASSERT_NEAR(y[r * l.row + 2 * k], double(want.real()), tolerance<float>(n, 2)) << n << " " << k;
          ASSERT_NEAR(y[r * l.row + 2 * k + 1], double(want.imag()), tolerance<float>(n, 2)) << n << " " << k;
        }
      }
    }
  });
}

TEST(Fft, the_inverse_in_place_takes_a_transform_back) {
  test::at_every_level([](Team team) {
    for (const int64_t n : {24, 97, 1024, 4096}) {
      const int64_t rows = 5;
      const FftPlan plan(n, DType::f64);
      const Layout l = apart(n);
      Array<double> x(l.size(rows, n));
      const Array<float> values = test::random_array(x.size(), 77);
      for (int64_t i = 0; i < x.size(); ++i) x[i] = double(values[i]);
      Array<double> y = x;
      run(team, plan, false, 1, rows, y, l, y, l);
      run(team, plan, true, 1 / double(n), rows, y, l, y, l);
      test::expect_near(y.data(), x.data(), x.size(), 1e-14 * std::log2(double(n)), "round trip");
    }
  });
}

template <class T>
void check_real(Team team, int64_t n, int64_t rows, bool split) {
  SCOPED_TRACE("n " + std::to_string(n));
  const int64_t bins = n / 2 + 1;
  const FftPlan plan(n, kType<T>, FftKind::real);
  const Layout signal{0, 2, 2 * n + 1}, spectrum = split ? apart(bins) : interleaved(bins);
  Array<T> x(signal.size(rows, n), 1), y(spectrum.size(rows, bins), 1), back(signal.size(rows, n), 1);
  const Array<float> values = test::random_array(x.size(), uint64_t(n));
  std::vector<std::vector<Wide>> want;
  for (int64_t r = 0; r < rows; ++r) {
    std::vector<Wide> row;
    for (int64_t i = 0; i < n; ++i) {
      x[r * signal.row + 2 * i] = T(values[r * n + i]);
      row.emplace_back(values[r * n + i]);
    }
    want.push_back(plain_transform(row, false));
    want.back().resize(size_t(bins));
  }
  run(team, plan, false, 2, rows, x, signal, y, spectrum);
  const double bound = tolerance<T>(n, std::sqrt(double(n)));
  for (int64_t r = 0; r < rows; ++r) compare(y, spectrum, r, want[size_t(r)], 2, 2 * bound);
  // Parts that a real signal does not have are ignored.
  for (int64_t r = 0; r < rows; ++r) {
    y[r * spectrum.row + spectrum.im] = T(9);
    if (n % 2 == 0) y[r * spectrum.row + n / 2 * spectrum.stride + spectrum.im] = T(-9);
  }
  run(team, plan, true, 0.5 / double(n), rows, y, spectrum, back, signal);
  for (int64_t i = 0; i < x.size(); ++i) ASSERT_NEAR(double(back[i]), double(x[i]), bound) << i;
}

TEST(Fft, real_signals_agree_with_the_plain_sum_and_come_back) {
  test::at_every_level([](Team team) {
    for (const int64_t n : {1, 2, 3, 4, 7, 16, 30, 45, 64, 82, 97, 128, 200}) {
      check_real<float>(team, n, 3, false);
      check_real<double>(team, n, 2, true);
    }
  });
}

TEST(Fft, threads_do_not_change_bits_and_no_row_is_nothing) {
  Pool one(1), three(3);
  for (const int64_t n : {60, 1024, 97, 6000}) {
    const FftPlan plan(n, DType::f32);
    const Layout l = interleaved(n);
    for (const int64_t rows : {0, 1, 2, 50}) {
      Array<float> x = test::random_array(l.size(50, n), 5), a(l.size(50, n)), b(l.size(50, n));
      run(Team(one), plan, false, 1, rows, x, l, a, l);
      run(Team(three), plan, false, 1, rows, x, l, b, l);
      ASSERT_EQ(std::memcmp(a.data(), b.data(), size_t(a.size()) * 4), 0) << n << " rows " << rows;
      if (rows == 0) {
        ASSERT_EQ(a[0], 0);
      }
    }
  }
}

TEST(Fft, a_nan_stays_in_its_row) {
  test::at_every_level([](Team team) {
    for (const int64_t n : {30, 64}) {
      const FftPlan plan(n, DType::f32);
      const Layout l{1, 2, 2 * n};
      Array<float> x = test::random_array(l.size(20, n), 6), y(l.size(20, n));
      x[4 * l.row + 6] = NAN;
      run(team, plan, false, 1, 20, x, l, y, l);
      for (int64_t i = 0; i < y.size(); i += 2)
        ASSERT_EQ(std::isnan(y[i]) || std::isnan(y[i + 1]), i / l.row == 4) << i;
    }
  });
}

TEST(Fft, refuses_other_types_and_lengths) {
  EXPECT_THROW(FftPlan(0, DType::f32), Error);
  EXPECT_THROW(FftPlan(8, DType::c64), Error);
}

}  // namespace
}  // namespace rlx::cpu
