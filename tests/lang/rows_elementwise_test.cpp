// Rows of the public surface: element by element, reductions, shapes, indices.
#include <cmath>

#include "tests/lang/rows.h"

namespace rlx {
namespace {

using namespace test;

const Literal kA = f32({2}, {4, -9}), kB = f32({2}, {2, 3});
const Literal kX = f32({3}, {-1, 0, 2});

#define RLX_BINARY_ROW(name, ...)                                                                       \
  TEST(GraphRow, name) {                                                                                \
    expect_row(                                                                                         \
        {kA, kB}, [](Graph& g, const Values& v) { return g.name(v[0], v[1]); }, f32({2}, __VA_ARGS__)); \
  }
RLX_BINARY_ROW(add, {6, -6})
RLX_BINARY_ROW(sub, {2, -12})
RLX_BINARY_ROW(mul, {8, -27})
RLX_BINARY_ROW(div, {2, -3})
#undef RLX_BINARY_ROW

TEST(GraphRow, binary) {
  expect_row(
      {kA, kB}, [](Graph& g, const Values& v) { return g.binary(BinaryOp::max, v[0], v[1]); },
      f32({2}, {4, 3}));
}

#define RLX_UNARY_ROW(name, ...)                                                                     \
  TEST(GraphRow, name) {                                                                             \
    expect_row({kX}, [](Graph& g, const Values& v) { return g.name(v[0]); }, f32({3}, __VA_ARGS__)); \
  }
RLX_UNARY_ROW(gelu, {-0.15865525f, 0, 1.9544997f})
RLX_UNARY_ROW(gelu_approx, {-0.15880801f, 0, 1.9545977f})
RLX_UNARY_ROW(silu, {-0.26894142f, 0, 1.7615942f})
RLX_UNARY_ROW(relu, {0, 0, 2})
RLX_UNARY_ROW(exp, {0.36787944f, 1, 7.389056f})
RLX_UNARY_ROW(neg, {1, 0, -2})
RLX_UNARY_ROW(tanh, {-0.7615942f, 0, 0.9640276f})
#undef RLX_UNARY_ROW
TEST(GraphRow, sqrt) {
  expect_row(
      {f32({2}, {4, 2})}, [](Graph& g, const Values& v) { return g.sqrt(v[0]); }, f32({2}, {2, 1.4142135f}));
}
TEST(GraphRow, activation) {
  expect_row(
      {kX}, [](Graph& g, const Values& v) { return g.activation(Activation::sigmoid, v[0]); },
      f32({3}, {0.26894142f, 0.5f, 0.880797f}));
}
TEST(GraphRow, where) {
  expect_row(
      {flags({2}, {1, 0}), kA, kB}, [](Graph& g, const Values& v) { return g.where(v[0], v[1], v[2]); },
      f32({2}, {4, 3}));
}
TEST(GraphRow, compare) {
  expect_row(
      {kA, kB}, [](Graph& g, const Values& v) { return g.compare(CompareOp::ge, v[0], v[1]); },
      flags({2}, {1, 0}));
}
TEST(GraphRow, eq) {
  expect_row({kA, kA}, [](Graph& g, const Values& v) { return g.eq(v[0], v[1]); }, flags({2}, {1, 1}));
}
TEST(GraphRow, lt) {
  expect_row({kA, kB}, [](Graph& g, const Values& v) { return g.lt(v[0], v[1]); }, flags({2}, {0, 1}));
}
TEST(GraphRow, cast) {
  expect_row(
      {f32({3}, {1.9f, -1.9f, 3e9f})}, [](Graph& g, const Values& v) { return g.cast(v[0], DType::i32); },
      i32({3}, {1, -1, 2147483647}));
}
TEST(GraphRow, complex_norm_sq) {
  expect_row(
      {c64({1}, {{3, 4}})}, [](Graph& g, const Values& v) { return g.complex_norm_sq(v[0]); },
      f32({1}, {25}));
}
TEST(GraphRow, conjugate) {
  expect_row(
      {c64({1}, {{3, 4}})}, [](Graph& g, const Values& v) { return g.conjugate(v[0]); }, c64({1}, {{3, -4}}));
}

const Literal kM = f32({2, 3}, {1, 2, 3, 4, 5, 6});

TEST(GraphRow, reduce) {
  expect_row(
      {kM}, [](Graph& g, const Values& v) { return g.reduce(v[0], ReduceOp::prod, {1}, true); },
      f32({2, 1}, {6, 120}));
}
TEST(GraphRow, sum) {
  expect_row({kM}, [](Graph& g, const Values& v) { return g.sum(v[0], {0}, false); }, f32({3}, {5, 7, 9}));
}
TEST(GraphRow, mean) {
  expect_row({kM}, [](Graph& g, const Values& v) { return g.mean(v[0], {-1}, true); }, f32({2, 1}, {2, 5}));
}
TEST(GraphRow, softmax) {
  expect_row(
      {f32({2, 2}, {0, 0, 0, std::log(3.0f)})}, [](Graph& g, const Values& v) { return g.softmax(v[0], 0); },
      f32({2, 2}, {0.5, 0.25, 0.5, 0.75}));
}
TEST(GraphRow, sm) {
  expect_row(
      {f32({1, 2}, {0, std::log(3.0f)})}, [](Graph& g, const Values& v) { return g.sm(v[0], -1); },
      f32({1, 2}, {0.25, 0.75}));
}
TEST(GraphRow, cumsum) {
  expect_row(
      {kM}, [](Graph& g, const Values& v) { return g.cumsum(v[0], 1, true); },
      f32({2, 3}, {0, 1, 3, 0, 4, 9}));
}

TEST(GraphRow, reshape) {
  expect_row(
      {kM}, [](Graph& g, const Values& v) { return g.reshape(v[0], {3, -1}); },
      f32({3, 2}, {1, 2, 3, 4, 5, 6}));
}
TEST(GraphRow, reshape_) {
  expect_row(
      {kM}, [](Graph& g, const Values& v) { return g.reshape_(v[0], {6}); }, f32({6}, {1, 2, 3, 4, 5, 6}));
}
TEST(GraphRow, transpose) {
  expect_row(
      {kM}, [](Graph& g, const Values& v) { return g.transpose(v[0], {1, 0}); },
      f32({3, 2}, {1, 4, 2, 5, 3, 6}));
}
TEST(GraphRow, transpose_) {
  expect_row(
      {kM}, [](Graph& g, const Values& v) { return g.transpose_(v[0], {}); },
      f32({3, 2}, {1, 4, 2, 5, 3, 6}));
}
TEST(GraphRow, narrow) {
  expect_row(
      {kM}, [](Graph& g, const Values& v) { return g.narrow(v[0], 1, 1, 2); }, f32({2, 2}, {2, 3, 5, 6}));
}
TEST(GraphRow, narrow_) {
  expect_row(
      {kM}, [](Graph& g, const Values& v) { return g.narrow_(v[0], 0, 1, 1); }, f32({1, 3}, {4, 5, 6}));
}
TEST(GraphRow, concat) {
  expect_row(
      {kM, f32({2, 1}, {7, 8})}, [](Graph& g, const Values& v) { return g.concat({v[0], v[1]}, -1); },
      f32({2, 4}, {1, 2, 3, 7, 4, 5, 6, 8}));
}
TEST(GraphRow, concat_) {
  expect_row(
      {kM, f32({1, 3}, {7, 8, 9})}, [](Graph& g, const Values& v) { return g.concat_({v[0], v[1]}, 0); },
      f32({3, 3}, {1, 2, 3, 4, 5, 6, 7, 8, 9}));
}
TEST(GraphRow, expand) {
  expect_row(
      {f32({2, 1}, {1, 2})}, [](Graph& g, const Values& v) { return g.expand(v[0], {2, 2}); },
      f32({2, 2}, {1, 1, 2, 2}));
}
TEST(GraphRow, gather) {
  // Along axis 1 the axes before it stay: result [2, 2].
  expect_row(
      {kM, i32({2}, {2, 0})}, [](Graph& g, const Values& v) { return g.gather(v[0], v[1], 1); },
      f32({2, 2}, {3, 1, 6, 4}));
  // Whole-valued floats count as indices.
  expect_row(
      {kM, f32({1}, {1})}, [](Graph& g, const Values& v) { return g.gather(v[0], v[1], 0); },
      f32({1, 3}, {4, 5, 6}));
}
TEST(GraphRow, gather_) {
  expect_row(
      {kM, i32({1, 2}, {1, 1})}, [](Graph& g, const Values& v) { return g.gather_(v[0], v[1], 0); },
      f32({1, 2, 3}, {4, 5, 6, 4, 5, 6}));
}

}  // namespace
}  // namespace rlx
