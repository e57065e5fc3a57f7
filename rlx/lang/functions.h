// Functions of tensors that are more than one operator, or read better than its record.
#pragma once

#include <string>
#include <utility>

#include "rlx/lang/tensor.h"
#include "rlx/ops/fft/fft.h"

namespace rlx {

using ops::FftNorm;

/// einsum("ij,jk->ik", {a, b})
Tensor einsum(const std::string& equation, const Tensors& operands, const Loc& loc = Loc::current());
/// Tensors of one type along a new axis.
Tensor stack(const Tensors& parts, int axis = 0, const Loc& loc = Loc::current());
/// The parts of x along an axis, of these sizes.
Tensors split(const Tensor& x, const Dims& sizes, int axis = 0, const Loc& loc = Loc::current());

// Spectra of real signals on the last axis, as real and imaginary parts. By default a spectrum is not scaled and
// the way back divides by n, so that irfft undoes rfft; Graph's methods of these names scale neither.

/// Bins 0 .. n/2 of a signal of any length n, as it is.
std::pair<Tensor, Tensor> rfft(const Tensor& x, FftNorm norm = FftNorm::forward,
                               const Loc& loc = Loc::current());
/// The signal of n samples whose bins 0 .. n/2 are given.
Tensor irfft(const Tensor& re, const Tensor& im, int64_t n, FftNorm norm = FftNorm::forward,
             const Loc& loc = Loc::current());
/// Bins 0 .. N/2 of the signal padded with zeros to N, the next power of two: Graph::rfft.
std::pair<Tensor, Tensor> rfft_padded(const Tensor& x, FftNorm norm = FftNorm::forward,
                                      const Loc& loc = Loc::current());
/// rfft_padded of frames x[.., f hop + i], i < frame_len: [frames, .., 2 bins], real parts first.
Tensor stft(const Tensor& x, int64_t frame_len, int64_t hop, FftNorm norm = FftNorm::forward,
            const Loc& loc = Loc::current());
/// (re^2 + im^2) / length of the last axis.
Tensor psd(const Tensor& re, const Tensor& im, const Loc& loc = Loc::current());

}  // namespace rlx
