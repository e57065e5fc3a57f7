#include "rlx/ops/quant/scaled_matmul.h"

#include "rlx/ops/elementwise/binary.h"
#include "rlx/ops/elementwise/cast.h"
#include "rlx/ops/shape/expand.h"
#include "rlx/ops/shape/narrow.h"
#include "rlx/ops/shape/reshape.h"

namespace rlx::ops {
namespace {

void require_fp8(const Infer& c, int i) {
  const DType t = c.in(i).dtype();
  if (t != DType::f8e4m3 && t != DType::f8e5m2)
    c.fail(c.operand_name(i), ": ", c.in(i), " has dtype ", t, "; it must be f8e4m3 or f8e5m2");
}

bool is_one(Dim d) { return decide_equal(d, 1) == true; }

/// Scales of operand `of` in operand i: axes of one element, or of these sizes.
void require_scale(Infer& c, int i, int of, const Dims& rows, const Dims& columns) {
  const Shape &s = c.in(i), &x = c.in(of);
  if (s.dtype() != DType::f32 && s.dtype() != DType::f64)
    c.fail(c.operand_name(i), ": ", s, " has dtype ", s.dtype(), "; scales are f32 or f64");
  if (s.rank() != 2 && s.rank() != x.rank())
    c.fail(c.operand_name(i), ": ", s, " has rank ", s.rank(), "; it must have rank 2 or that of ",
           c.operand_name(of), ": ", x);
  const auto fits = [&](int axis, const Dims& sizes) {
    const Dim have = s.dim(axis);
    if (is_one(have)) return;
    Dims possible;
    for (const Dim want : sizes) {
      if (decide_equal(have, want) == true) return;
      if (decide_equal(have, want) != false) possible.push_back(want);
    }
    const std::string all = sizes.size() > 1 ? cat(sizes.front(), " or ", sizes.back()) : cat(sizes.front());
    if (possible.empty())
      c.fail(c.operand_name(i), ": ", s, " does not fit ", c.operand_name(of), ": ", x, "; axis ",
             s.rank() + axis, " must have 1 or ", all, " elements");
    if (possible.size() > 1)
      c.fail(c.operand_name(i), ": ", s, " does not tell whether axis ", s.rank() + axis, " has ", all,
             " elements");
    c.same(have, possible.front(), "sizes of scales and what they scale");
  };
  fits(-2, rows);
  fits(-1, columns);
  for (int axis = 0; axis < s.rank() - 2; ++axis) fits(axis - s.rank(), {x.dim(axis)});
}

/// Element i of an axis becomes elements i block .. (i + 1) block of one of `size`; one element stays, and serves all.
Expr spread(Expr s, int axis, Dim size, int64_t block) {
  axis += s.rank();
  if (is_one(s.dim(axis)) || decide_equal(s.dim(axis), size) == true) return s;
  Dims split = s.shape().dims(), whole = split;
  whole[size_t(axis)] = s.dim(axis) * Dim(block);
  split.insert(split.begin() + axis + 1, Dim(1));
  const Expr apart = reshape(s, split);
  split[size_t(axis) + 1] = Dim(block);
  return narrow(reshape(expand(apart, split), whole), axis, 0, size);
}

}  // namespace

Shapes ScaledMatmul::infer(Infer& c, Attrs& a) {
  require_fp8(c, 0);
  require_fp8(c, 1);
  if (!is_float(a.to) || is_storage_only(a.to))
    c.fail("to is ", a.to, "; a product of fp8 is bf16, f16, f32 or f64");
  if (a.block < 1) c.fail("block is ", a.block, "; it must be positive");
  const Shape y = product_shape(c, c.in(0), 1).with_dtype(a.to);
  const Dim m = c.in(0).dim(-2), k = c.in(0).dim(-1), n = c.in(1).dim(-1), blocks = ceildiv(k, a.block);
  if (c.count() > 2) require_scale(c, 2, 0, {m}, {blocks});
  if (c.count() > 3) require_scale(c, 3, 1, {blocks}, {n, ceildiv(n, a.block)});
  return {y};
}

Exprs ScaledMatmul::decompose(const Lower& c, const Attrs& a) {
  DType t = a.to == DType::f64 ? DType::f64 : DType::f32;
  for (const int i : {2, 3}) {
    if (c.has(i) && c.in(i).dtype() == DType::f64) t = DType::f64;
  }
  Expr x = cast(c.in(0), t), w = cast(c.in(1), t);
  const Dim k = x.dim(-1), n = w.dim(-1);
  if (c.has(2)) x = x * spread(cast(c.in(2), t), -1, k, a.block);
  if (c.has(3)) w = w * spread(spread(cast(c.in(3), t), -2, k, a.block), -1, n, a.block);
  return {cast(matmul(x, w), a.to)};
}

std::vector<OpSample<ScaledMatmul::Attrs>> ScaledMatmul::samples() {
  return {{{}, {"f8e4m3[3,5]", "f8e4m3[5,4]"}},
          {{DType::f32}, {"f8e4m3[2,3,7]", "f8e5m2[7,2]", "f32[1,1]"}},
          {{DType::f16}, {"f8e5m2[1,1]", "f8e5m2[1,1]", "f32[1,1]", "f32[1,1]"}},
          {{DType::f32}, {"f8e4m3[5,6]", "f8e4m3[6,3]", "f32[5,1]", "f32[1,3]"}},
          {{DType::bf16, 4}, {"f8e4m3[3,10]", "f8e4m3[10,6]", "f32[3,3]", "f32[3,2]"}},
          {{DType::f32, 4}, {"f8e5m2[2,3,5]", "f8e4m3[2,5,2]", "f32[2,3,2]", "f32[1,2,2]"}},
          {{DType::bf16, 32}, {"f8e4m3[17,70]", "f8e5m2[70,40]", "f32[17,3] unit", "f32[3,2] unit"}},
          {{DType::bf16}, {"f8e4m3[0,3]", "f8e4m3[3,2]"}},
          {{DType::f64}, {"f8e4m3[2,3]", "f8e4m3[3,2]", "f64[2,1]"}},
          {{DType::f32}, {"f8e4m3[2,0]", "f8e4m3[0,2]"}}};
}

Expr scaled_matmul(Expr x, Expr w, Expr x_scale, Expr w_scale, DType to, int64_t block) {
  if (w_scale && !x_scale)
    throw invalid("scaled_matmul: w_scale is given without x_scale; [1,1] of 1 stands for none");
  Values operands{x, w};
  if (x_scale) operands.push_back(x_scale);
  if (w_scale) operands.push_back(w_scale);
  return make<ScaledMatmul>(*x.graph, {to, block}, operands);
}

}  // namespace rlx::ops
