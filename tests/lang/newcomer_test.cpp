// What programs written from the documents alone fell into: each trap is a compile error or a sentence.
#include <gtest/gtest.h>

#include <concepts>

#include "rlx/rlx.h"
#include "tests/support/errors.h"

namespace rlx {
namespace {

using test::message_of;

Literal f32(Dims dims, const std::vector<float>& v) { return Literal::of<float>(std::move(dims), v); }

Graph linear() {
  return trace("lin", [](Tracer& t) {
    const Tensor x = t.input("x", {Dim::batch(), 4}), w = t.param("weight", {4, 2});
    return NamedTensors{{"y", x.matmul(w)}};
  });
}
const Literal kWeight = Literal::zeros(Shape(DType::f32, {4, 2})),
              kInput = Literal::zeros(Shape(DType::f32, {3, 4}));

template <class T>
concept Condition = requires(T t) { t ? 1 : 0; };
template <class T>
concept Negatable = requires(T t) { !t; };

// What the compiler says instead stands in tests/lang/refused.
TEST(Newcomer, a_tensor_is_no_condition) {
  EXPECT_FALSE(Condition<Tensor>);
  EXPECT_FALSE(Negatable<Tensor>);
  EXPECT_FALSE((std::convertible_to<Tensor, bool> || std::constructible_from<bool, Tensor>));
}

// trace says what it wants; what it takes is checked here, what it refuses is no result.
static_assert(TracedResult<Tensor> && TracedResult<Tensors> && TracedResult<NamedTensors>);
static_assert(TracedResult<std::pair<Tensor, Tensor>> && TracedResult<std::tuple<Tensor, Tensors>>);
static_assert(TracedResult<std::array<Tensor, 3>> && TracedResult<ir::Expr> && TracedResult<Value>);
static_assert(TracedResult<std::map<std::string, Tensor>>);
static_assert(!TracedResult<int> && !TracedResult<std::string> && !TracedResult<void>);

TEST(Newcomer, an_empty_tensor_says_so) {
  const Tensor none;
  EXPECT_EQ(message_of([&] { none.relu(); }),
            "relu: operand x is an empty tensor; a tensor comes from a Tracer or from an operator");
  EXPECT_EQ(message_of([&] { none.shape(); }),
            "tensor: it is empty; a tensor comes from a Tracer or from an operator");
  EXPECT_EQ(message_of([&] { none + 1; }),
            "add: operand a is an empty tensor; a tensor comes from a Tracer or from an operator");
  EXPECT_EQ(message_of([&] { none[0]; }),
            "index: the tensor is empty; a tensor comes from a Tracer or from an operator");
  EXPECT_EQ(message_of([&] {
              trace("f", [&](Tracer& t) { return concat({t.input("x", {2}), none}, {.axis = 0}); });
            }),
            "concat: operand parts 0 is an empty tensor; a tensor comes from a Tracer or from an operator");
}

// The line of the caller stands with every mistake, also with those that no operator's rule finds.
TEST(Newcomer, an_error_names_the_line_of_the_caller) {
  const auto place_of = [](const auto& call) {
    try {
      call();
    } catch (const Error& e) {
      return e.origin();
    }
    return std::string("no error");
  };
  const auto in_trace = [&](const auto& f) {
    return place_of([&] { trace("f", [&](Tracer& t) { return f(t.input("x", {2, 3})); }); });
  };
  const auto here = [](int back, const Loc& loc = Loc::current()) {
    return cat("newcomer_test.cpp:", int(loc.line()) - back);
  };
  EXPECT_EQ(place_of([] { Tensor().relu(); }), here(0));
  EXPECT_EQ(place_of([] { Tensor() + 1; }), here(0));
  EXPECT_EQ(in_trace([](Tensor x) { return x[2]; }), here(0));
  EXPECT_EQ(in_trace([](Tensor x) { return x[{.step = -1}]; }), here(0));
  EXPECT_EQ(in_trace([](Tensor x) { return x.slice({{}, {}, {}}); }), here(0));
  EXPECT_EQ(in_trace([](Tensor x) { return x[0].t(); }), here(0));
  EXPECT_EQ(in_trace([](Tensor x) { return split(x, {1, 2}); }), here(0));
  EXPECT_EQ(in_trace([](Tensor x) { return stack({x, x[0]}); }), here(0));
  EXPECT_EQ(in_trace([](Tensor x) { return custom_op("no_such", "", {x}); }), here(0));
  EXPECT_EQ(in_trace([](Tensor x) { return scan(x, {}, [](Tensor c) { return c; }); }), here(0));
  EXPECT_EQ(in_trace([](Tensor x) { return scan(x, {.length = 2}, [](Tensor, Tensor b) { return b; }); }),
            here(0));
  EXPECT_EQ(in_trace([](Tensor x) { return scan(x, {.length = 2}, [](Tensor c) { return c[7]; }); }),
            here(0));
  EXPECT_EQ(place_of([] { trace("f", [](Tracer&) { return Tensors(); }); }), here(0));

  // A rule of a transform names the line of the operator, and which rule it was.
  const Graph loop = trace("loop", [](Tracer& t) {
    return while_loop(t.input("x", {}), {}, [](Tensor x) { return x > 0; }, [](Tensor x) { return x - 1; });
  });
  EXPECT_EQ(place_of([&] { grad(loop, {"x"}); }), here(2) + ", decomposition of %1 while");
}

TEST(Newcomer, a_value_of_no_graph_says_so) {
  Graph g("g");
  EXPECT_EQ(message_of([&] { g.relu(Value()); }),
            "relu: operand 0 is no value; a value comes from a method of the graph");
}

TEST(Newcomer, parts_of_a_stack_are_of_one_type) {
  EXPECT_EQ(
      message_of([] { trace("f", [](Tracer& t) { return stack({t.input("x", {2}), t.input("y", {3})}); }); }),
      "stack: part 1 is f32[3], part 0 is f32[2]; they must be of one type");
  EXPECT_EQ(message_of([] { trace("f", [](Tracer& t) { return stack({t.input("x", {2}), Tensor()}); }); }),
            "stack: part 1 is an empty tensor");
}

TEST(Newcomer, what_a_body_made_does_not_leave_it_otherwise) {
  EXPECT_EQ(
      message_of([] {
        trace("f", [](Tracer& t) {
          Tensor leak;
          scan(t.input("x", {2}), {.length = 3}, [&](Tensor x) { return leak = x * 2; });
          return leak;
        });
      }),
      "trace: output 0 of 'f' belongs to graph 'scan'; what is returned must be of this graph, and leaves the body of a loop or branch as its result");
}

TEST(Newcomer, a_leaf_that_is_not_there_is_told_with_those_that_are) {
  EXPECT_EQ(message_of([] { vmap(linear(), {.in_axes = {{"images", 0}}, .size = 2}); }),
            "vmap: graph 'lin' has no input or param 'images'; it has x, weight");
}

TEST(Newcomer, a_tensor_that_outlived_its_graph_says_so) {
  Tensor leaked;
  trace("a", [&](Tracer& t) { return leaked = t.input("x", {2}); });
  const std::string gone =
      "tensor: its graph 'a' is gone; a tensor is of use as long as the graph it was made in";
  EXPECT_EQ(message_of([&] { leaked.relu(); }), gone);
  EXPECT_EQ(message_of([&] { leaked.shape(); }), gone);
  EXPECT_EQ(message_of([&] { trace("b", [&](Tracer& t) { return t.input("y", {2}) + leaked; }); }), gone);
}

TEST(Newcomer, a_tensor_follows_its_graph) {
  Tensor x;
  Graph g = trace("a", [&](Tracer& t) { return x = t.input("x", {2}); });
  Graph moved = std::move(g);
  EXPECT_EQ(cat(x.shape()), "f32[2]");
  EXPECT_EQ(x.relu().graph().len(), 2u);
  EXPECT_EQ(moved.len(), 2u);
}

TEST(Newcomer, a_number_that_the_dtype_cannot_hold_is_refused) {
  Graph g("g");
  Tracer t(g);
  const Tensor i = t.input("i", {2}, DType::i32), u = t.input("u", {2}, DType::u8), x = t.input("x", {2}),
               h = t.input("h", {2}, DType::f16);
  EXPECT_EQ(message_of([&] { i * 0.5; }),
            "mul: the number 0.5 is not a value of i32; cast the tensor first, to f32");
  EXPECT_EQ(message_of([&] { u + 300; }),
            "add: the number 300.0 is not a value of u8; cast the tensor first, to i64");
  EXPECT_EQ(message_of([&] { x * 1e300; }),
            "mul: the number 1e+300 is not a value of f32; cast the tensor first, to f64");
  EXPECT_EQ(message_of([&] { h - 1e6; }),
            "sub: the number 1e+06 is not a value of f16; cast the tensor first, to f32");
  EXPECT_EQ(message_of([&] { i.pow(0.5); }),
            "pow: the number 0.5 is not a value of i32; cast the tensor first, to f32");
  EXPECT_EQ(g.len(), 4u);
  EXPECT_EQ((i * 2 - 1).dtype(), DType::i32);
  EXPECT_EQ((x * INFINITY).dtype(), DType::f32);
  EXPECT_EQ((x + 0.1).dtype(), DType::f32);  // rounds, as every f32 does
}

TEST(Newcomer, a_graph_without_outputs_does_not_run_to_nothing) {
  Graph g("none");
  g.relu(g.input("x", Shape(DType::f32, {2})));
  EXPECT_EQ(message_of([&] { g.interpret({{"x", f32({2}, {1, 2})}}); }),
            "run: graph 'none' has no outputs; set_outputs says what it computes");
  EXPECT_EQ(message_of([&] { grad(g, {"x"}); }), "grad: graph 'none' has no outputs");
  EXPECT_EQ(message_of([] { trace("none", [](Tracer&) { return Tensors{}; }); }),
            "trace: 'none' returns no tensors");
}

TEST(Newcomer, vmap_without_a_size_is_refused) {
  const Graph g = trace("f", [](Tracer& t) { return t.input("x", {2}).relu(); });
  EXPECT_EQ(message_of([&] { vmap(g, {.in_axes = {{"x", 0}}}); }),
            "vmap: the number of examples is not given; set size to a number or a symbol, Dim::batch()");
}

TEST(Newcomer, a_wrong_output_name_tells_those_there_are) {
  const NamedLiterals out = linear().interpret({{"x", kInput}, {"weight", kWeight}});
  EXPECT_EQ(message_of([&] { out.at("out"); }), "tensors: none is named 'out'; there is y");
}

TEST(Newcomer, data_of_another_type_is_a_sentence) {
  EXPECT_EQ(message_of([] { kInput.data<double>(); }),
            "literal: elements of f32[3,4] were asked for as f64; cast(DType::f64) converts them");
}

TEST(Newcomer, unknown_and_missing_names_are_told_at_once) {
  EXPECT_EQ(
      message_of([] { linear().interpret({{"x", kInput}, {"wieght", kWeight}}); }),
      "run: param 'weight' (f32[4,2]) is missing; 'wieght' is not an input; did you mean 'weight'; graph "
      "'lin' takes x, weight");
}

TEST(Newcomer, a_value_of_another_graph_is_refused) {
  Graph a("a"), b("b");
  const Value xa = a.input("x", Shape(DType::f32, {2})), xb = b.input("z", Shape(DType::f32, {2}));
  EXPECT_EQ(message_of([&] { b.add(xa, xb); }), "add: operand 0 belongs to another graph than 'b'");
  EXPECT_EQ(
      message_of([&] { trace("c", [&](Tracer&) { return Tensor(ir::Expr{&a, xa}); }); }),
      "trace: output 0 of 'c' belongs to graph 'a'"
      "; what is returned must be of this graph, and leaves the body of a loop or branch as its result");
}

TEST(Newcomer, copies_of_literals_do_not_share_what_is_written) {
  const Literal a = f32({2}, {1, 2});
  Literal b = a;
  b.mutable_data<float>()[0] = 9;
  EXPECT_EQ(cat(a), "f32[2]{1.0, 2.0}");
}

TEST(Newcomer, outputs_beside_the_loss_need_no_cotangent) {
  const Graph g = trace("mlp", [](Tracer& t) {
    const Tensor x = t.input("x", {2}), w = t.param("w", {2});
    const Tensor logits = x * w;
    return NamedTensors{{"loss", logits.sum()}, {"logits", logits}};
  });
  const Graph step = value_and_grad(g, {"w"}, {.loss = "loss"});
  const NamedLiterals out = step.interpret({{"x", f32({2}, {2, 3})}, {"w", f32({2}, {5, 7})}});
  EXPECT_EQ(cat(out.at("logits")), "f32[2]{10.0, 21.0}");
  EXPECT_EQ(cat(out.at("d_w")), "f32[2]{2.0, 3.0}");
}

TEST(Newcomer, grad_with_loss_takes_the_cotangent_as_an_input) {
  const Graph g = trace("f", [](Tracer& t) { return NamedTensors{{"y", t.input("x", {2}).square()}}; });
  const NamedLiterals out =
      grad_with_loss(g, {"x"}).interpret({{"x", f32({2}, {3, 4})}, {"d_output", f32({2}, {1, 10})}});
  EXPECT_EQ(cat(out.at("d_x")), "f32[2]{6.0, 80.0}");
}

TEST(Newcomer, rfft_of_tensors_does_not_pad) {
  const auto bins = [](auto call) {
    const Graph g = trace("f", [&](Tracer& t) { return call(t.input("x", {6}, DType::f64)); });
    return cat(g.shape(g.outputs()[0]));
  };
  EXPECT_EQ(bins([](Tensor x) { return rfft(x); }), "f64[4]");
  EXPECT_EQ(bins([](Tensor x) { return rfft_padded(x); }), "f64[5]");
  const Graph back = trace("back", [](Tracer& t) {
    const auto [re, im] = rfft(t.input("x", {7}, DType::f64));
    return irfft(re, im, 7);
  });
  const Literal x = Literal::of<double>({7}, {1, -2, 3, 0.5, 4, 0, 2});
  const Literal y = ir::interpret(back, Literals{x})[0];
  for (int64_t i = 0; i < 7; ++i) EXPECT_NEAR(y.real_at(i), x.real_at(i), 1e-12);
}

TEST(Newcomer, odd_operators_need_no_graph_methods) {
  const Graph g = trace("odd", [](Tracer& t) {
    const Tensor x = t.input("x", {2, 4, 6}, DType::f64), y = t.input("y", {2, 6, 5}, DType::f64);
    const auto [u, s, vt] = svd(einsum("bij,bjk->bik", {x, y}));
    const auto [re, im] = rfft(u);
    const auto [values, indices] = top_k(s, {.k = 2});
    return NamedTensors{{"loss", log1p(s).sum() + (re.square() + im.square()).pow(1.5).sum()},
                        {"largest", values},
                        {"where", indices}};
  });
  EXPECT_TRUE(g.verify().empty());
  EXPECT_EQ(cat(g.shape(g.outputs()[1])), "f64[2,2]");
  EXPECT_EQ(grad(g, {"x"}, {.loss = "loss"}).output_names(), std::vector<std::string>{"d_x"});
}

}  // namespace
}  // namespace rlx
