// Rotary position encoding by tables of cosines and sines.
#pragma once

#include "rlx/ops/attention/heads.h"

namespace rlx::ops {

struct RopeAttrs {
  int64_t head_dim = 2, n_rot = 0;
  bool interleaved = false;
  HeadLayout layout = HeadLayout::bshd_packed;

  static constexpr auto fields() {
    using A = RopeAttrs;
    return std::tuple{field("head_dim", &A::head_dim, "lanes of a head"),
                      field("n_rot", &A::n_rot,
                            "lanes rotated, from the first; even; the rest "
                            "pass; 0 means head_dim"),
                      field("interleaved", &A::interleaved,
                            "pairs are lanes (2i, 2i+1); otherwise (i, i + "
                            "n_rot/2), as in NeoX and Llama"),
                      field("layout", &A::layout,
                            "bshd_packed: [batch, seq, heads * head_dim] or "
                            "[seq, heads * head_dim]; bshd; bhsd")};
  }
};

struct Rope {
  static constexpr std::string_view name = "rope", summary = "Rotary position encoding.",
                                    operands = "x, cos, sin, positions?";
  static constexpr std::string_view doc =
      "Each pair (a, b) of the first n_rot lanes of a head becomes (a c - b s, "
      "b c + a s), with c, s entry i "
      "of row p of cos and sin for pair i, and p = positions[.., s], or s "
      "itself without positions. Tables "
      "are [rows, head_dim/2] (or [rows, n_rot/2]), of which the first n_rot/2 "
      "columns are read; positions "
      "are [seq] or [batch, seq]";
  using Attrs = RopeAttrs;
  static Shapes infer(Infer&, Attrs&);
  static Literals reference(const Eval&, const Attrs&);
  static Exprs decompose(const Lower&, const Attrs&);
  static Exprs vjp(const Vjp&, const Attrs&);
  static std::vector<OpSample<Attrs>> samples();
};

/// The transpose of rope in x: the rotation by the opposite angle.
struct RopeBackward {
  static constexpr std::string_view name = "rope_backward", summary = "Gradient of rope in its input.",
                                    operands = "dy, cos, sin, positions?";
  static constexpr std::string_view doc = "dx = rope(dy, cos, -sin, positions)";
  using Attrs = RopeAttrs;
  static Shapes infer(Infer& c, Attrs& a) { return Rope::infer(c, a); }
  static Exprs decompose(const Lower&, const Attrs&);
  static std::vector<OpSample<Attrs>> samples() { return Rope::samples(); }
};

struct AxialRope2d {
  static constexpr std::string_view name = "axial_rope2d",
                                    summary =
                                        "Rotary encoding of a grid: half the lanes by column, half by row.",
                                    operands = "x";
  static constexpr std::string_view doc =
      "Token t lies at p = t / repeat_factor, column p mod end_x, row p / end_x. With f_c = theta^(-4c/D), "
      "lanes (2c, 2c+1), c < D/4, of a head turn by column * f_c and lanes (D/2 + 2c, D/2 + 2c+1) by row * "
      "f_c";
  struct Attrs {
    int64_t end_x = 1, end_y = 1, head_dim = 4, num_heads = 1;
    double theta = 10000;
    int64_t repeat_factor = 1;
    static constexpr auto fields() {
      return std::tuple{field("end_x", &Attrs::end_x, "columns of the grid"),
                        field("end_y", &Attrs::end_y, "rows of the grid"),
                        field("head_dim", &Attrs::head_dim, "lanes D of a head, a multiple of 4"),
                        field("num_heads", &Attrs::num_heads, "heads in the last axis"),
                        field("theta", &Attrs::theta, "base of the frequencies"),
                        field("repeat_factor", &Attrs::repeat_factor,
                              "consecutive tokens that share a place of the grid; 0 counts as 1")};
    }
  };
  static Shapes infer(Infer&, Attrs&);
  static Exprs decompose(const Lower&, const Attrs&);
  static std::vector<OpSample<Attrs>> samples();
};

/// The general form; `positions` may be empty.
Expr rope_with(Expr x, Expr cos, Expr sin, Expr positions, RopeAttrs attrs);
Expr rope(Expr x, Expr cos, Expr sin, int64_t head_dim);
Expr rope_n(Expr x, Expr cos, Expr sin, int64_t head_dim, int64_t n_rot);
Expr rope_backward(Expr dy, Expr cos, Expr sin, int64_t head_dim, int64_t n_rot);
Expr axial_rope2d(Expr x, int64_t end_x, int64_t end_y, int64_t head_dim, int64_t num_heads, double theta,
                  int64_t repeat_factor = 1);

}  // namespace rlx::ops
