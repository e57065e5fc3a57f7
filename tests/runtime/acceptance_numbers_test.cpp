// Numbers that sessions must give whatever runs them: products of packed weights, neighbours by cosine, Fourier transforms,
// solutions of systems that are nearly singular.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "rlx/ir/leaves.h"
#include "rlx/ops/fft/spectrum.h"
#include "rlx/quant/format.h"
#include "rlx/runtime/compiled_graph.h"
#include "rlx/transform/transform.h"
#include "tests/support/graphs.h"

namespace rlx {
namespace {

using test::graph;

Literal encoded(const quant::BlockFormat& f, int64_t n, int64_t k) {
  const Literal w = ir::sample_literal(cat(Shape(DType::f32, {n * k})), 5);
  std::vector<uint8_t> bytes(size_t(quant::encoded_bytes(f, n * k)));
  quant::encode(f, w.data<float>(), std::as_writable_bytes(std::span(bytes)));
  return Literal::of<uint8_t>({n, int64_t(bytes.size()) / n}, bytes);
}

TEST(BlockProducts, equal_decoding_first_for_every_format_depth_and_number_of_rows) {
  const int64_t n = 19;
  for (const quant::BlockFormat& f : quant::formats()) {
    if (f.is_plain() || f.decode == nullptr || f.encode == nullptr) continue;
    for (const int64_t blocks : {1, 3}) {
      const int64_t k = std::max<int64_t>(64, f.elements) * blocks;
      const Literal w = encoded(f, n, k);
      for (const int64_t rows : {1, 2, 7, 64}) {
        const ir::Graph g =
            graph(cat("graph @q(x: f32[", rows, ",", k, "], param w: ", w.shape(),
                      ") { y = dequant_matmul(x, w, scheme=\"gguf_", f.name, "\") return y }"));
        SCOPED_TRACE(cat(g));
        const Literal x = ir::sample_literal(cat(Shape(DType::f32, {rows, k})), 6);
        test::expect_close(compile(g, {{"w", w}}).run({{"x", x}}).at("y"),
                           ir::interpret(g, {{"x", x}, {"w", w}}).at("y"), 2e-4);
      }
    }
  }
}

// Cosines of all pairs of n points, and the k nearest of each.
ir::Graph neighbours(int64_t n, int64_t d, int64_t k) {
  ir::Graph g("neighbours");
  const ir::Expr x{&g, g.input("x", Shape(DType::f32, {n, d}))};
  const ir::Expr unit = ops::div(x, ops::sqrt(ops::reduce_sum(ops::mul(x, x), {1}, true)));
  const ir::Expr cosines = ops::matmul(unit, ops::swap_last(unit));
  const auto best = ops::top_k(cosines, k, 1);
  g.set_outputs({cosines, best[0], best[1]}, {"cosines", "values", "indices"});
  return g;
}

struct Pairs {
  std::vector<double> cosines;
  explicit Pairs(const Literal& x) {
    const int64_t n = x.shape().dim(0).value(), d = x.shape().dim(1).value();
    const auto at = [&](int64_t i, int64_t j) { return double(x.data<float>()[size_t(i * d + j)]); };
    const auto dot = [&](int64_t a, int64_t b) {
      double sum = 0;
      for (int64_t j = 0; j < d; ++j) sum += at(a, j) * at(b, j);
      return sum;
    };
    for (int64_t a = 0; a < n; ++a) {
      for (int64_t b = 0; b < n; ++b) cosines.push_back(dot(a, b) / std::sqrt(dot(a, a) * dot(b, b)));
    }
  }
};

// Every neighbour is the one of a plain search, unless two are equally near within the error of f32.
TEST(NearestNeighbours, by_cosine_are_those_of_a_plain_search) {
  const int64_t sizes[][3] = {{2, 64, 2}, {32, 64, 15}, {128, 32, 8}, {128, 64, 15}, {512, 64, 15}};
  for (const auto& [n, d, k] : sizes) {
    SCOPED_TRACE(cat(n, " points of ", d, " numbers"));
    const Literal x = ir::sample_literal(cat(Shape(DType::f32, {n, d})), 9);
    const NamedLiterals got = compile(neighbours(n, d, k)).run({{"x", x}});
    const Pairs want(x);
    for (int64_t a = 0; a < n; ++a) {
      std::vector<int64_t> order(static_cast<size_t>(n));
      std::iota(order.begin(), order.end(), 0);
      const auto cosine = [&](int64_t b) { return want.cosines[size_t(a * n + b)]; };
      std::stable_sort(order.begin(), order.end(),
                       [&](int64_t i, int64_t j) { return cosine(i) > cosine(j); });
      for (int64_t i = 0; i < k; ++i) {
        const auto found = int64_t(got.at("indices").real_at(a * k + i));
        const bool same = found == order[size_t(i)];
        EXPECT_TRUE(same || std::fabs(cosine(found) - cosine(order[size_t(i)])) < 1e-6) << a << ", " << i;
      }
      for (int64_t b = 0; b < n; ++b)
        ASSERT_NEAR(got.at("cosines").real_at(a * n + b), cosine(b), 1e-6) << a << ", " << b;
    }
  }
}

void expect_as_interpreted(const ir::Graph& g, double tolerance) {
  SCOPED_TRACE(cat(g));
  NamedLiterals leaves;
  for (const ir::NodeId id : g.leaves())
    leaves.emplace(ir::leaf_name(g.node(id)), ir::sample_literal(cat(g.node(id).shapes[0]), 5 + id));
  const NamedLiterals want = ir::interpret(g, leaves);
  for (const auto& [name, value] : compile(g).run(leaves))
    test::expect_close(value, want.at(name), tolerance);
}

template <class Build>
ir::Graph one_input(const Shape& shape, Build build) {
  ir::Graph g("fourier");
  const ir::Exprs results = build(ir::Expr{&g, g.input("x", shape)});
  ir::Values outputs(results.begin(), results.end());
  g.set_outputs(outputs);
  return g;
}

using ops::FftNorm;
constexpr FftNorm kNorms[] = {FftNorm::backward, FftNorm::forward, FftNorm::ortho};

TEST(FourierTransforms, of_every_length_direction_and_norm) {
  for (const int64_t n : {1, 2, 8, 15, 17, 60, 97, 128}) {
    for (const FftNorm norm : kNorms) {
      for (const bool inverse : {false, true}) {
        expect_as_interpreted(
            one_input(Shape(DType::c64, {3, n}),
                      [&](ir::Expr x) { return ir::Exprs{ops::fft_norm(x, inverse, norm)}; }),
            2e-4);
      }
    }
  }
}

TEST(FourierTransforms, come_back_over_any_axes) {
  for (const FftNorm norm : {FftNorm::forward, FftNorm::ortho}) {
    const ir::Graph g = one_input(Shape(DType::c64, {6, 5, 8}), [&](ir::Expr x) {
      const ir::Expr one = ops::fft_axis(ops::fft_axis(x, 0, false, norm), 0, true, norm);
      const ir::Expr two = ops::ifftn(ops::fftn(x, {0, 2}, false, norm), {0, 2}, norm);
      return ir::Exprs{one, two};
    });
    const Literal x = ir::sample_literal("c64[6,5,8]", 3);
    for (const auto& [name, value] : compile(g).run({{"x", x}})) test::expect_close(value, x, 1e-5);
  }
}

TEST(FourierTransforms, of_real_signals_frames_and_densities) {
  for (const int64_t n : {16, 21}) {
    expect_as_interpreted(one_input(Shape(DType::f32, {4, n}),
                                    [&](ir::Expr x) {
                                      const ops::Spectrum padded = ops::rfft(x), exact = ops::rfft_exact(x);
                                      return ir::Exprs{padded.re, padded.im, exact.re, exact.im,
                                                       ops::irfft_exact(exact.re, exact.im, n)};
                                    }),
                          1e-4);
  }
  expect_as_interpreted(
      one_input(Shape(DType::f32, {2, 64}), [](ir::Expr x) { return ir::Exprs{ops::stft(x, 16, 8)}; }), 1e-4);
}

TEST(FourierTransforms, have_gradients) {
  for (const FftNorm norm : kNorms) {
    const ir::Graph loss = one_input(Shape(DType::f64, {3, 14}), [&](ir::Expr x) {
      const ir::Expr y = ops::fft_norm(x, false, norm);
      return ir::Exprs{ops::reduce_sum(ops::mul(ops::sin(y), y), {})};
    });
    expect_as_interpreted(transform::value_and_grad(loss, {"x"}), 1e-9);
  }
}

// a is nearly singular: its condition number is about 10^(2 decades). The error of a backward stable solver grows with
// it; the residual does not.
TEST(Solvers, leave_a_small_residual_where_the_matrix_is_nearly_singular) {
  const ir::Graph g = graph(R"(graph @solve(a: f64[12,12], b: f64[12,3]) {
    x = dense_solve(a, b)
    r = sub(matmul(a, x), b)
    return x, r
  })");
  for (const int decades : {2, 6, 12}) {
    Literal a = ir::sample_literal("f64[12,12]", 4);
    // The last row nearly repeats the first.
    const auto values = a.mutable_data<double>();
    for (size_t j = 0; j < 12; ++j)
      values[11 * 12 + j] = values[j] * (1 + (j == 3 ? std::pow(10, -decades) : 0));
    const NamedLiterals in{{"a", a}, {"b", ir::sample_literal("f64[12,3]", 8)}};
    const NamedLiterals got = compile(g).run(in), want = ir::interpret(g, in);
    double largest = 0;
    for (int64_t i = 0; i < 36; ++i) largest = std::max(largest, std::fabs(got.at("x").real_at(i)));
    for (int64_t i = 0; i < 36; ++i) {
      EXPECT_NEAR(got.at("r").real_at(i), 0, 1e-14 * 12 * largest) << decades;
      EXPECT_NEAR(got.at("x").real_at(i), want.at("x").real_at(i), 1e-13 * std::pow(10, decades) * largest);
    }
  }
}

}  // namespace
}  // namespace rlx
