#include "rlx/runtime/deviation.h"

#include <cmath>

#include "rlx/ir/bodies.h"

namespace rlx {
namespace {

bool rounds(DType t) { return is_float(t) || is_complex(t); }

// Of what the node itself computes: its results, and every value in its bodies.
double own_tolerance(const ir::Node& n) {
  if (n.inputs.empty()) return 0;  // leaves and constants are as they are
  double worst = 0;
  for (const Shape& s : n.shapes) {
    if (rounds(s.dtype())) worst = std::max(worst, default_tolerance(s.dtype()));
  }
  ir::for_each_body(n, [&](const ir::FieldInfo&, const ir::GraphRef& body) {
    for (const ir::Node* inner : body->nodes()) worst = std::max(worst, own_tolerance(*inner));
  });
  return worst;
}

}  // namespace

double default_tolerance(DType t) {
  switch (t) {
    case DType::f64:
      return 1e-10;
    case DType::f16:
      return 4e-3;
    case DType::bf16:
      return 3e-2;
    case DType::f8e4m3:
    case DType::f8e5m2:
      return 0.25;
    default:
      return 1e-4;
  }
}

std::vector<double> default_tolerances(const ir::Graph& g) {
  std::vector<double> out(g.next_id(), 0);
  for (const ir::Node* n : g.nodes()) {
    out[n->id] = own_tolerance(*n);
    for (const ir::Value v : n->inputs) out[n->id] = std::max(out[n->id], out[v.node]);
  }
  return out;
}

std::vector<double> output_tolerances(const ir::Graph& g, std::optional<double> asked) {
  const std::vector<double> of = default_tolerances(g);
  std::vector<double> out;
  for (const ir::Value v : g.outputs())
    out.push_back(rounds(g.shape(v).dtype()) ? asked.value_or(of[v.node]) : 0);
  return out;
}

Deviation deviation(const Literal& a, const Literal& b) {
  RLX_CHECK(a.shape() == b.shape(), "deviation of ", a.shape(), " and ", b.shape());
  Deviation out;
  double largest = 0;
  for (int64_t i = 0; i < a.elements(); ++i) {
    const double size = std::abs(a.complex_at(i));
    if (std::isfinite(size)) largest = std::max(largest, size);
  }
  for (int64_t i = 0; i < a.elements(); ++i) {
    const std::complex<double> x = a.complex_at(i), y = b.complex_at(i);
    const auto apart = [&](double p, double q) {
      if (p == q || (std::isnan(p) && std::isnan(q))) return 0.0;
      return std::isfinite(p) && std::isfinite(q) ? std::fabs(p - q) / (1 + largest) : INFINITY;
    };
    const double error = std::max(apart(x.real(), y.real()), apart(x.imag(), y.imag()));
    if (error > out.error) out = {error, i, x.real(), y.real()};
  }
  return out;
}

}  // namespace rlx
