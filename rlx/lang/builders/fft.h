// Fourier transforms.
#pragma once

#include "rlx/lang/builders/builder.h"
#include "rlx/ops/fft/fft.h"

namespace rlx {

/// Fourier transforms.
class FftBuilder : public BuilderTheme<FftBuilder> {
 public:
  Value fft(Value x, bool inverse, const Declared& shape = {}, const Loc& loc = Loc::current());
  /// fft along the last axis with a choice of scaling.
  Value fft_norm(Value x, bool inverse, ops::FftNorm norm, const Declared& shape = {},
                 const Loc& loc = Loc::current());
  Value fft_axis(Value x, int axis, bool inverse, const Declared& shape = {},
                 const Loc& loc = Loc::current());
  Value fftn(Value x, std::vector<int> axes, bool inverse, const Declared& shape = {},
             const Loc& loc = Loc::current());
  /// The inverse over several axes.
  Value ifftn(Value x, std::vector<int> axes, const Declared& shape = {}, const Loc& loc = Loc::current());
  /// Zeros at the end of the last axis, up to a power of two.
  Value pad_last_axis_to_pow2(Value x, const Declared& shape = {}, const Loc& loc = Loc::current());

  // Real and imaginary parts.
  std::pair<Value, Value> split_spectrum(Value x, const Loc& loc = Loc::current());
  std::pair<Value, Value> fft_real(Value x, ops::FftNorm norm = ops::FftNorm::backward,
                                   const Loc& loc = Loc::current());
  std::pair<Value, Value> fft_batch_real(Value x, ops::FftNorm norm = ops::FftNorm::backward,
                                         const Loc& loc = Loc::current());
  /// Bins 0 .. N/2 of the signal padded with zeros to N, a power of two. Other libraries (and rlx::rfft of
  /// tensors) call rfft what is rfft_exact here: bins 0 .. n/2 of the n samples as they are.
  std::pair<Value, Value> rfft(Value x, ops::FftNorm norm = ops::FftNorm::backward,
                               const Loc& loc = Loc::current());
  std::pair<Value, Value> rfft_exact(Value x, ops::FftNorm norm = ops::FftNorm::backward,
                                     const Loc& loc = Loc::current());
  std::pair<Value, Value> ifft_spectrum(Value re, Value im, ops::FftNorm norm = ops::FftNorm::backward,
                                        const Loc& loc = Loc::current());

  Value irfft(Value re_half, Value im_half, int64_t n, ops::FftNorm norm = ops::FftNorm::backward,
              const Declared& shape = {}, const Loc& loc = Loc::current());
  /// The real signal of n samples, any n, whose bins 0 .. n/2 rfft_exact gives.
  Value irfft_exact(Value re_half, Value im_half, int64_t n, ops::FftNorm norm = ops::FftNorm::backward,
                    const Declared& shape = {}, const Loc& loc = Loc::current());
  Value stft(Value x, int64_t frame_len, int64_t hop, ops::FftNorm norm = ops::FftNorm::backward,
             const Declared& shape = {}, const Loc& loc = Loc::current());
  Value fft_conv1d(Value a, Value b, int64_t n_fft, ops::FftNorm norm = ops::FftNorm::backward,
                   const Declared& shape = {}, const Loc& loc = Loc::current());
  Value fftfreq_tensor(int64_t n, const Declared& shape = {}, const Loc& loc = Loc::current());
  Value rfftfreq_tensor(int64_t n, const Declared& shape = {}, const Loc& loc = Loc::current());
  Value psd_real(Value x, ops::FftNorm norm = ops::FftNorm::backward, const Declared& shape = {},
                 const Loc& loc = Loc::current());
  Value psd(Value re, Value im, const Declared& shape = {}, const Loc& loc = Loc::current());
};

}  // namespace rlx
