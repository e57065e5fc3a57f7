// What an FftPlan holds: a length is done in one of three ways, chosen per call by the number of rows.
//
// direct  n = product of small radices: a vector's worth of rows at once, one row in each lane.
// split   n = m b: for one row, all b columns of [m, b] are transformed (lanes are columns), turned by
//         e^(-2 pi i column bin / n), then all m rows (lanes are rows). Both steps stay in the near caches.
// chirp   a prime factor above kMaxFftRadix: y[k] = w[k] sum of (x[j] w[j]) conj(w[k-j]), w[k] = e^(-pi i
//         k^2 / n), a convolution done by transforms of a longer, smooth length (Bluestein).
//
// Real signals of even length run as complex ones of half the length, others as complex ones.
#pragma once

#include "rlx/backend/cpu/kernels/fft.h"

namespace rlx::cpu {

inline constexpr int kMaxFftRadix = 31;

/// The passes of one transform and where their factors begin.
struct FftPasses {
  int64_t m = 0;
  std::vector<FftStage> stages;
};

struct FftFactors {
  int lanes = 0;
  FftPasses direct;                // m == 0: not done this way
  FftPasses columns, rows;         // split: m == 0: not done this way
  int64_t pitch = 0;               // between rows of the intermediate [m, b]
  AlignedBytes factors;            // twiddles and roots of all passes
  AlignedBytes twist;              // split: [block of rows][b][re, im of the lanes]
  std::unique_ptr<FftPlan> inner;  // chirp: the longer length; real: the half or whole length
  AlignedBytes chirp;              // w: re[n], im[n]
  AlignedBytes kernel;             // transform of the wrapped conj(w) / length: re[length], im[length]
  AlignedBytes halves;             // real, even: e^(-2 pi i k / n): re[n/2 + 1], im[n/2 + 1]
};

/// The kernels of the level in use for f32 or f64.
template <class T>
const FftKernelsOf<T>& fft_kernels_of();

}  // namespace rlx::cpu
