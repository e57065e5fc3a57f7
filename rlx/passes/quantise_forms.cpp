#include "rlx/passes/quantise_forms.h"

#include <algorithm>
#include <cmath>

#include "rlx/ir/leaves.h"
#include "rlx/ops/elementwise/binary.h"
#include "rlx/ops/elementwise/cast.h"
#include "rlx/ops/elementwise/clamp.h"
#include "rlx/ops/elementwise/math.h"
#include "rlx/ops/quant/quantize.h"
#include "rlx/passes/known_number.h"

namespace rlx::passes {
namespace {

bool is_code(DType t) { return t == DType::u8 || t == DType::i8; }
bool is_real(DType t) { return t == DType::f32 || t == DType::f64; }
double least_of(DType t) { return t == DType::i8 ? -128 : 0; }

std::optional<int64_t> known_code(const ir::Graph& g, ir::Value v) {
  const auto z = known_number(g, v);
  if (!z || *z != std::nearbyint(*z) || std::fabs(*z) > 255) return std::nullopt;
  return int64_t(*z);
}

// codes, codes - zero: a float with no scale of its own.
std::optional<Dequantised> centred(const ir::Graph& g, ir::Value v) {
  const ir::Node& n = g.node(v);
  if (n.is<ops::Sub>()) {
    auto d = centred(g, n.inputs[0]);
    const auto zero = known_code(g, n.inputs[1]);
    if (!d || !zero || d->zero != 0 || g.shape(n.inputs[0]) != n.shapes[0]) return std::nullopt;
    d->zero = *zero;
    return d;
  }
  if (!n.is<ops::Cast>() || !is_real(n.shapes[0].dtype())) return std::nullopt;
  const ir::Value from = n.inputs[0];
  if (is_code(g.shape(from).dtype())) return Dequantised{from};
  // Some models widen codes in two steps.
  const ir::Node& before = g.node(from);
  if (before.is<ops::Cast>() && is_real(before.shapes[0].dtype())) return centred(g, from);
  return std::nullopt;
}

ir::Value channel_scales(ir::Graph& g, const ops::ChannelScales& a, int rank) {
  const Dims dims = ops::channel_dims(rank, a.axis, int64_t(a.scales.size()));
  return g.constant(Literal::of<double>(dims, a.scales));
}

}  // namespace

bool Quantised::whole_range() const { return least == least_of(dtype) && most == least_of(dtype) + 255; }

std::optional<Dequantised> dequantised(ir::Graph& g, ir::Value v) {
  const ir::Node& n = g.node(v);
  if (n.is<ops::Dequantize>()) {
    const auto a = n.as<ops::Dequantize>();
    const ir::Value codes = n.inputs[0];
    return Dequantised{codes, a.zero_point, g.constant(Literal::scalar(DType::f64, a.scale))};
  }
  if (n.is<ops::DequantizePerChannel>()) {
    const auto a = n.as<ops::DequantizePerChannel>();
    for (const int64_t z : a.zero_points) {
      if (z != a.zero_points[0]) return std::nullopt;
    }
    if (a.zero_points.empty()) return std::nullopt;
    const ir::Value codes = n.inputs[0];
    return Dequantised{codes, a.zero_points[0], channel_scales(g, a, g.shape(codes).rank())};
  }
  if (n.is<ops::Mul>()) {
    for (size_t side = 0; side < 2; ++side) {
      auto d = centred(g, n.inputs[side]);
      if (!d || g.shape(n.inputs[side]) != n.shapes[0]) continue;
      d->scale = n.inputs[1 - side];
      return d;
    }
    return std::nullopt;
  }
  auto d = centred(g, v);
  if (d && g.shape(d->codes).dims() != n.shapes[0].dims()) return std::nullopt;
  return d;
}

std::optional<Quantised> quantised(const ir::Graph& g, const ir::Node& n, const ir::Values& operands) {
  if (n.is<ops::Quantize>()) {
    const auto& a = n.as<ops::Quantize>();
    if (!is_real(g.shape(operands[0]).dtype())) return std::nullopt;
    return Quantised{operands[0], a.scale, a.zero_point, -128, 127, DType::i8};
  }
  if (!n.is<ops::Cast>() || !is_code(n.shapes[0].dtype())) return std::nullopt;
  Quantised q{.x = operands[0], .dtype = n.shapes[0].dtype()};
  if (!is_real(g.shape(q.x).dtype())) return std::nullopt;
  q.least = least_of(q.dtype), q.most = q.least + 255;  // the cast saturates
  if (const ir::Node& c = g.node(q.x); c.is<ops::Clamp>()) {
    const auto& a = c.as<ops::Clamp>();
    q.least = std::max(q.least, std::ceil(a.lo)), q.most = std::min(q.most, std::floor(a.hi));
    q.x = c.inputs[0];
  }
  if (const ir::Node& add = g.node(q.x); add.is<ops::Add>()) {
    for (size_t side = 0; side < 2; ++side) {
      const auto zero = known_code(g, add.inputs[1 - side]);
      if (!zero || !g.node(add.inputs[side]).is<ops::Round>()) continue;
      q.zero = *zero;
      q.x = add.inputs[side];
      break;
    }
  }
  const ir::Node& round = g.node(q.x);
  if (!round.is<ops::Round>()) return std::nullopt;
  q.x = round.inputs[0];
  const ir::Node& scaled = g.node(q.x);
  if (scaled.is<ops::Div>()) {
    if (const auto scale = known_number(g, scaled.inputs[1]);
        scale && *scale > 0 && g.shape(scaled.inputs[0]) == scaled.shapes[0]) {
      q.scale = *scale;
      q.x = scaled.inputs[0];
    }
  }
  if (q.least > q.most || g.shape(q.x).dims() != n.shapes[0].dims()) return std::nullopt;
  return q;
}

bool is_fixed(const ir::Graph& g, ir::Value v) {
  std::vector<ir::NodeId> left{v.node}, seen;
  constexpr size_t kMostNodes = 64;
  while (!left.empty()) {
    const ir::Node& n = g.node(left.back());
    left.pop_back();
    if (std::find(seen.begin(), seen.end(), n.id) != seen.end()) continue;
    if (n.is<ir::Input>() || !n.op->traits.pure || seen.size() == kMostNodes) return false;
    seen.push_back(n.id);
    for (const ir::Value operand : n.inputs) left.push_back(operand.node);
  }
  return true;
}

}  // namespace rlx::passes
