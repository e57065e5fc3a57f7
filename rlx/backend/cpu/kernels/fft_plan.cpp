#include "rlx/backend/cpu/kernels/fft_plan.h"

#include <cmath>
#include <complex>
#include <numbers>

#include "rlx/backend/cpu/isa_table.h"
#include "rlx/backend/cpu/kernels/sizes.h"
#include "rlx/base/error.h"

namespace rlx::cpu {

RLX_ISA_TABLE(FftKernels, fft_kernels)

template <>
const FftKernelsOf<float>& fft_kernels_of<float>() {
  return fft_kernels().f32;
}
template <>
const FftKernelsOf<double>& fft_kernels_of<double>() {
  return fft_kernels().f64;
}

namespace {

using Wide = long double;
using Complex = std::complex<Wide>;

// e^(-2 pi i k / n) for 0 <= k < n. Angles are brought into the first eighth of the circle by whole numbers,
// so that the quarter points are exact and the values symmetric.
Complex root(int64_t k, int64_t n) {
  const int64_t eighths = 8 * k / n;
  Wide c, s;
  const auto angle = [&](int64_t numerator) {  // of numerator / (4 n) of a turn
    return Wide(numerator) / Wide(n) * (std::numbers::pi_v<Wide> / 2);
  };
  switch (eighths) {
    case 0:
      c = std::cos(angle(4 * k)), s = std::sin(angle(4 * k));
      break;
    case 1:
    case 2:
      c = -std::sin(angle(4 * k - n)), s = std::cos(angle(4 * k - n));
      break;
    case 3:
    case 4:
      c = -std::cos(angle(4 * k - 2 * n)), s = -std::sin(angle(4 * k - 2 * n));
      break;
    case 5:
    case 6:
      c = std::sin(angle(4 * k - 3 * n)), s = -std::cos(angle(4 * k - 3 * n));
      break;
    default:
      c = std::cos(angle(4 * k - 4 * n)), s = std::sin(angle(4 * k - 4 * n));
  }
  return {c, -s};
}

bool smooth(int64_t n) {
  for (int p = 2; p <= kMaxFftRadix; ++p) {
    while (n % p == 0) n /= p;
  }
  return n == 1;
}

// Odd primes first, then eights; what is left of the power of two becomes fours rather than a two. As many
// points as lanes are one pass, which the rows of a split length do in registers.
std::vector<int> radices(int64_t n, int lanes) {
  if (n == lanes) return {lanes};
  std::vector<int> out;
  int twos = 0;
  while (n % 2 == 0) n /= 2, ++twos;
  for (int p = 3; p <= kMaxFftRadix; p += 2) {
    while (n % p == 0) n /= p, out.push_back(p);
  }
  while (twos > 4 || twos == 3) out.push_back(8), twos -= 3;
  while (twos >= 2) out.push_back(4), twos -= 2;
  if (twos == 1) out.push_back(2);
  return out;
}

template <class T>
struct Factors {
  int lanes;
  std::vector<T> values{};

  void add(Complex z) { values.push_back(T(z.real())), values.push_back(T(z.imag())); }

