// Calling builders of rlx::Graph on given values and comparing with numbers.
#pragma once

#include <gtest/gtest.h>

#include "rlx/lang/graph.h"
#include "tests/support/compare.h"

namespace rlx::test {

inline Literal f32(Dims dims, const std::vector<float>& v) { return Literal::of<float>(std::move(dims), v); }
inline Literal f64(Dims dims, const std::vector<double>& v) {
  return Literal::of<double>(std::move(dims), v);
}
inline Literal i32(Dims dims, const std::vector<int32_t>& v) {
  return Literal::of<int32_t>(std::move(dims), v);
}
inline Literal c64(Dims dims, const std::vector<complex64>& v) {
  return Literal::of<complex64>(std::move(dims), v);
}
inline Literal flags(Dims dims, const std::vector<int64_t>& v) {
  return Literal::integers(Shape(DType::bool_, std::move(dims)), v);
}
/// first, first + step, ... in row-major order.
inline Literal ramp(Dims dims, double first, double step, DType dtype = DType::f64) {
  const Shape shape(dtype, std::move(dims));
  std::vector<double> v(size_t(shape.elements()));
  for (size_t i = 0; i < v.size(); ++i) v[i] = first + step * double(i);
  return Literal::reals(shape, v);
}
/// Numbers without a pattern in [-1, 1].
inline Literal mixed(Dims dims, int seed = 0, DType dtype = DType::f64) {
  const Shape shape(dtype, std::move(dims));
  std::vector<double> v(size_t(shape.elements()));
  for (size_t i = 0; i < v.size(); ++i)
    v[i] = std::sin(1.7 * double(i + 1) + 0.9 * seed) * std::cos(0.3 * double(i) * seed + 1);
  return Literal::reals(shape, v);
}

inline void add_outputs(Values& out, Value v) { out.push_back(v); }
inline void add_outputs(Values& out, const Values& v) { out.insert(out.end(), v.begin(), v.end()); }
inline void add_outputs(Values& out, std::pair<Value, Value> v) {
  out.insert(out.end(), {v.first, v.second});
}

/// Outputs of build(graph, inputs), which returns a value, several or a pair.
template <class Build>
Literals run(const Literals& in, Build build) {
  Graph g("row");
  Values inputs, outputs;
  for (size_t i = 0; i < in.size(); ++i) inputs.push_back(g.input(cat("x", i), in[i].shape()));
  add_outputs(outputs, build(g, inputs));
  g.set_outputs(outputs);
  EXPECT_TRUE(g.verify().empty());
  return ir::interpret(g, in);
}

template <class Build>
void expect_row(const Literals& in, Build build, const Literal& want, double tolerance = 1e-6) {
  expect_close(run(in, build)[0], want, tolerance);
}

/// Gradient of sum(cotangent * forward(inputs)) in input k by central differences, for f64.
template <class Build>
Literal difference_gradient(Literals in, size_t k, const Literal& cotangent, Build forward) {
  const auto value = [&](const Literals& at) {
    const Literal y = run(at, forward)[0];
    double sum = 0;
    for (int64_t i = 0; i < y.elements(); ++i) sum += y.real_at(i) * cotangent.real_at(i);
    return sum;
  };
  constexpr double kStep = 1e-5;
  Literal out = Literal::zeros(in[k].shape());
  for (size_t i = 0; i < size_t(out.elements()); ++i) {
    const double at = in[k].real_at(int64_t(i));
    in[k].mutable_data<double>()[i] = at + kStep;
    const double above = value(in);
    in[k].mutable_data<double>()[i] = at - kStep;
    const double below = value(in);
    in[k].mutable_data<double>()[i] = at;
    out.mutable_data<double>()[i] = (above - below) / (2 * kStep);
  }
  return out;
}

}  // namespace rlx::test
