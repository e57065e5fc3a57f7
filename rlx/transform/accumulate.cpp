#include "rlx/transform/accumulate.h"

#include <algorithm>
#include <optional>

#include "rlx/ir/leaves.h"
#include "rlx/ops/elementwise/binary.h"
#include "rlx/ops/shape/concat.h"

namespace rlx::transform {
namespace {

using ir::Expr;
using ir::Exprs;
using ir::Node;

/// The operands of a concatenation from left to right; zeros may be taken in pieces.
class Parts {
 public:
  Parts(ir::Graph& g, const Node& concat, int axis) : g_(g), parts_(concat.inputs), axis_(axis) { begin(); }

  bool done() const { return at_ == parts_.size(); }
  bool is_zero() const {
    const Node& part = g_.node(parts_[at_]);
    return part.is<ir::Full>() && part.as<ir::Full>().value == 0;
  }
  int64_t length() const { return left_; }
  Expr value() const { return Expr{&g_, parts_[at_]}; }
  void take(int64_t length) {
    left_ -= length;
    if (left_ == 0) ++at_, begin();
  }

 private:
  void begin() {
    if (!done()) left_ = g_.shape(parts_[at_]).dim(axis_).value();
  }

  ir::Graph& g_;
  ir::Values parts_;
  int axis_;
  size_t at_ = 0;
  int64_t left_ = 0;
};

bool is_static(const ir::Graph& g, const Node& n) {
  return std::all_of(n.inputs.begin(), n.inputs.end(),
                     [&](ir::Value v) { return g.shape(v).is_static() && g.shape(v).elements() > 0; });
}

std::optional<Exprs> side_by_side(ir::Graph& g, const Node& x, const Node& y, int axis) {
  Exprs out;
  const Shape whole = x.shapes[0];
  Parts a(g, x, axis), b(g, y, axis);
  while (!a.done() && !b.done()) {
    if (!a.is_zero() && !b.is_zero()) return std::nullopt;
    const int64_t length = a.is_zero() && b.is_zero() ? std::min(a.length(), b.length())
                           : a.is_zero()              ? b.length()
                                                      : a.length();
    if (a.length() < length || b.length() < length) return std::nullopt;
    out.push_back(!a.is_zero()   ? a.value()
                  : !b.is_zero() ? b.value()
                                 : ir::full(g, whole.with_dim(axis, length), 0));
    a.take(length), b.take(length);
  }
  return out;
}

}  // namespace

Expr accumulated(Expr a, Expr b) {
  ir::Graph& g = *a.graph;
  const Node &x = g.node(a), &y = g.node(b);
  if (!x.is<ops::Concat>() || !y.is<ops::Concat>() || !is_static(g, x) || !is_static(g, y))
    return ops::add(a, b);
  const int axis = x.as<ops::Concat>().axis;
  if (axis != y.as<ops::Concat>().axis) return ops::add(a, b);
  const auto parts = side_by_side(g, x, y, axis);
  return parts ? ops::concat(*parts, axis) : ops::add(a, b);
}

}  // namespace rlx::transform
