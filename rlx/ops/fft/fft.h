// The discrete Fourier transform along the last axis.
#pragma once

#include <array>

#include "rlx/ops/vocabulary.h"

namespace rlx::ops {

/// How results are scaled: backward does not (the inverse of a transform gives N x), forward divides the
/// inverse by N, ortho divides both directions by sqrt(N).
enum class FftNorm { backward, forward, ortho };
constexpr std::array<std::string_view, 3> choice_names(FftNorm) { return {"backward", "forward", "ortho"}; }

struct Fft {
  static constexpr std::string_view name = "fft", summary = "Discrete Fourier transform along the last axis.",
                                    operands = "x";
  static constexpr std::string_view doc =
      "y[k] = scale sum over n of x[n] e^(-2 pi i n k / N), + for the inverse, any N. c64 holds N numbers on "
      "the last axis; a real tensor holds 2N: the real parts, then the imaginary parts. scale: backward 1, "
      "forward 1 and 1/N for the inverse, ortho 1/sqrt(N). The gradient is the unscaled transform of the "
      "other direction, times scale";
  static constexpr Traits traits{.linear = true};
  struct Attrs {
    bool inverse = false;
    FftNorm norm = FftNorm::backward;
    static constexpr auto fields() {
      return std::tuple{field("inverse", &Attrs::inverse, "the sign of the exponent is +"),
                        field("norm", &Attrs::norm, "how results are scaled")};
    }
  };
  static Shapes infer(Infer&, Attrs&);
  static Literals reference(const Eval&, const Attrs&);
  static Exprs vjp(const Vjp&, const Attrs&);
  static Exprs vmap(const Vmap&, const Attrs&);
  static double operations(std::span<const Shape> in, std::span<const Shape> out, const Attrs&);
  static std::vector<OpSample<Attrs>> samples();
};

Expr fft(Expr x, bool inverse = false);
Expr fft_norm(Expr x, bool inverse, FftNorm norm);
/// Along another axis. A real tensor holds both parts on that axis.
Expr fft_axis(Expr x, int axis, bool inverse, FftNorm norm = FftNorm::backward);
/// Along several axes, each once; several need c64.
Expr fftn(Expr x, std::vector<int> axes, bool inverse, FftNorm norm = FftNorm::backward);
Expr ifftn(Expr x, std::vector<int> axes, FftNorm norm = FftNorm::backward);

/// What a transform over `n` points multiplies its sums by, as a scalar of x's dtype; empty for 1.
Expr fft_scale(Expr x, Dim n, bool inverse, FftNorm norm);

}  // namespace rlx::ops
