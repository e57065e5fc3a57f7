#include "rlx/ops/elementwise/select.h"

#include <cstring>

#include "rlx/ops/elementwise/binary.h"

namespace rlx::ops {

Shapes Where::infer(Infer& c, Attrs&) {
  c.same_dtype({1, 2});
  if (is_complex(c.in(0).dtype())) c.fail("cond: ", c.in(0), " is complex; it must be bool or real");
  const Shape sides(c.in(1).dtype(), c.broadcast(c.in(1), c.in(2)));
  return {sides.with_dims(c.broadcast(c.in(0), sides))};
}

Literals Where::reference(const Eval& c, const Attrs&) {
  const Literal &cond = c.in(0), &a = c.in(1), &b = c.in(2);
  const auto at_cond = broadcast_positions(cond.shape().dims(), c.out().dims());
  const auto at_a = broadcast_positions(a.shape().dims(), c.out().dims());
  const auto at_b = broadcast_positions(b.shape().dims(), c.out().dims());
  Literal y = Literal::zeros(c.out());
  const size_t size = dtype_size(c.out().dtype());
  std::byte* to = y.mutable_bytes().data();
  for (size_t i = 0; i < at_cond.size(); ++i) {
    const bool yes = cond.real_at(at_cond[i]) != 0;
    const std::byte* from =
        yes ? a.bytes().data() + size_t(at_a[i]) * size : b.bytes().data() + size_t(at_b[i]) * size;
    std::memcpy(to + i * size, from, size);
  }
  return {y};
}

Exprs Where::vjp(const Vjp& c, const Attrs&) {
  const Expr cond = c.in(0), dy = c.dy(), zero = scalar_like(dy, 0);
  Exprs out(3);
  if (c.wants(1)) out[1] = unbroadcast(where(cond, dy, zero), c.in(1).shape().dims());
  if (c.wants(2)) out[2] = unbroadcast(where(cond, zero, dy), c.in(2).shape().dims());
  return out;
}

Exprs Where::jvp(const Jvp& c, const Attrs&) {
  if (!c.has_dx(1) && !c.has_dx(2)) return {Expr{}};
  return {where(c.in(0), c.dx(1), c.dx(2))};
}

std::vector<OpSample<Where::Attrs>> Where::samples() {
  return {{{}, {"bool[2,3]", "f32[2,3]", "f32[2,3]"}}, {{}, {"bool[4,1]", "f64[3]", "f64[]"}},
          {{}, {"bool[]", "i32[2]", "i32[2]"}},        {{}, {"i32[3] <2", "f32[3]", "f32[1]"}},
          {{}, {"bool[0]", "f16[0]", "f16[1]"}},       {{}, {"bool[2]", "c64[2]", "c64[2]"}},
          {{}, {"bool[5]", "bool[5]", "bool[5]"}}};
}

Expr where(Expr cond, Expr a, Expr b) { return make<Where>(*cond.graph, {}, {cond, a, b}); }

}  // namespace rlx::ops