  FftPasses passes(int64_t m) {
    FftPasses out{m, {}};
    int64_t inner = m, outer = 1;
    for (const int radix : radices(m, lanes)) {
      inner /= radix;
      FftStage s{.radix = radix, .inner = inner, .outer = outer, .twiddles = int64_t(values.size())};
      for (int64_t p = 0; p < inner; ++p) {
        for (int64_t k = 1; k < radix; ++k) add(root(p * k, inner * radix));
      }
      s.roots = int64_t(values.size());
      const int half = radix % 2 == 1 ? (radix - 1) / 2 : 0;
      for (int64_t j = 1; j <= half; ++j) {
        for (int64_t k = 1; k <= half; ++k) add(std::conj(root(j * k % radix, radix)));
      }
      outer *= radix;
      out.stages.push_back(s);
    }
    return out;
  }
};

template <class T>
AlignedBytes copied(const std::vector<T>& values) {
  AlignedBytes out = allocate_aligned(values.size() * sizeof(T));
  std::copy(values.begin(), values.end(), reinterpret_cast<T*>(out.get()));
  return out;
}

template <class T>
AlignedBytes split_parts(const std::vector<Complex>& z) {
  std::vector<T> values(2 * z.size());
  for (size_t i = 0; i < z.size(); ++i) values[i] = T(z[i].real()), values[z.size() + i] = T(z[i].imag());
  return copied(values);
}

// Vectors processed by both steps over the least possible; long steps leave L1, and rows of as many points as
// lanes save two sweeps.
double split_cost(int64_t m, int64_t b, int64_t lanes) {
  const double vectors = double(ceil_div(b, lanes) * m + ceil_div(m, lanes) * b);
  return vectors * double(lanes) / (2 * double(m) * double(b)) + double(std::max(m, b)) / 2048 -
         (b == lanes ? 0.05 : 0);
}

// Points up to which one row in each lane is the better way: 4 n vectors of working memory stay in L2.
constexpr int64_t kDirectPoints = 512;
// Below this splitting one row brings nothing.
constexpr int64_t kSplitPoints = 32;

template <class T>
void plan_smooth(int64_t n, FftFactors& f) {
  Factors<T> factors{f.lanes};
  int64_t best = 0;
  for (int64_t m = 2; m <= n / 2; ++m) {
    if (n % m == 0 && (best == 0 || split_cost(m, n / m, f.lanes) < split_cost(best, n / best, f.lanes)))
      best = m;
  }
  if (best != 0 && n >= kSplitPoints) {
    f.columns = factors.passes(best);
    f.rows = factors.passes(n / best);
    f.pitch =
        int64_t(ceil_div(n / best, 16) * 16 + 16);  // not a power of two, or rows meet in few cache sets
    std::vector<T> twist;
    for (int64_t first = 0; first < best; first += f.lanes) {
      for (int64_t b = 0; b < n / best; ++b) {
        for (int part = 0; part < 2; ++part) {
          for (int64_t c = first; c < first + f.lanes; ++c) {
            const Complex w = c < best ? root(b * c, n) : Complex(1);
            twist.push_back(T(part == 0 ? w.real() : w.imag()));
          }
        }
      }
    }
    f.twist = copied(twist);
  }
  if (n <= kDirectPoints || f.columns.m == 0 || split_cost(best, n / best, f.lanes) > 1.3)
    f.direct = factors.passes(n);
  f.factors = copied(factors.values);
}

int64_t chirp_length(int64_t n) {
  int64_t best = 0;
  for (const int64_t odd : {1, 3, 5, 9, 15}) {
    int64_t length = odd;
    while (length < 2 * n - 1) length *= 2;
    if (best == 0 || length < best) best = length;
  }
  return best;
}

template <class T>
void plan_chirp(int64_t n, DType dtype, FftFactors& f) {
  const int64_t length = chirp_length(n);
  f.inner = std::make_unique<FftPlan>(length, dtype);
  std::vector<Complex> w(static_cast<size_t>(n));
  for (int64_t k = 0; k < n; ++k) {
    const auto square = int64_t(__int128(k) * k % (2 * n));
    w[size_t(k)] = root(square, 2 * n);
  }
  f.chirp = split_parts<T>(w);
  std::vector<Complex> wrapped(static_cast<size_t>(length), Complex(0));
  for (int64_t k = 0; k < n; ++k) {
    wrapped[size_t(k)] = std::conj(w[size_t(k)]);
    if (k > 0) wrapped[size_t(length - k)] = std::conj(w[size_t(k)]);
  }
  f.kernel = split_parts<T>(wrapped);
  T* kernel = reinterpret_cast<T*>(f.kernel.get());
  Pool one(1);
  const Fft transform{.plan = f.inner.get(),
                      .scale = 1 / double(length),
                      .x_re = kernel,
                      .x_im = kernel + length,
                      .y_re = kernel,
                      .y_im = kernel + length};
  const AlignedBytes workspace = allocate_aligned(fft_workspace(transform, 1));
  fft(Team(one), transform, workspace.get());
}

template <class T>
void plan_real(int64_t n, DType dtype, FftFactors& f) {
  f.inner = std::make_unique<FftPlan>(n % 2 == 0 ? n / 2 : n, dtype);
  if (n % 2 != 0) return;
  std::vector<Complex> w;
  for (int64_t k = 0; k <= n / 2; ++k) w.push_back(root(k, n));
  f.halves = split_parts<T>(w);
}

template <class T>
void plan(int64_t n, DType dtype, FftKind kind, FftFactors& f) {
  f.lanes = fft_kernels_of<T>().lanes;
  if (kind == FftKind::real) {
    plan_real<T>(n, dtype, f);
  } else if (smooth(n)) {
    plan_smooth<T>(n, f);
  } else {
    plan_chirp<T>(n, dtype, f);
  }
}

}  // namespace

FftPlan::FftPlan(int64_t n, DType dtype, FftKind kind)
    : n_(n), dtype_(dtype), kind_(kind), factors_(std::make_unique<FftFactors>()) {
  if (n < 1) throw invalid("fft: length ", n, "; it must be 1 or more");
  if (dtype != DType::f32 && dtype != DType::f64)
    throw invalid("fft: parts of dtype ", dtype, "; they must be f32 or f64");
  if (dtype == DType::f32) {
    plan<float>(n, dtype, kind, *factors_);
  } else {
    plan<double>(n, dtype, kind, *factors_);
  }
}
FftPlan::~FftPlan() = default;
FftPlan::FftPlan(FftPlan&&) noexcept = default;
FftPlan& FftPlan::operator=(FftPlan&&) noexcept = default;

}  // namespace rlx::cpu
