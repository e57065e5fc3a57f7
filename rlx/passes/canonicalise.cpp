#include "rlx/passes/canonicalise.h"

#include <algorithm>
#include <array>

#include "rlx/ir/bodies.h"
#include "rlx/ir/inline.h"
#include "rlx/ir/leaves.h"
#include "rlx/ops/control/if.h"
#include "rlx/ops/elementwise/binary.h"
#include "rlx/ops/elementwise/cast.h"
#include "rlx/ops/shape/concat.h"
#include "rlx/ops/shape/expand.h"
#include "rlx/ops/shape/narrow.h"
#include "rlx/ops/shape/pad.h"
#include "rlx/ops/shape/reshape.h"
#include "rlx/ops/shape/slice.h"
#include "rlx/ops/shape/transpose.h"

namespace rlx::passes {
namespace {

bool is_number(const ir::Node& n) { return n.is<ir::Constant>() || n.is<ir::Full>(); }

bool keeps_order(const std::vector<int>& perm) { return std::ranges::is_sorted(perm); }

// Whether the only result is the first operand. Parts that have all sizes of the whole are the whole.
bool changes_nothing(const ir::Graph& g, const ir::Node& n) {
  if (n.shapes.size() != 1 || n.inputs.empty() || g.shape(n.inputs[0]) != n.shapes[0]) return false;
  if (n.is<ops::Transpose>()) return keeps_order(n.as<ops::Transpose>().perm);
  if (n.is<ops::Concat>()) return n.inputs.size() == 1;
  if (n.is<ops::Pad>()) {
    const auto none = [](Dim d) { return d == Dim(0); };
    return std::ranges::all_of(n.as<ops::Pad>().low, none) &&
           std::ranges::all_of(n.as<ops::Pad>().high, none);
  }
  return n.is<ops::Cast>() || n.is<ops::Reshape>() || n.is<ops::Expand>() || n.is<ops::Narrow>() ||
         n.is<ops::Slice>();
}

/// Bits of a number in front of its exponent, and the powers of two of its largest and least values.
struct Digits {
  int bits = 0, high = 0, low = 0;
  bool negative = true;
};

std::optional<Digits> digits_of(DType t) {
  switch (t) {
    case DType::bool_:
      return Digits{1, 1, 0, false};
    case DType::u8:
      return Digits{8, 8, 0, false};
    case DType::i8:
      return Digits{7, 7, 0};
    case DType::i16:
      return Digits{15, 15, 0};
    case DType::u32:
      return Digits{32, 32, 0, false};
    case DType::i32:
      return Digits{31, 31, 0};
    case DType::i64:
      return Digits{63, 63, 0};
    case DType::f16:
      return Digits{11, 16, -24};
    case DType::bf16:
      return Digits{8, 128, -133};
    case DType::f32:
      return Digits{24, 128, -149};
    case DType::f64:
      return Digits{53, 1024, -1074};
    default:
      return std::nullopt;
  }
}

// Whether a value of `from` comes through `middle` as it was.
bool holds_all(DType from, DType middle) {
  if (is_float(from) && !is_float(middle)) return false;  // infinities
  const auto a = digits_of(from), b = digits_of(middle);
  if (!a || !b || (a->negative && !b->negative)) return false;
  // The least integer, -2^bits, is one of two's complement and of any float that holds its neighbours.
  return a->bits <= b->bits && a->high <= b->high && a->low >= b->low;
}

// Whether x is cast to a type that holds all its values, and back.
bool comes_back(const ir::Graph& g, const ir::Node& inner, const Shape& result) {
  const Shape& x = g.shape(inner.inputs[0]);
  return x == result && holds_all(x.dtype(), inner.shapes[0].dtype());
}

// The value that the only result is equal to.
std::optional<ir::Value> same_as(const ir::Graph& g, const ir::Node& n) {
  if (changes_nothing(g, n)) return n.inputs[0];
  if (!n.is<ops::Cast>() && !n.is<ops::Reshape>()) return std::nullopt;
  const ir::Node& inner = g.node(n.inputs[0]);
  if (inner.op != n.op) return std::nullopt;
  const bool same =
      n.is<ops::Cast>() ? comes_back(g, inner, n.shapes[0]) : g.shape(inner.inputs[0]) == n.shapes[0];
  return same ? std::optional(inner.inputs[0]) : std::nullopt;
}

bool has_number_first(const ir::Graph& g, const ir::Node& n) {
  return may_exchange(n) && is_number(g.node(n.inputs[0])) && !is_number(g.node(n.inputs[1]));
}

bool is_turned_twice(const ir::Graph& g, const ir::Node& n) {
  return n.is<ops::Transpose>() && g.node(n.inputs[0]).is<ops::Transpose>();
}

// Whether the predicate of a branch holds, where that is known.
std::optional<bool> known_predicate(const ir::Graph& g, const ir::Node& n) {
  if (!n.is<ops::If>()) return std::nullopt;
  const ir::Node& p = g.node(n.inputs[0]);
  if (p.is<ir::Full>()) return Literal::scalar(p.shapes[0].dtype(), p.as<ir::Full>().value).real_at(0) != 0;
  if (p.is<ir::Constant>()) return p.as<ir::Constant>().value.real_at(0) != 0;
  return std::nullopt;
}

ir::Values taken(ir::Graph& g, const ir::Node& n, bool yes) {
  const ir::GraphRef& body = yes ? n.as<ops::If>().then_body : n.as<ops::If>().else_body;
  return ir::inline_graph(g, *body, std::span(n.inputs).subspan(1));
}

bool is_spelled(const ir::Graph& g, const ir::Node& n) {
  return !same_as(g, n) && !is_turned_twice(g, n) && !known_predicate(g, n) && !has_number_first(g, n);
}

bool all_spelled(const ir::Graph& g) {
  return std::ranges::all_of(g.nodes(), [&](const ir::Node* n) {
    bool inside = true;
    ir::for_each_body(*n,
                      [&](const auto&, const ir::GraphRef& body) { inside = inside && all_spelled(*body); });
    return inside && is_spelled(g, *n);
  });
}

}  // namespace

bool may_exchange(const ir::Node& n) {
  if (!n.op->traits.commutative || n.inputs.size() != 2) return false;
  return !is_float(n.shapes[0].dtype()) || !(n.is<ops::Max>() || n.is<ops::Min>());
}

ir::Expr turned(ir::Expr x, std::vector<int> perm) {
  const ir::Node& n = x.graph->node(x.value.node);
  if (n.is<ops::Transpose>()) {
    const std::vector<int>& inner = n.as<ops::Transpose>().perm;
    for (int& axis : perm) axis = inner[size_t(axis)];
    x.value = n.inputs[0];
  }
  return keeps_order(perm) ? x : ops::transpose(x, std::move(perm));
}

// Not `edit`: a body that is taken stands where the branch stood, since fusing joins neighbours.
ir::Rewritten canonicalise(ir::Graph graph) {
  if (all_spelled(graph)) return {std::move(graph), 0};
  return ir::rewrite(graph, [](ir::Cloner& copy, const ir::Node& before) -> std::optional<ir::Values> {
    if (before.op->traits.leaf) return std::nullopt;
    ir::Graph& g = copy.to();
    ir::Node n = before;  // on what took the places of its operands
    n.inputs = copy.at(before.inputs);
    const ir::OriginScope scope(g, ir::noted_origin(n, "canonicalise"));
    if (const auto same = same_as(g, n)) return ir::Values{*same};
    if (is_turned_twice(g, n)) return ir::Values{turned({&g, n.inputs[0]}, n.as<ops::Transpose>().perm)};
    if (const auto yes = known_predicate(g, n)) return taken(g, n, *yes);
    if (has_number_first(g, n))
      return ir::Values{g.value(g.append(*n.op, n.attrs, std::array{n.inputs[1], n.inputs[0]}, n.name))};
    return std::nullopt;
  });
}

}  // namespace rlx::passes
