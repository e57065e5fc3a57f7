#include "rlx/lang/trace.h"

#include <gtest/gtest.h>

#include "tests/support/compare.h"
#include "tests/support/errors.h"

namespace rlx {
namespace {

Literal f32(Dims dims, const std::vector<float>& v) { return Literal::of<float>(std::move(dims), v); }

TEST(Trace, matmul_bias_gelu_is_six_nodes) {
  const Graph g = trace("ffn", [](Tracer& t) {
    const Tensor x = t.input("x", {4, 15, 384}), w = t.param("w", {384, 1536}), b = t.param("b", {1536});
    return (x.matmul(w) + b).gelu();
  });
  EXPECT_EQ(g.len(), 6u);
  EXPECT_EQ(cat(g.shape(g.outputs()[0])), "f32[4,15,1536]");
  EXPECT_TRUE(g.verify().empty());
}

TEST(Trace, operators_take_numbers_on_either_side) {
  const Graph g = trace("arithmetic", [](Tracer& t) {
    const Tensor x = t.input("x", {2}), y = t.input("y", {2});
    return Tensors{x + y, x - y, x * y,   x / y,    -x,    x + 2, 2 + x,
                   x - 2, 2 - x, x * 2.0, 2.0f * x, x / 2, 2 / x};
  });
  const auto out = ir::interpret(g, Literals{f32({2}, {1, 4}), f32({2}, {2, -8})});
  const std::vector<std::vector<float>> want = {{3, -4}, {-1, 12}, {2, -32}, {0.5, -0.5}, {-1, -4},
                                                {3, 6},  {3, 6},   {-1, 2},  {1, -2},     {2, 8},
                                                {2, 8},  {0.5, 2}, {2, 0.5}};
  ASSERT_EQ(out.size(), want.size());
  for (size_t i = 0; i < out.size(); ++i) test::expect_close(out[i], f32({2}, want[i]), 0);
}

TEST(Trace, a_number_takes_the_dtype_of_the_tensor) {
  const Graph g = trace("half", [](Tracer& t) { return t.input("x", {2}, DType::f16) * 0.5; });
  EXPECT_EQ(cat(g.shape(g.outputs()[0])), "f16[2]");
}

TEST(Trace, nothing_is_consumed_by_use) {
  const Graph g = trace("twice", [](Tracer& t) {
    const Tensor x = t.input("x", {2});
    const Tensor y = x.exp();
    return Tensors{y + y, y * x, y};
  });
  EXPECT_EQ(g.len(), 4u);
}

TEST(Trace, an_error_points_at_the_line_of_the_expression) {
  unsigned line = 0;
  try {
    trace("wrong", [&](Tracer& t) {
      const Tensor x = t.input("x", {2, 3}), y = t.input("y", {4});
      line = __LINE__ + 1;
      return x + y;
    });
    FAIL() << "no error";
  } catch (const Error& e) {
    EXPECT_EQ(e.origin(), cat("trace_test.cpp:", line));
    EXPECT_EQ(
        e.message(),
        "add: f32[2,3] and f32[4] do not broadcast; axis -1 has sizes 3 and 4; they must be equal or one of "
        "them 1");
  }
}

TEST(Trace, an_error_in_a_method_points_at_its_line) {
  try {
    trace("wrong", [](Tracer& t) { return t.input("x", {2, 3}).transpose({0, 0}); });
    FAIL() << "no error";
  } catch (const Error& e) {
    EXPECT_TRUE(e.origin().starts_with("trace_test.cpp:")) << e.what();
  }
}

TEST(Trace, a_failed_expression_leaves_nothing_behind) {
  Graph g("g");
  Tracer t(g);
  const Tensor x = t.input("x", {2}, DType::i32);
  EXPECT_THROW(x.gelu(), Error);
  EXPECT_THROW(x.pow(0.5), Error);  // the scalar made for it goes too
  EXPECT_EQ(g.len(), 1u);
}

TEST(Trace, tensors_of_two_traces_do_not_mix) {
  Graph a("a"), b("b");
  const Tensor x = Tracer(a).input("x", {2}), y = Tracer(b).input("y", {2});
  EXPECT_EQ(test::message_of([&] { (void)(x + y); }), "add: operand 1 belongs to another graph than 'a'");
}

TEST(Trace, names_outputs_when_asked) {
  const Graph g = trace("named", std::function([](Tracer& t) {
                          const Tensor x = t.input("x", {2});
                          return NamedTensors{{"up", x + 1}, {"down", x - 1}};
                        }));
  EXPECT_EQ(g.output_names(), (std::vector<std::string>{"up", "down"}));
}

TEST(Trace, refuses_an_empty_output) {
  EXPECT_EQ(test::message_of([] { trace("none", [](Tracer&) { return Tensor(); }); }),
            "trace: output 0 of 'none' is an empty tensor");
}

TEST(Trace, symbolic_sizes_flow_through) {
  const Graph g = trace("dynamic", [](Tracer& t) {
    const Tensor x = t.input_dyn("x", {Dim::batch(), Dim::seq(), 8});
    return x.reshape({Dim::batch() * Dim::seq(), 8}).t();
  });
  EXPECT_EQ(cat(g.shape(g.outputs()[0])), "f32[8,batch*seq]");
}

}  // namespace
}  // namespace rlx
