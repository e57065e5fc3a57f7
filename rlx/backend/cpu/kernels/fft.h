// Discrete Fourier transforms of any length, of many rows, in f32 and f64, complex and real.
//
//   y[k] = scale * sum over j < n of x[j] e^(-2 pi i j k / n),   + in the exponent for the inverse
//
// A plan holds the factorisation and the twiddle factors of one length; it is made once, at the level then in
// use, and serves any number of rows, layouts and threads. Complex numbers are given as two pointers with a
// common stride, so interleaved (im = re + 1, stride 2), split (stride 1) and strided axes are one case.
// Results do not depend on the number of threads. A NaN or infinity spreads over its row only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "rlx/backend/cpu/kernels/gemm.h"
#include "rlx/base/dtype.h"
#include "rlx/base/pool.h"

namespace rlx::cpu {

enum class FftKind : uint8_t {
  complex,  // n numbers to n numbers
  real,     // forward: n reals to bins 0 .. n/2; inverse: these bins to n reals. The imaginary parts of bin 0
            // and, for even n, of bin n/2, which a real signal does not have, are ignored
};

struct FftFactors;

class FftPlan {
 public:
  /// dtype: f32 or f64, of the real and imaginary parts; n >= 1.
  FftPlan(int64_t n, DType dtype, FftKind kind = FftKind::complex);
  ~FftPlan();
  FftPlan(FftPlan&&) noexcept;
  FftPlan& operator=(FftPlan&&) noexcept;

  int64_t n() const { return n_; }
  DType dtype() const { return dtype_; }
  FftKind kind() const { return kind_; }
  const FftFactors& factors() const { return *factors_; }

 private:
  int64_t n_;
  DType dtype_;
  FftKind kind_;
  std::unique_ptr<FftFactors> factors_;
};

/// Strides in real elements (so 2 between neighbours of an interleaved array). The output may be the input
/// when both have the same layout.
struct Fft {
  const FftPlan* plan = nullptr;
  bool inverse = false;
  double scale = 1;
  int64_t rows = 1;
  const void* x_re = nullptr;
  const void* x_im = nullptr;  // null: zeros; not read for the forward transform of a real plan
  int64_t x_stride = 1, x_row_stride = 0;
  void* y_re = nullptr;
  void* y_im = nullptr;  // null to drop it; not written by the inverse transform of a real plan
  int64_t y_stride = 1, y_row_stride = 0;
  bool alone = false;  // each row is done in the way of a single one, however many there are
};
size_t fft_workspace(const Fft&, int threads);
void fft(Team, const Fft&, std::byte* workspace);

// ---- what a level provides ----

/// One pass over m points: m = step * radix * inner.
struct FftStage {
  int radix = 1;
  int64_t inner = 1;     // points of the transforms that remain after this pass
  int64_t outer = 1;     // product of the radices of the passes before
  int64_t twiddles = 0;  // offset of [inner][radix - 1] complex factors
  int64_t roots = 0;     // offset of cos and sin of 2 pi j k / radix, j, k <= (radix - 1) / 2, odd radices
};

/// `lanes` transforms of m points side by side, one in each lane of the vectors. Element a of lane l lies at
/// a * step + l * lane.
template <class T>
struct FftBlock {
  int64_t m = 0;
  const FftStage* stages = nullptr;
  int stage_count = 0;
  const T* factors = nullptr;
  int lanes = 0;
  const T* x_re = nullptr;
  const T* x_im = nullptr;
  int64_t x_step = 0, x_lane = 0;
  T* y_re = nullptr;
  T* y_im = nullptr;
  int64_t y_step = 0, y_lane = 0;
  const T* twist = nullptr;  // multiplied in first: [m][re of all lanes, im of all lanes]; null for none
  bool swap_in = false;   // exchange real and imaginary parts: an inverse transform is a forward one between
  bool swap_out = false;  // two exchanges
  T scale = 1;
  T* work = nullptr;  // 4 m vectors
};

/// The two ends of a transform of 2h reals by h complex points; w[k] = e^(-pi i k / h), re and im apart.
template <class T>
struct FftHalves {
  int64_t h = 0;
  const T *w_re = nullptr, *w_im = nullptr;
  const T *x_re = nullptr, *x_im = nullptr;
  int64_t x_stride = 1;
  T *y_re = nullptr, *y_im = nullptr;
  int64_t y_stride = 1;
};

template <class T>
struct FftKernelsOf {
  int lanes = 0;
  void (*block)(const FftBlock<T>&) = nullptr;
  /// h points of the packed signal, split with stride 1, to h + 1 bins.
  void (*unpack)(const FftHalves<T>&) = nullptr;
  /// h + 1 bins to h points, split with stride 1, whose inverse transform is the packed signal.
  void (*pack)(const FftHalves<T>&) = nullptr;
  /// y = a * b, complex, all split with stride 1; y may be a.
  void (*multiply)(const T* a_re, const T* a_im, const T* b_re, const T* b_im, int64_t n, T* y_re,
                   T* y_im) = nullptr;
};
struct FftKernels {
  FftKernelsOf<float> f32;
  FftKernelsOf<double> f64;
};

}  // namespace rlx::cpu
