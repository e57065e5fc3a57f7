// Tensors: numbers, slices, in-place operators, and the free functions made from the records.
#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <sstream>

#include "rlx/rlx.h"
#include "tests/support/errors.h"

namespace rlx {
namespace {

using test::message_of;

// fn of an input x[3, 4] that counts from 0.
template <class Fn>
std::string of_count(Fn fn) {
  const Graph g = trace("f", [&](Tracer& t) { return fn(t.input("x", {3, 4})); });
  EXPECT_TRUE(g.verify().empty());
  std::vector<float> v(12);
  for (size_t i = 0; i < v.size(); ++i) v[i] = float(i);
  return cat(ir::interpret(g, Literals{Literal::of<float>({3, 4}, v)})[0]);
}

TEST(Tensor, rows_and_parts_by_brackets) {
  EXPECT_EQ(of_count([](Tensor x) { return x[1]; }), "f32[4]{4.0, 5.0, 6.0, 7.0}");
  EXPECT_EQ(of_count([](Tensor x) { return x[-1][0]; }), "f32[]{8.0}");
  EXPECT_EQ(of_count([](Tensor x) { return x[{.start = 1}].sum({1}); }), "f32[2]{22.0, 38.0}");
  EXPECT_EQ(of_count([](Tensor x) { return x.slice({{}, {.start = -2}}); }),
            "f32[3,2]{2.0, 3.0, 6.0, 7.0, 10.0, 11.0}");
  EXPECT_EQ(of_count([](Tensor x) { return x.slice({{.step = 2}, {1, 3}}); }),
            "f32[2,2]{1.0, 2.0, 9.0, 10.0}");
  EXPECT_EQ(of_count([](Tensor x) { return x[{.start = 2, .stop = 99}]; }), "f32[1,4]{8.0, 9.0, 10.0, 11.0}");
  EXPECT_EQ(message_of([] { of_count([](Tensor x) { return x[3]; }); }),
            "index: 3 is out of range for f32[3,4]");
  EXPECT_EQ(message_of([] { of_count([](Tensor x) { return x.slice({{.step = 0}}); }); }),
            "slice: step 0 on axis 0; it must be 1 or more, and flip turns an axis");
}

TEST(Tensor, operators_in_place_make_new_tensors) {
  EXPECT_EQ(of_count([](Tensor x) {
              const Tensor before = x;
              x += 1;
              x *= before;
              x -= 2;
              x /= 2;
              return x[0];
            }),
            "f32[4]{-1.0, 0.0, 2.0, 5.0}");
}

TEST(Tensor, comparisons_are_written_as_such) {
  EXPECT_EQ(of_count([](Tensor x) { return (x[0] < 2).where(x[0], -1); }), "f32[4]{0.0, 1.0, -1.0, -1.0}");
  EXPECT_EQ(of_count([](Tensor x) { return where(x[0] >= 1, 5, x[0]); }), "f32[4]{0.0, 5.0, 5.0, 5.0}");
  EXPECT_EQ(of_count([](Tensor x) { return (3 > x[0]).cast(DType::i32); }), "i32[4]{1, 1, 1, 0}");
  EXPECT_EQ(of_count([](Tensor x) { return x[0].max(1.5).min(2.5); }), "f32[4]{1.5, 1.5, 2.0, 2.5}");
  EXPECT_EQ(of_count([](Tensor x) { return x[1].rem(3); }), "f32[4]{1.0, 2.0, 0.0, 1.0}");
}

TEST(Tensor, tensors_of_one_value_and_ranges) {
  const Graph g = trace("f", [](Tracer& t) {
    return Tensors{t.zeros({2}), t.ones({1}, DType::i32), t.full({2}, 2.5), t.arange(4),
                   t.arange(3, DType::f32)};
  });
  const Literals out = ir::interpret(g, Literals{});
  EXPECT_EQ(cat(out[0]) + cat(out[1]) + cat(out[2]), "f32[2]{0.0, 0.0}i32[1]{1}f32[2]{2.5, 2.5}");
  EXPECT_EQ(cat(out[3]), "i32[4]{0, 1, 2, 3}");
  EXPECT_EQ(cat(out[4]), "f32[3]{0.0, 1.0, 2.0}");
  EXPECT_EQ(of_count([](Tensor x) { return x[0].ones_like() + x[0].full_like(2); }),
            "f32[4]{3.0, 3.0, 3.0, 3.0}");
}

TEST(Tensor, rms_norm_does_without_beta) {
  EXPECT_EQ(of_count([](Tensor x) {
              const Tensor row = x[0], gamma = row.ones_like();
              return row.rms_norm(gamma, 0) - row.rms_norm(gamma, row.zeros_like(), 0);
            }),
            "f32[4]{0.0, 0.0, 0.0, 0.0}");
}

TEST(Tensor, apply_takes_any_record) {
  EXPECT_EQ(of_count([](Tensor x) { return apply<ops::Einsum>({.equation = "ij,kj->ik"}, {x, x})[0]; }),
            "f32[3]{14.0, 38.0, 62.0}");
  EXPECT_EQ(of_count([](Tensor x) {
              const auto [values, indices] = apply<ops::TopK>({.k = 2}, {x[1]});
              return values + indices.cast(DType::f32);
            }),
            "f32[2]{10.0, 8.0}");
}

TEST(Tensor, trace_takes_pairs_tuples_and_values) {
  const Graph g = trace("f", [](Tracer& t) {
    const Tensor x = t.input("x", {2});
    return std::tuple(x, std::pair(x.exp(), x.neg()), std::pair(std::string("named"), x.sin()));
  });
  EXPECT_EQ(g.outputs().size(), 4u);
  EXPECT_EQ(g.output_name(3), "named");
  EXPECT_EQ(trace("g", [](Tracer& t) { return t.graph().exp(t.input("x", {2})); }).len(), 2u);
  EXPECT_EQ(trace("h", [](Tracer& t) { return t.graph().qr(t.input("x", {2, 2})); }).outputs().size(), 2u);
}

TEST(Tensor, an_error_in_an_operator_points_at_its_line) {
  const unsigned line = __LINE__ + 2;
  try {
    trace("f", [](Tracer& t) { return softmax(t.input("x", {2}), {.axis = 3}); });
    FAIL() << "no error";
  } catch (const Error& e) {
    EXPECT_EQ(e.origin(), cat("tensor_test.cpp:", line));
  }
}

// Loops and leaves are made by hand (rlx/lang/control.h, Tracer); every other record has its function.
TEST(Operators, every_record_has_a_function) {
  std::ifstream in("rlx/lang/operators.h");
  std::stringstream text;
  text << in.rdbuf();
  const std::set<std::string> by_hand = {"input", "param",     "constant", "full", "iota",
                                         "fused", "custom_fn", "if",       "scan", "while"};
  for (const auto& [name, op] : ops::table().all()) {
    if (by_hand.contains(name)) continue;
    EXPECT_NE(text.str().find(cat(" ", name, "(const ")), std::string::npos) << name << ": run ./dev docs";
  }
}

}  // namespace
}  // namespace rlx
