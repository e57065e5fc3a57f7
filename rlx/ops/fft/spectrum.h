// Spectra of real signals, and what is built from them. Signals lie on the last axis; a spectrum is a pair of
// real tensors. Transforms that pad do so with zeros at the end, to the next power of two.
#pragma once

#include "rlx/ops/fft/fft.h"

namespace rlx::ops {

struct Spectrum {
  Expr re, im;
};

/// The smallest power of two that is not below a static extent; a symbolic one is refused.
Dim next_pow2(Dim n);
Expr pad_last_axis_to_pow2(Expr x);

/// The two halves of the last axis of a real tensor that holds real, then imaginary parts.
Spectrum split_spectrum(Expr x);

/// All N bins of a real signal padded to N, a power of two.
Spectrum fft_real(Expr x, FftNorm norm = FftNorm::backward);
/// The same for a batch of signals, [.., n].
Spectrum fft_batch_real(Expr x, FftNorm norm = FftNorm::backward);

/// Bins 0 .. N/2 of a real signal padded to N, a power of two.
Spectrum rfft(Expr x, FftNorm norm = FftNorm::backward);
/// Bins 0 .. floor(n/2) of a real signal of any length n, not padded.
Spectrum rfft_exact(Expr x, FftNorm norm = FftNorm::backward);

/// The first n samples of the real signal of N = next_pow2(n) samples whose bins 0 .. N/2 are given. The
/// imaginary parts of bins 0 and N/2, which a real signal does not have, are ignored.
Expr irfft(Expr re_half, Expr im_half, int64_t n, FftNorm norm = FftNorm::backward);
/// The real signal of n samples, any n, whose bins 0 .. floor(n/2) are given.
Expr irfft_exact(Expr re_half, Expr im_half, int64_t n, FftNorm norm = FftNorm::backward);

/// rfft of frames x[.., f * hop + i], i < frame_len: [frames, .., 2 * bins], real parts before imaginary
/// ones. Frames that would reach beyond the signal are left out.
Expr stft(Expr x, int64_t frame_len, int64_t hop, FftNorm norm = FftNorm::backward);

/// Linear convolution over n_fft points, y[t] = sum over i of a[i] b[t - i], of length a + b - 1 <= n_fft.
/// The norm says which transforms are used; the result does not depend on it.
Expr fft_conv1d(Expr a, Expr b, int64_t n_fft, FftNorm norm = FftNorm::backward);

/// Frequencies of the bins of n points in cycles per sample, f64: 0, 1, .., then the negative ones, over n.
Expr fftfreq_tensor(Graph& g, int64_t n);
/// Frequencies of bins 0 .. floor(n/2).
Expr rfftfreq_tensor(Graph& g, int64_t n);

/// The complex signal, as a pair, of a whole spectrum: an inverse transform.
Spectrum ifft_spectrum(Expr re, Expr im, FftNorm norm = FftNorm::backward);

/// (re^2 + im^2) / length of the last axis.
Expr psd(Expr re, Expr im);
/// psd of rfft.
Expr psd_real(Expr x, FftNorm norm = FftNorm::backward);

}  // namespace rlx::ops
