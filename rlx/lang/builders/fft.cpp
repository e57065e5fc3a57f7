#include "rlx/lang/builders/fft.h"

#include "rlx/lang/graph.h"
#include "rlx/ops/fft/spectrum.h"

namespace rlx {

Value FftBuilder::fft(Value x, bool inverse, const Declared& shape, const Loc& loc) {
  return one(shape, loc, [&] { return ops::fft(t(x), inverse); });
}

Value FftBuilder::fft_norm(Value x, bool inverse, ops::FftNorm norm, const Declared& shape, const Loc& loc) {
  return one(shape, loc, [&] { return ops::fft_norm(t(x), inverse, norm); });
}

Value FftBuilder::fft_axis(Value x, int axis, bool inverse, const Declared& shape, const Loc& loc) {
  return one(shape, loc, [&] { return ops::fft_axis(t(x), axis, inverse); });
}

Value FftBuilder::fftn(Value x, std::vector<int> axes, bool inverse, const Declared& shape, const Loc& loc) {
  return one(shape, loc, [&] { return ops::fftn(t(x), std::move(axes), inverse); });
}

Value FftBuilder::ifftn(Value x, std::vector<int> axes, const Declared& shape, const Loc& loc) {
  return one(shape, loc, [&] { return ops::ifftn(t(x), std::move(axes)); });
}

Value FftBuilder::pad_last_axis_to_pow2(Value x, const Declared& shape, const Loc& loc) {
  return one(shape, loc, [&] { return ops::pad_last_axis_to_pow2(t(x)); });
}

std::pair<Value, Value> FftBuilder::split_spectrum(Value x, const Loc& loc) {
  return two(loc, [&] { return ops::split_spectrum(t(x)); });
}

std::pair<Value, Value> FftBuilder::fft_real(Value x, ops::FftNorm norm, const Loc& loc) {
  return two(loc, [&] { return ops::fft_real(t(x), norm); });
}

std::pair<Value, Value> FftBuilder::fft_batch_real(Value x, ops::FftNorm norm, const Loc& loc) {
  return two(loc, [&] { return ops::fft_batch_real(t(x), norm); });
}

std::pair<Value, Value> FftBuilder::rfft(Value x, ops::FftNorm norm, const Loc& loc) {
  return two(loc, [&] { return ops::rfft(t(x), norm); });
}

std::pair<Value, Value> FftBuilder::rfft_exact(Value x, ops::FftNorm norm, const Loc& loc) {
  return two(loc, [&] { return ops::rfft_exact(t(x), norm); });
}

std::pair<Value, Value> FftBuilder::ifft_spectrum(Value re, Value im, ops::FftNorm norm, const Loc& loc) {
  return two(loc, [&] { return ops::ifft_spectrum(t(re), t(im), norm); });
}

Value FftBuilder::irfft(Value re_half, Value im_half, int64_t n, ops::FftNorm norm, const Declared& shape,
                        const Loc& loc) {
  return one(shape, loc, [&] { return ops::irfft(t(re_half), t(im_half), n, norm); });
}

Value FftBuilder::irfft_exact(Value re_half, Value im_half, int64_t n, ops::FftNorm norm,
                              const Declared& shape, const Loc& loc) {
  return one(shape, loc, [&] { return ops::irfft_exact(t(re_half), t(im_half), n, norm); });
}

Value FftBuilder::stft(Value x, int64_t frame_len, int64_t hop, ops::FftNorm norm, const Declared& shape,
                       const Loc& loc) {
  return one(shape, loc, [&] { return ops::stft(t(x), frame_len, hop, norm); });
}

Value FftBuilder::fft_conv1d(Value a, Value b, int64_t n_fft, ops::FftNorm norm, const Declared& shape,
                             const Loc& loc) {
  return one(shape, loc, [&] { return ops::fft_conv1d(t(a), t(b), n_fft, norm); });
}

Value FftBuilder::fftfreq_tensor(int64_t n, const Declared& shape, const Loc& loc) {
  return one(shape, loc, [&] { return ops::fftfreq_tensor(graph(), n); });
}

Value FftBuilder::rfftfreq_tensor(int64_t n, const Declared& shape, const Loc& loc) {
  return one(shape, loc, [&] { return ops::rfftfreq_tensor(graph(), n); });
}

Value FftBuilder::psd_real(Value x, ops::FftNorm norm, const Declared& shape, const Loc& loc) {
  return one(shape, loc, [&] { return ops::psd_real(t(x), norm); });
}

Value FftBuilder::psd(Value re, Value im, const Declared& shape, const Loc& loc) {
  return one(shape, loc, [&] { return ops::psd(t(re), t(im)); });
}

}  // namespace rlx
