// Rows of the public surface: tracing.
#include <cmath>

#include "rlx/lang/trace.h"
#include "tests/lang/rows.h"

namespace rlx {
namespace {

using namespace test;

// fn(tracer, tensors) on inputs of these values.
template <class Fn>
Literal traced(const Literals& in, Fn fn) {
  const Graph g = trace("row", [&](Tracer& t) {
    Tensors x;
    for (size_t i = 0; i < in.size(); ++i)
      x.push_back(t.input_dyn(cat("x", i), in[i].shape().dims(), in[i].dtype()));
    return fn(t, x);
  });
  EXPECT_TRUE(g.verify().empty());
  return ir::interpret(g, in)[0];
}

const Literal kM = f32({2, 3}, {1, 2, 3, 4, 5, 6});

TEST(TraceRow, trace) {
  expect_close(traced({f32({2}, {1, 2})}, [](Tracer&, const Tensors& x) { return x[0] * x[0] + 1; }),
               f32({2}, {2, 5}), 0);
}
TEST(TraceRow, input) {
  const Graph g = trace("g", [](Tracer& t) { return t.input("ids", {3}, DType::i64); });
  EXPECT_EQ(cat(g.shape(g.outputs()[0])), "i64[3]");
  EXPECT_EQ(g.interpret({{"ids", Literal::of<int64_t>({3}, {1, 2, 3})}}).begin()->second.integer_at(2), 3);
}
TEST(TraceRow, input_dyn) {
  const Graph g = trace("g", [](Tracer& t) { return t.input_dyn("x", {Dim::seq(), 2}).sum(); });
  EXPECT_EQ(g.dynamic_symbols(), std::vector<std::string>{"seq"});
  EXPECT_EQ(ir::interpret(g, Literals{f32({1, 2}, {3, 4})})[0].real_at(0), 7);
}
TEST(TraceRow, param) {
  const Graph g = trace("g", [](Tracer& t) { return t.param("w", {2}, DType::f64) * 2; });
  EXPECT_EQ(g.params().size(), 1u);
  EXPECT_EQ(ir::interpret(g, Literals{f64({2}, {1, 5})})[0].real_at(1), 10);
}
TEST(TraceRow, matmul) {
  const auto product = [](Tracer& t, const Tensors& x) { return t.matmul(x[0], x[1]); };
  expect_close(traced({kM, f32({3, 1}, {1, 0, 2})}, product), f32({2, 1}, {7, 16}), 0);
}
TEST(TraceRow, mm) {
  expect_close(traced({kM, f32({3, 1}, {1, 0, 2})}, [](Tracer&, const Tensors& x) { return x[0].mm(x[1]); }),
               f32({2, 1}, {7, 16}), 0);
}
TEST(TraceRow, layer_norm) {
  expect_close(traced({f64({1, 2}, {1, 3}), f64({2}, {10, 100}), f64({2}, {1, 2})},
                      [](Tracer& t, const Tensors& x) { return t.layer_norm(x[0], x[1], x[2], 0); }),
               f64({1, 2}, {-9, 102}), 1e-9);
}
TEST(TraceRow, softmax) {
  expect_close(
      traced({f32({2}, {0, std::log(3.0f)})}, [](Tracer& t, const Tensors& x) { return t.softmax(x[0]); }),
      f32({2}, {0.25, 0.75}), 1e-6);
}
TEST(TraceRow, gather) {
  expect_close(traced({kM, i32({1}, {1})}, [](Tracer& t, const Tensors& x) { return t.gather(x[0], x[1]); }),
               f32({1, 3}, {4, 5, 6}), 0);
}
TEST(TraceRow, operators) {
  expect_close(traced({f32({2}, {1, 2}), f32({2}, {3, 5})},
                      [](Tracer&, const Tensors& x) { return -(2 * x[0] - x[1] / 2) + 1; }),
               f32({2}, {0.5, -0.5}), 1e-6);
}
TEST(TraceRow, gelu) {
  expect_close(traced({f32({1}, {2})}, [](Tracer&, const Tensors& x) { return x[0].gelu(); }),
               f32({1}, {1.9544997f}), 1e-6);
}
TEST(TraceRow, silu) {
  expect_close(traced({f32({1}, {2})}, [](Tracer&, const Tensors& x) { return x[0].silu(); }),
               f32({1}, {1.7615942f}), 1e-6);
}
TEST(TraceRow, relu) {
  expect_close(traced({f32({2}, {-2, 2})}, [](Tracer&, const Tensors& x) { return x[0].relu(); }),
               f32({2}, {0, 2}), 0);
}
TEST(TraceRow, reshape) {
  expect_close(traced({kM}, [](Tracer&, const Tensors& x) { return x[0].reshape({3, 2}); }),
               f32({3, 2}, {1, 2, 3, 4, 5, 6}), 0);
}
const Literal kTurned = f32({3, 2}, {1, 4, 2, 5, 3, 6});
TEST(TraceRow, transpose) {
  expect_close(traced({kM}, [](Tracer&, const Tensors& x) { return x[0].transpose({1, 0}); }), kTurned, 0);
}
TEST(TraceRow, permute) {
  expect_close(traced({kM}, [](Tracer&, const Tensors& x) { return x[0].permute({1, 0}); }), kTurned, 0);
}
TEST(TraceRow, t) {
  expect_close(traced({kM}, [](Tracer&, const Tensors& x) { return x[0].t(); }), kTurned, 0);
}
TEST(TraceRow, narrow) {
  expect_close(traced({kM}, [](Tracer&, const Tensors& x) { return x[0].narrow(-1, 1, 2); }),
               f32({2, 2}, {2, 3, 5, 6}), 0);
}
TEST(TraceRow, unsqueeze) {
  expect_close(traced({f32({2}, {1, 2})}, [](Tracer&, const Tensors& x) { return x[0].unsqueeze(0); }),
               f32({1, 2}, {1, 2}), 0);
}
TEST(TraceRow, squeeze) {
  expect_close(traced({f32({1, 2}, {1, 2})}, [](Tracer&, const Tensors& x) { return x[0].squeeze(0); }),
               f32({2}, {1, 2}), 0);
}
TEST(TraceRow, rank) {
  traced({kM}, [](Tracer&, const Tensors& x) {
    EXPECT_EQ(x[0].rank(), 2);
    return x[0];
  });
}
TEST(TraceRow, shape) {
  traced({kM}, [](Tracer&, const Tensors& x) {
    EXPECT_EQ(cat(x[0].shape()), "f32[2,3]");
    EXPECT_EQ(x[0].dim(-1), Dim(3));
    return x[0];
  });
}

}  // namespace
}  // namespace rlx
