#include "rlx/lang/functions.h"

#include "rlx/lang/apply.h"
#include "rlx/ops/fft/spectrum.h"
#include "rlx/ops/linalg/einsum.h"
#include "rlx/ops/shape/concat.h"
#include "rlx/ops/shape/narrow.h"

namespace rlx {

using detail::compose;

namespace {

template <class Build>
std::pair<Tensor, Tensor> spectrum(std::string_view what, const Tensor& x, const Loc& loc, Build build) {
  const detail::Gathered in = detail::gather_operands(what, {x}, loc);
  return build_at(in.graph, loc, [&]() -> std::pair<Tensor, Tensor> {
    const ops::Spectrum s = build(in.operands[0]);
    return {s.re, s.im};
  });
}

}  // namespace

Tensor einsum(const std::string& equation, const Tensors& operands, const Loc& loc) {
  return apply<ops::Einsum>({.equation = equation}, detail::with_list({}, operands), loc);
}

Tensor stack(const Tensors& parts, int axis, const Loc& loc) {
  return compose("stack", parts, loc, [&](const auto& in) { return ops::stack(in, axis); });
}

Tensors split(const Tensor& x, const Dims& sizes, int axis, const Loc& loc) {
  Tensors out;
  Dim start = 0;
  for (const Dim& size : sizes) {
    out.push_back(x.narrow(axis, start, size, loc));
    start = start + size;
  }
  run_at(loc, [&] {
    if (decide_equal(start, x.dim(axis)) == false)
      throw invalid("split: sizes ", sizes, " for axis ", axis, " of ", x.shape(),
                    "; they must add up to it");
  });
  return out;
}

std::pair<Tensor, Tensor> rfft(const Tensor& x, FftNorm norm, const Loc& loc) {
  return spectrum("rfft", x, loc, [&](ir::Expr e) { return ops::rfft_exact(e, norm); });
}

Tensor irfft(const Tensor& re, const Tensor& im, int64_t n, FftNorm norm, const Loc& loc) {
  return compose("irfft", {re, im}, loc,
                 [&](const auto& in) { return ops::irfft_exact(in[0], in[1], n, norm); });
}

std::pair<Tensor, Tensor> rfft_padded(const Tensor& x, FftNorm norm, const Loc& loc) {
  return spectrum("rfft_padded", x, loc, [&](ir::Expr e) { return ops::rfft(e, norm); });
}

Tensor stft(const Tensor& x, int64_t frame_len, int64_t hop, FftNorm norm, const Loc& loc) {
  return compose("stft", {x}, loc, [&](const auto& in) { return ops::stft(in[0], frame_len, hop, norm); });
}

Tensor psd(const Tensor& re, const Tensor& im, const Loc& loc) {
  return compose("psd", {re, im}, loc, [&](const auto& in) { return ops::psd(in[0], in[1]); });
}

}  // namespace rlx
