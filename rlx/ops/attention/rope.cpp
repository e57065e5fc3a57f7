#include "rlx/ops/attention/rope.h"

#include <cmath>

#include "rlx/base/checked.h"
#include "rlx/ir/leaves.h"
#include "rlx/ops/elementwise/binary.h"
#include "rlx/ops/elementwise/broadcast.h"
#include "rlx/ops/index/gather.h"
#include "rlx/ops/index/indices.h"
#include "rlx/ops/shape/concat.h"
#include "rlx/ops/shape/narrow.h"
#include "rlx/ops/shape/reshape.h"

namespace rlx::ops {
namespace {

// x as [batch, seq, heads, head_dim], or [batch, heads, seq, head_dim] where
// the layout has the heads first.
Dims lane_dims(const Shape& x, const RopeAttrs& a) {
  if (a.layout != HeadLayout::bshd_packed) return x.dims();
  return {x.rank() == 2 ? Dim(1) : x.dim(0), x.dim(-2), floordiv(x.dim(-1), a.head_dim), a.head_dim};
}

int seq_axis(const RopeAttrs& a) { return a.layout == HeadLayout::bhsd ? 2 : 1; }

// The rows of a table that the positions ask for, shaped to broadcast against
// the lanes of x.
Expr rows_of(Expr table, Expr positions, Dim seq, const RopeAttrs& a) {
  const Dim pairs = a.n_rot / 2;
  table = narrow(table, 1, 0, pairs);
  Expr rows = positions ? gather(table, positions, 0) : narrow(table, 0, 0, seq);
  const Dim batch = rows.rank() == 3 ? rows.dim(0) : Dim(1);
  return reshape(rows, seq_axis(a) == 2 ? Dims{batch, 1, seq, pairs} : Dims{batch, seq, 1, pairs});
}

// Its transpose: from one gradient per broadcast row to the table.
Expr rows_gradient(Expr d, Expr table, Expr positions, Dim seq, const RopeAttrs& a) {
  const Dim pairs = a.n_rot / 2;
  const auto zeros = [&](Dim rows, Dim columns) {
    return full(*d.graph, Shape(d.dtype(), {rows, columns}), 0);
  };
  const Dim batch = positions && positions.rank() == 2 ? positions.dim(0) : Dim(1);
  d = unbroadcast(d, seq_axis(a) == 2 ? Dims{batch, 1, seq, pairs} : Dims{batch, seq, 1, pairs});
  if (positions) {
    Dims rows = positions.shape().dims();
    rows.push_back(pairs);
    d = gather_backward(reshape(d, rows), positions, {table.dim(0), pairs}, 0);
  } else {
    d = concat({reshape(d, {seq, pairs}), zeros(table.dim(0) - seq, pairs)}, 0);
  }
  return concat({d, zeros(table.dim(0), table.dim(1) - pairs)}, 1);
}

// The members of each pair, [.., n_rot / 2].
std::pair<Expr, Expr> pairs_of(Expr lanes, const RopeAttrs& a) {
  const Dim pairs = a.n_rot / 2;
  if (!a.interleaved) return {narrow(lanes, 3, 0, pairs), narrow(lanes, 3, pairs, pairs)};
  Dims dims = lanes.shape().dims();
  dims[3] = pairs, dims.push_back(2);
  const Expr both = reshape(narrow(lanes, 3, 0, a.n_rot), dims);
  return {squeeze(narrow(both, 4, 0, 1), 4), squeeze(narrow(both, 4, 1, 1), 4)};
}

Expr join_pairs(Expr first, Expr second, Expr lanes, const RopeAttrs& a) {
  Exprs parts{first, second};
  if (a.interleaved) {
    Dims dims = first.shape().dims();
    dims[3] = a.n_rot;
    parts = {reshape(stack(parts, 4), dims)};
  }
  if (a.n_rot < a.head_dim) parts.push_back(narrow(lanes, 3, a.n_rot, a.head_dim - a.n_rot));
  return concat(parts, 3);
}

template <class Context>
Expr positions_of(const Context& c) {
  return c.count() > 3 ? c.in(3) : Expr{};
}

}  // namespace

Shapes Rope::infer(Infer& c, Attrs& a) {
  const Shape& x = c.in(0);
  c.require_float(0);
  c.same_dtype({0, 1, 2});
  if (a.head_dim < 2) c.fail("head_dim is ", a.head_dim, "; it must be 2 or more");
  if (a.n_rot == 0) a.n_rot = a.head_dim;
  if (a.n_rot < 0 || a.n_rot % 2 != 0 || a.n_rot > a.head_dim)
    c.fail("n_rot is ", a.n_rot, "; it must be even and at most head_dim ", a.head_dim);
  if (a.layout == HeadLayout::bshd_packed) {
    if (x.rank() != 2 && x.rank() != 3) view_heads(c, 0, a.layout, 1);  // says what the layout is
    if (!exact_div(x.dim(-1), a.head_dim))
      c.fail(c.operand_name(0), ": ", x, " does not divide into heads of head_dim ", a.head_dim);
  } else {
    view_heads(c, 0, a.layout, 0);
    if (decide_equal(x.dim(3), a.head_dim) == false)
      c.fail(c.operand_name(0), ": ", x, " has ", x.dim(3), " lanes per head; head_dim is ", a.head_dim);
    c.same(x.dim(3), a.head_dim, "head_dim and lanes per head");
  }
  const Dims lanes = lane_dims(x, a);
  const Dim seq = lanes[size_t(seq_axis(a))];
  for (const int i : {1, 2}) {
    c.require_rank(i, 2);
    Dim width = c.in(i).dim(1);
    if (width.is_symbolic() && a.n_rot == a.head_dim)
      width = c.same(Dim(a.head_dim / 2), width, cat("head_dim/2 and columns of ", c.operand_name(i)));
    if (width != Dim(a.head_dim / 2) && width != Dim(a.n_rot / 2)) {
      c.fail(c.operand_name(i), ": ", c.in(i), " has rows of ", width,
             "; they must be head_dim/2 = ", a.head_dim / 2,
             a.n_rot == a.head_dim ? "" : cat(" or n_rot/2 = ", a.n_rot / 2));
    }
  }
  for (const int axis : {0, 1}) c.same(c.in(1).dim(axis), c.in(2).dim(axis), "sizes of cos and sin");
  if (c.count() == 3) {
    const Dim rows = c.in(1).dim(0);
    if (rows.is_static() && seq.is_static() && rows.value() < seq.value())
      c.fail("cos: ", c.in(1), " has ", rows, " rows for ", seq, " positions of ", c.operand_name(0), ": ",
             x);
    return {x};
  }
  c.require_index(3);
  const Shape& p = c.in(3);
  const bool ok = (p.rank() == 1 || (p.rank() == 2 && decide_equal(p.dim(0), lanes[0]) != false)) &&
                  decide_equal(p.dim(-1), seq) != false;
  if (!ok) c.fail("positions: ", p, " must be [", seq, "] or [", lanes[0], ", ", seq, "] (batch, seq)");
  c.same(p.dim(-1), seq, "lengths of x and positions");
  if (p.rank() == 2) c.same(p.dim(0), lanes[0], "batch sizes of x and positions");
  return {x};
}

Literals Rope::reference(const Eval& c, const Attrs& a) {
  const Dims lanes = lane_dims(c.in(0).shape(), a);
  const int64_t batch = lanes[0].value(), second = lanes[1].value(), third = lanes[2].value();
  const int64_t pairs = a.n_rot / 2, width = c.in(1).shape().dim(1).value(),
                rows = c.in(1).shape().dim(0).value();
  const auto cos = c.in(1).to_reals(), sin = c.in(2).to_reals();
  std::vector<int64_t> positions;
  if (c.count() > 3) positions = index_values(c.in(3), "rope", "positions");
  for (const int64_t p : positions) {
    if (p < 0 || p >= rows)
      throw invalid("rope: position ", p, " is out of range; cos: ", c.in(1).shape(), " has ", rows, " rows");
  }
  const bool per_row = c.count() > 3 && c.in(3).shape().rank() == 2;
  std::vector<double> y = c.in(0).to_reals();
  for (int64_t b = 0; b < batch; ++b) {
    for (int64_t i = 0; i < second; ++i) {
      for (int64_t j = 0; j < third; ++j) {
        int64_t row = seq_axis(a) == 1 ? i : j;
        if (!positions.empty())
          row = positions[size_t(per_row ? b * (seq_axis(a) == 1 ? second : third) + row : row)];
        double* lane = y.data() + ((b * second + i) * third + j) * a.head_dim;
        for (int64_t k = 0; k < pairs; ++k) {
          double& first = lane[a.interleaved ? 2 * k : k];
          double& other = lane[a.interleaved ? 2 * k + 1 : k + pairs];
          const double co = cos[size_t(row * width + k)], si = sin[size_t(row * width + k)];
          const double rotated = first * co - other * si;
          other = other * co + first * si;
          first = rotated;
        }
      }
    }
  }
  return {Literal::reals(c.out(), y)};
}

Exprs Rope::decompose(const Lower& c, const Attrs& a) {
  const Expr lanes = reshape(c.in(0), lane_dims(c.in(0).shape(), a));
  const Dim seq = lanes.dim(seq_axis(a));
  const Expr co = rows_of(c.in(1), positions_of(c), seq, a), si = rows_of(c.in(2), positions_of(c), seq, a);
  const auto [first, second] = pairs_of(lanes, a);
  const Expr y = join_pairs(first * co - second * si, second * co + first * si, lanes, a);
  return {reshape(y, c.out().dims())};
}

// With (u, v) the gradient of a rotated pair (p, q): dc = u p + v q and ds = v
// p - u q.
Exprs Rope::vjp(const Vjp& c, const Attrs& a) {
  const Expr positions = positions_of(c);
  Exprs out(size_t(c.count()));
  if (c.wants(0)) out[0] = rope_with(c.dy(), c.in(1), -c.in(2), positions, a);
  if (!c.wants(1) && !c.wants(2)) return out;
  const Dims dims = lane_dims(c.in(0).shape(), a);
  const Dim seq = dims[size_t(seq_axis(a))];
  const auto [p, q] = pairs_of(reshape(c.in(0), dims), a);
  const auto [u, v] = pairs_of(reshape(c.dy(), dims), a);
  if (c.wants(1)) out[1] = rows_gradient(u * p + v * q, c.in(1), positions, seq, a);
  if (c.wants(2)) out[2] = rows_gradient(v * p - u * q, c.in(2), positions, seq, a);
  return out;
}

std::vector<OpSample<Rope::Attrs>> Rope::samples() {
  using enum HeadLayout;
  return {{{.head_dim = 4}, {"f32[2,3,8]", "f32[5,2]", "f32[5,2]"}},
          {{.head_dim = 6, .n_rot = 4}, {"f64[3,6]", "f64[3,3]", "f64[3,3]"}},
          {{.head_dim = 4, .interleaved = true}, {"f32[1,2,4]", "f32[4,2]", "f32[4,2]", "i32[2] <4"}},
          {{.head_dim = 5, .n_rot = 2, .interleaved = true, .layout = bshd},
           {"f32[2,3,2,5]", "f32[4,1]", "f32[4,1]", "i64[2,3] <4"}},
          {{.head_dim = 2, .layout = bhsd}, {"f32[2,3,2,2]", "f32[3,1]", "f32[3,1]", "u32[2,2] <3"}},
          {{.head_dim = 2}, {"f32[2,0,2]", "f32[1,1]", "f32[1,1]"}},
          {{.head_dim = 2}, {"f16[1,1,2]", "f16[1,1]", "f16[1,1]"}},
          {{.head_dim = 4, .layout = bhsd}, {"bf16[1,2,3,4]", "bf16[3,2]", "bf16[3,2]"}}};
}

Exprs RopeBackward::decompose(const Lower& c, const Attrs& a) {
  return {rope_with(c.in(0), c.in(1), -c.in(2), positions_of(c), a)};
}

Shapes AxialRope2d::infer(Infer& c, Attrs& a) {
  const Shape& x = c.in(0);
  c.require_float(0);
  c.require_rank(0, 3);
  if (a.repeat_factor == 0) a.repeat_factor = 1;
  if (a.end_x < 1 || a.end_y < 1 || a.num_heads < 1 || a.repeat_factor < 1) {
    c.fail("end_x ", a.end_x, ", end_y ", a.end_y, ", num_heads ", a.num_heads, ", repeat_factor ",
           a.repeat_factor, "; they must be 1 or more");
  }
  if (a.head_dim < 4 || a.head_dim % 4 != 0)
    c.fail("head_dim is ", a.head_dim, "; it must be a multiple of 4");
  if (!(a.theta > 0)) c.fail("theta is ", a.theta, "; it must be positive");
  const int64_t tokens = checked_mul(checked_mul(a.end_x, a.end_y), a.repeat_factor);
  const int64_t lanes = checked_mul(a.num_heads, a.head_dim);
  if (decide_equal(x.dim(1), tokens) == false || decide_equal(x.dim(2), lanes) == false) {
    c.fail("x: ", x, " must be [batch, ", tokens, ", ", lanes,
           "] (end_x * end_y * repeat_factor tokens of num_heads * head_dim)");
  }
  return {x.with_dims({x.dim(0), c.same(x.dim(1), tokens, "numbers of tokens"),
                       c.same(x.dim(2), lanes, "lanes of a token")})};
}

// An interleaved rope whose table holds the column angles, then the row angles,
// of each token.
Exprs AxialRope2d::decompose(const Lower& c, const Attrs& a) {
  const int64_t tokens = a.end_x * a.end_y * a.repeat_factor, quarter = a.head_dim / 4;
  std::vector<double> co, si;
  for (int64_t t = 0; t < tokens; ++t) {
    const int64_t place = t / a.repeat_factor;
    for (const int64_t along : {place % a.end_x, place / a.end_x}) {
      for (int64_t k = 0; k < quarter; ++k) {
        const double angle = double(along) * std::pow(a.theta, -4.0 * double(k) / double(a.head_dim));
        co.push_back(std::cos(angle));
        si.push_back(std::sin(angle));
      }
    }
  }
  const Shape table(c.in(0).dtype(), {tokens, 2 * quarter});
  const auto constant = [&](const std::vector<double>& v) {
    return Expr{&c.graph, c.graph.constant(Literal::reals(table, v))};
  };
  return {rope_with(c.in(0), constant(co), constant(si), {},
                    {.head_dim = a.head_dim, .n_rot = a.head_dim, .interleaved = true})};
}

std::vector<OpSample<AxialRope2d::Attrs>> AxialRope2d::samples() {
  return {{{.end_x = 3, .end_y = 2, .head_dim = 4, .num_heads = 2}, {"f32[2,6,8]"}},
          {{.end_x = 1, .end_y = 3, .head_dim = 8, .theta = 100.0}, {"f64[1,3,8]"}},
          {{.end_x = 2, .end_y = 1, .head_dim = 4, .repeat_factor = 2}, {"f32[1,4,4]"}},
          {{.end_x = 1, .end_y = 1, .head_dim = 4}, {"f16[1,1,4]"}},
          {{.end_x = 2, .end_y = 2, .head_dim = 4}, {"f32[0,4,4]"}}};
}

Expr rope_with(Expr x, Expr cos, Expr sin, Expr positions, RopeAttrs attrs) {
  Values operands{x, cos, sin};
  if (positions) operands.push_back(positions);
  return make<Rope>(*x.graph, attrs, operands);
}

Expr rope(Expr x, Expr cos, Expr sin, int64_t head_dim) { return rope_n(x, cos, sin, head_dim, head_dim); }

Expr rope_n(Expr x, Expr cos, Expr sin, int64_t head_dim, int64_t n_rot) {
  return rope_with(x, cos, sin, {}, {.head_dim = head_dim, .n_rot = n_rot});
}

Expr rope_backward(Expr dy, Expr cos, Expr sin, int64_t head_dim, int64_t n_rot) {
  return make<RopeBackward>(*dy.graph, {.head_dim = head_dim, .n_rot = n_rot}, {dy, cos, sin});
}

Expr axial_rope2d(Expr x, int64_t end_x, int64_t end_y, int64_t head_dim, int64_t num_heads, double theta,
                  int64_t repeat_factor) {
  return make<AxialRope2d>(*x.graph, {end_x, end_y, head_dim, num_heads, theta, repeat_factor}, {x});
}

}  // namespace rlx::ops
