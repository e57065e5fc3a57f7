// Quantise and dequantise in one step, for training: the values of a quantised tensor, the gradient of a
// smooth one. Codes are symmetric, -Q .. Q with Q = 127, 7, 1 for 8, 4, 2 bits.
#pragma once

#include <array>
#include <optional>

#include "rlx/ops/vocabulary.h"

namespace rlx::ops {

/// What stands in for the derivative of the rounding, with z = x / s:
/// identity 1; clipped 1 where |z| <= Q, else 0; tanh 1 - tanh(z)^2; hard_tanh max(0, 1 - |z| / Q).
enum class SteKind { identity, clipped, tanh, hard_tanh };
constexpr std::array<std::string_view, 4> choice_names(SteKind) {
  return {"identity", "clipped", "tanh", "hard_tanh"};
}

/// Where the scale comes from: the largest modulus of this batch over Q; a running mean of that; the operand.
enum class ScaleMode { per_batch, ema, fixed };
constexpr std::array<std::string_view, 3> choice_names(ScaleMode) { return {"per_batch", "ema", "fixed"}; }

struct FakeQuantize {
  static constexpr std::string_view name = "fake_quantize",
                                    summary = "Rounding to a few bits with a straight-through gradient.",
                                    operands = "x, state?", results = "y, scale";
  static constexpr std::string_view doc =
      "y = s clamp(round(x / s), -Q, Q), s = max(scale, 1e-12), per channel along `axis` or one for all. "
      "scale: per_batch m = max|x| / Q; ema m where state <= 0, else decay state + (1 - decay) m, which is "
      "the state of the next step; fixed state. dx = dy times the factor of `ste` at this s; the scale has "
      "no gradient";
  static constexpr Traits traits{.surrogate_gradient = true};
  struct Attrs {
    int bits = 8;
    std::optional<int> axis;
    SteKind ste = SteKind::identity;
    ScaleMode scale_mode = ScaleMode::per_batch;
    double decay = 0.99;
    static constexpr auto fields() {
      return std::tuple{field("bits", &Attrs::bits, "8, 4 or 2"),
                        field("axis", &Attrs::axis, "axis of the channels; left out: one scale for all"),
                        field("ste", &Attrs::ste, "what stands in for the derivative of the rounding"),
                        field("scale_mode", &Attrs::scale_mode, "where the scale comes from"),
                        field("decay", &Attrs::decay, "share of the old state, for ema")};
    }
  };
  static Shapes infer(Infer&, Attrs&);
  static Exprs decompose(const Lower&, const Attrs&);
  static std::vector<OpSample<Attrs>> samples();
};

struct FakeQuantizeBackward {
  static constexpr std::string_view name = "fake_quantize_backward",
                                    summary = "Gradient of fake_quantize at the scale it used.",
                                    operands = "x, scale, dy";
  static constexpr std::string_view doc =
      "dx = dy times the factor of `ste` at z = x / max(scale, 1e-12): identity 1, clipped |z| <= Q, tanh "
      "1 - tanh(z)^2, hard_tanh max(0, 1 - |z| / Q)";
  static constexpr Traits traits{.surrogate_gradient = true};
  struct Attrs {
    int bits = 8;
    std::optional<int> axis;
    SteKind ste = SteKind::identity;
    static constexpr auto fields() {
      return std::tuple{field("bits", &Attrs::bits, "8, 4 or 2"),
                        field("axis", &Attrs::axis, "axis of the channels; left out: one scale for all"),
                        field("ste", &Attrs::ste, "what stands in for the derivative of the rounding")};
    }
  };
  static Shapes infer(Infer&, Attrs&);
  static Exprs decompose(const Lower&, const Attrs&);
  static std::vector<OpSample<Attrs>> samples();
};

struct FakeQuantizeResult {
  Expr y, scale;
};
/// `state` empty for per_batch. The scale is the state of the next step for ema.
FakeQuantizeResult fake_quantize(Expr x, Expr state, FakeQuantize::Attrs attrs = {});
Expr fake_quantize_backward(Expr x, Expr scale, Expr dy, int bits, std::optional<int> axis, SteKind ste);

/// Q for a number of bits; others than 8, 4, 2 are refused.
double top_code(const Infer& c, int bits);
double top_code(int bits);
/// Checks an operand with one scale per channel: [C] along the axis (made canonical), or [1] for all.
Shape require_scales(Infer& c, int operand, std::optional<int>& axis);
/// The types of x and its scales in a gradient with operands x, scale, dy, which it checks.
Shapes infer_rounding_gradient(Infer& c, int bits, std::optional<int>& axis);
/// Scales of shape [C] or [1], ready to broadcast against x.
Expr spread_scales(Expr scale, Expr x, std::optional<int> axis);
/// x's axes that share a scale.
std::vector<int> shared_axes(int rank, std::optional<int> axis);

}  // namespace rlx::ops
