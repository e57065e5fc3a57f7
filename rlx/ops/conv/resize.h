// Resampling of the last axes, and the sum that takes it back.
#pragma once

#include <array>

#include "rlx/ops/vocabulary.h"

namespace rlx::ops {

enum class ResizeMode { nearest, linear };
constexpr std::array<std::string_view, 2> choice_names(ResizeMode) { return {"nearest", "linear"}; }

struct Resize {
  static constexpr std::string_view name = "resize",
                                    summary = "Resampling of the last axes, nearest or linear.",
                                    operands = "x";
  static constexpr std::string_view doc =
      "On each of the last axes, as many as `size` has entries, y[o] = x at position t(o). nearest: floor(o "
      "in / out). linear: between the two neighbours of t = (o + 1/2) in / out - 1/2, cut to the axis, or of "
      "t = o (in - 1) / (out - 1) with align_corners. `scale` stands for size = scale in on all axes but the "
      "first two";
  static constexpr Traits traits{.linear = true};
  struct Attrs {
    ResizeMode mode = ResizeMode::nearest;
    Dims size;
    std::optional<int64_t> scale;
    bool align_corners = false;
    static constexpr auto fields() {
      return std::tuple{
          field("mode", &Attrs::mode, "nearest or linear"),
          field("size", &Attrs::size, "new extents of the last axes; this or scale"),
          field("scale", &Attrs::scale, "whole factor for all axes but the first two"),
          field("align_corners", &Attrs::align_corners, "linear: the first and last elements stay in place")};
    }
  };
  static Shapes infer(Infer&, Attrs&);
  static Literals reference(const Eval&, const Attrs&);
  static Exprs vjp(const Vjp&, const Attrs&);
  static Exprs vmap(const Vmap&, const Attrs&);
  static std::vector<OpSample<Attrs>> samples();
};

struct ResizeBackward {
  static constexpr std::string_view name = "resize_backward",
                                    summary = "Gradient of resize in its input: its transpose.",
                                    operands = "dy";
  static constexpr std::string_view doc =
      "dx[i] = sum over o of the weight with which resize takes x[i] into y[o], times dy[o]";
  static constexpr Traits traits{.linear = true};
  struct Attrs {
    ResizeMode mode = ResizeMode::nearest;
    Dims size;
    bool align_corners = false;
    static constexpr auto fields() {
      return std::tuple{
          field("mode", &Attrs::mode, "nearest or linear"),
          field("size", &Attrs::size, "extents of the last axes of resize's input"),
          field("align_corners", &Attrs::align_corners, "linear: the first and last elements stay in place")};
    }
  };
  static Shapes infer(Infer&, Attrs&);
  static Literals reference(const Eval&, const Attrs&);
  static Exprs vjp(const Vjp&, const Attrs&);
  static Exprs vmap(const Vmap&, const Attrs&);
  static std::vector<OpSample<Attrs>> samples();
};

struct ResizeNearest2x {
  static constexpr std::string_view name = "resize_nearest2x",
                                    summary = "An image [N, C, H, W] doubled by repetition.", operands = "x";
  static constexpr std::string_view doc = "y[n, c, i, j] = x[n, c, floor(i / 2), floor(j / 2)]";
  using Attrs = NoAttrs;
  static Shapes infer(Infer&, Attrs&);
  static Exprs decompose(const Lower&, const Attrs&);
  static std::vector<OpSample<Attrs>> samples();
};

Expr resize(Expr x, ResizeMode mode, Dims size, bool align_corners = false);
Expr resize_scaled(Expr x, ResizeMode mode, int64_t scale, bool align_corners = false);
Expr resize_nearest2x(Expr x);

}  // namespace rlx::ops
