#include "rlx/passes/quantise.h"

#include <algorithm>
#include <cmath>

#include "rlx/ir/leaves.h"
#include "rlx/ops/elementwise/activation.h"
#include "rlx/ops/elementwise/binary.h"
#include "rlx/ops/elementwise/cast.h"
#include "rlx/ops/elementwise/math.h"
#include "rlx/ops/linalg/matmul.h"
#include "rlx/ops/quant/fake_quantize.h"
#include "rlx/ops/quant/q_matmul.h"
#include "rlx/ops/quant/quantize.h"
#include "rlx/ops/shape/narrow.h"
#include "rlx/ops/shape/reshape.h"
#include "rlx/ops/shape/transpose.h"

namespace rlx::passes {
namespace {

constexpr double kLeastScale = 1e-12;

void check_code(const std::string& name, const TensorCode& code, const Shape& type) {
  const auto wrong = [&](const auto&... what) {
    return invalid("quantise: '", name, "' is ", type, ", ", what...);
  };
  if (type.dtype() != DType::f32) throw wrong("only f32 can be rounded");
  if (code.axis && (*code.axis < 0 || *code.axis >= type.rank())) throw wrong("it has no axis ", *code.axis);
  const Dim wanted = code.axis ? type.dim(*code.axis) : Dim(1);
  if (wanted != Dim(int64_t(code.scales.size())) || code.scales.size() != code.zero_points.size())
    throw wrong("it has ", code.scales.size(), " scales and ", code.zero_points.size(), " zero points; ",
                wanted, " of each expected");
  for (const double s : code.scales) {
    if (!(s > 0) || !std::isfinite(s)) throw wrong("its scale ", s, " is not a positive number");
  }
  for (const int64_t z : code.zero_points) {
    if (z < -128 || z > 127) throw wrong("its zero point ", z, " is not in -128 .. 127");
  }
}

ir::Value rounded(ir::Graph& g, ir::Value v, const TensorCode& code) {
  const ir::Expr x{&g, v};
  if (!code.axis)
    return ops::dequantize(ops::quantize(x, code.scales[0], code.zero_points[0]), code.scales[0],
                           code.zero_points[0]);
  return ops::dequantize_per_channel(ops::quantize_per_channel(x, *code.axis, code.scales, code.zero_points),
                                     *code.axis, code.scales, code.zero_points);
}

// Keeps every value among the codes of a fixed scale: moves elements, leaves some out, or puts zeros in place of some.
bool keeps_codes(const ir::Node& n) {
  return n.is<ops::Reshape>() || n.is<ops::Transpose>() || n.is<ops::Narrow>() || n.is<ops::Relu>();
}

const ops::FakeQuantize::Attrs* fixed_rounding(const ir::Node& n) {
  if (!n.is<ops::FakeQuantize>()) return nullptr;
  const auto& a = n.as<ops::FakeQuantize>();
  return a.scale_mode == ops::ScaleMode::fixed && !a.axis && n.inputs.size() == 2 ? &a : nullptr;
}

/// The codes a value was made of.
struct Dequantized {
  ir::Expr codes;
  ops::TensorScale scale;
};
std::optional<Dequantized> dequantized(ir::Graph& g, ir::Value v) {
  const ir::Node& n = g.node(v);
  if (!n.is<ops::Dequantize>()) return std::nullopt;
  return Dequantized{{&g, n.inputs[0]}, n.as<ops::Dequantize>()};
}

std::optional<ir::Values> product_of_codes(ir::Graph& g, const ir::Node& quantize, ir::Value sum) {
  const auto& to = quantize.as<ops::Quantize>();
  // The sum of a product and a bias, in any order, or the product alone.
  ir::Value product = sum;
  std::optional<ir::Value> bias;
  if (g.node(sum).is<ops::Add>()) {
    const ir::Values both = g.node(sum).inputs;
    const bool first = g.node(both[0]).is<ops::Matmul>();
    product = both[first ? 0 : 1];
    bias = both[first ? 1 : 0];
  }
  const ir::Node& m = g.node(product);
  if (!m.is<ops::Matmul>()) return std::nullopt;
  const auto x = dequantized(g, m.inputs[0]), w = dequantized(g, m.inputs[1]);
  if (!x || !w || g.shape(m.inputs[0]).rank() < 2 || g.shape(m.inputs[1]).rank() != 2) return std::nullopt;
  const Dim columns = g.shape(m.inputs[1]).dim(1);
  const double unit = x->scale.scale * w->scale.scale;
  ir::Expr start;
  if (bias) {
    if (g.shape(*bias) != Shape(DType::f32, {columns})) return std::nullopt;
    const ir::Expr b{&g, *bias};
    start = ops::cast(ops::round(ops::div(b, ops::scalar_like(b, unit))), DType::i32);
  } else {
    start = ir::full(g, Shape(DType::i32, {columns}), 0);
  }
  return ir::Values{ops::q_matmul(x->codes, w->codes, start, x->scale.zero_point, w->scale.zero_point,
                                  to.zero_point, unit / to.scale)};
}

}  // namespace

TensorCode symmetric_code(double low, double high) {
  const double largest = std::max(std::fabs(low), std::fabs(high));
  return {.axis = {}, .scales = {std::max(largest / 127, kLeastScale)}, .zero_points = {0}};
}

TensorCode affine_code(double low, double high) {
  low = std::min(low, 0.0);
  high = std::max(high, 0.0);
  const double scale = std::max((high - low) / 255, kLeastScale);
  const double zero = std::clamp(std::nearbyint(-128 - low / scale), -128.0, 127.0);
  return {.axis = {}, .scales = {scale}, .zero_points = {int64_t(zero)}};
}

ir::Graph insert_rounding(const ir::Graph& from, const std::map<std::string, TensorCode>& taps) {
  ir::Graph out(from.name());
  out.assume_sizes_of(from);
  ir::Cloner copy(out);
  std::map<std::string, bool> met;
  for (const ir::Node* n : from.nodes()) {
    copy.copy(*n);
    const std::string& name = n->op->traits.leaf ? ir::leaf_name(*n) : n->name;
    const auto tap = taps.find(name);
    if (tap == taps.end()) continue;
    if (n->shapes.size() != 1)
      throw invalid("quantise: '", name, "' has ", n->shapes.size(), " results; one expected");
    check_code(name, tap->second, n->shapes[0]);
    met[name] = true;
    const ir::OriginScope scope(out, ir::noted_origin(*n, "rounded to i8"));
    copy.set(n->result(), rounded(out, copy.at(n->result()), tap->second));
  }
  std::vector<std::string> unknown;
  for (const auto& [name, code] : taps) {
    if (!met.contains(name)) unknown.push_back(cat("'", name, "'"));
  }
  if (!unknown.empty())
    throw invalid("quantise: no value of graph '", from.name(), "' is called ", join(unknown));
  ir::Values outputs;
  for (const ir::Value v : from.outputs()) outputs.push_back(copy.at(v));
  out.set_outputs(outputs, from.output_names());
  return out;
}

ir::Rewritten merge_roundings(const ir::Graph& graph) {
  return ir::rewrite(graph, [](ir::Cloner& copy, const ir::Node& n) -> std::optional<ir::Values> {
    const auto* second = fixed_rounding(n);
    if (!second) return std::nullopt;
    const ir::Graph& g = copy.to();
    const ir::Value operand = copy.at(n.inputs[0]), scale = copy.at(n.inputs[1]);
    ir::Value v = operand;
    while (keeps_codes(g.node(v))) v = g.node(v).inputs[0];
    const auto* first = fixed_rounding(g.node(v));
    const bool same = first && v.index == 0 && first->bits == second->bits && first->ste == second->ste &&
                      g.node(v).inputs[1] == scale && g.shape(scale) == n.shapes[1];
    return same ? std::optional(ir::Values{operand, scale}) : std::nullopt;
  });
}

ir::Rewritten quantise_products(const ir::Graph& graph) {
  return ir::rewrite(graph, [](ir::Cloner& copy, const ir::Node& n) -> std::optional<ir::Values> {
    if (!n.is<ops::Quantize>()) return std::nullopt;
    return product_of_codes(copy.to(), n, copy.at(n.inputs[0]));
  });
}

}  // namespace rlx::passes
