// Integer products with requantised results.
#pragma once

#include <array>

#include "rlx/ops/linalg/matmul.h"
#include "rlx/ops/vocabulary.h"

namespace rlx::ops {

enum class Rounding { half_even, half_away };
constexpr std::array<std::string_view, 2> choice_names(Rounding) { return {"half_even", "half_away"}; }

struct Requantize {
  int64_t x_zp = 0, w_zp = 0, out_zp = 0;
  double mult = 1;
  Rounding rounding = Rounding::half_even;
  std::vector<double> mults;
  /// As attributes of a struct that has these among others.
  template <class Attrs>
  static constexpr auto fields_of() {
    return std::tuple{
        field("x_zp", static_cast<int64_t Attrs::*>(&Requantize::x_zp), "the code of 0 in x"),
        field("w_zp", static_cast<int64_t Attrs::*>(&Requantize::w_zp), "the code of 0 in w"),
        field("out_zp", static_cast<int64_t Attrs::*>(&Requantize::out_zp), "the code of 0 in y"),
        field("mult", static_cast<double Attrs::*>(&Requantize::mult),
              "scale of x times scale of w over scale of y"),
        field("rounding", static_cast<Rounding Attrs::*>(&Requantize::rounding), "what becomes of halves"),
        field("mults", static_cast<std::vector<double> Attrs::*>(&Requantize::mults),
              "one mult for each output channel instead; empty: mult for all")};
  }
};

struct QMatmul {
  static constexpr std::string_view name = "q_matmul", summary = "Product of 8-bit codes, requantised.",
                                    operands = "x, w, bias";
  static constexpr std::string_view doc =
      "acc[.., n] = bias[n] + sum over k of (x[.., k] - x_zp)(w[k, n] - w_zp) in i32; y = round(acc mult) + "
      "out_zp, saturated to the range of codes, with mults[n] for mult where they are given. x and y are "
      "both i8 or both u8, w is i8";
  static constexpr Traits traits{.contraction = true, .zero_gradient = true};
  struct Attrs : Requantize {
    static constexpr auto fields() { return fields_of<Attrs>(); }
  };
  static Shapes infer(Infer&, Attrs&);
  static Exprs decompose(const Lower&, const Attrs&);
  static double operations(std::span<const Shape> in, std::span<const Shape> out, const Attrs&) {
    return product_operations(in, out);
  }
  static std::vector<OpSample<Attrs>> samples();
};

Expr q_matmul(Expr x, Expr w, Expr bias, int64_t x_zp, int64_t w_zp, int64_t out_zp, double mult,
              Rounding rounding = Rounding::half_even);

/// Checks the dtypes of x, w, bias and the attributes they share, for that many output channels.
void require_requantize(Infer& c, const Requantize& a, Dim channels);
/// round(acc mult) + out_zp as codes of that type; channels lie along `axis`.
Expr requantized(Expr acc, const Requantize& a, DType codes, int axis);
int64_t requantized(int64_t acc, const Requantize& a, DType codes, int64_t channel);

}  // namespace rlx::ops
