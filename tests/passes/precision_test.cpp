#include "rlx/passes/precision.h"

#include <gtest/gtest.h>

#include <cmath>

#include "rlx/ir/sample.h"
#include "tests/support/graphs.h"

namespace rlx::passes {
namespace {

using test::graph;

TEST(Precision, of_f32_changes_nothing) {
  const ir::Graph g = graph("graph @g(x: f32[2,3], w: f32[3,2]) { y = matmul(x, w) return y }");
  EXPECT_EQ(apply_precision(g, PrecisionPolicy::always_f32()), g);
}

TEST(Precision, casts_operands_once_and_outputs_back) {
  const ir::Graph g =
      graph("graph @g(x: f32[2,2], param w: f32[2,2]) { h = matmul(x, w) y = matmul(h, w) return y, h }");
  const ir::Graph after = apply_precision(g, PrecisionPolicy::auto_mixed());
  EXPECT_EQ(after, graph(R"(graph @g(x: f32[2,2], param w: f32[2,2]) {
    a = cast(where(is_finite(x), clamp(x, lo=-65504, hi=65504), x), to=f16)
    b = cast(where(is_finite(w), clamp(w, lo=-65504, hi=65504), w), to=f16)
    h = matmul(a, b)
    y = matmul(h, b)
    c = cast(y, to=f32)
    d = cast(h, to=f32)
    return y=c, h=d
  })"))
      << cat(after);
  test::expect_close(ir::interpret(after, test::sample_leaves(g)), ir::interpret(g, test::sample_leaves(g)),
                     1e-2);
}

// Token ids up to 200,000 would not survive as halves.
TEST(Precision, leaves_indices_integers_booleans_and_f64_alone) {
  const ir::Graph g =
      graph(R"(graph @g(ids: f32[3], table: f32[200001,2], p: bool[3,2], d: f64[2], k: i32[2]) {
    shifted = reshape(ids, shape=(1,3))
    flat = reshape(shifted, shape=(3))
    rows = gather(table, flat, axis=0)
    y = where(p, rows, rows)
    e = add(d, d)
    j = add(k, k)
    return y, e, j
  })");
  for (const PrecisionPolicy& policy : {PrecisionPolicy::always_f16(), PrecisionPolicy::auto_mixed_bf16()}) {
    const ir::Graph after = apply_precision(g, policy);
    EXPECT_TRUE(after.verify().empty());
    for (size_t i = 0; i < 3; ++i) EXPECT_EQ(after.shape(after.outputs()[i]), g.shape(g.outputs()[i]));
    Literals in = test::sample_leaves(g);
    in[0] = Literal::of<float>({3}, {200000, 131073, 65537});
    const Literals got = ir::interpret(after, in), want = ir::interpret(g, in);
    test::expect_close(got[0], want[0], 1e-2);
    EXPECT_EQ(got[1], want[1]);
    EXPECT_EQ(got[2], want[2]);
  }
}

// Positions of a text: 4,095 is no number of 16 bits, and a turn is 6.3.
TEST(Precision, keeps_angles_in_f32) {
  const ir::Graph g = graph(R"(graph @g(p: i32[1], f: f32[4], x: f32[4]) {
    n = cast(p, to=f32)
    a = mul(n, f)
    c = cos(a)
    y = mul(x, c)
    return y
  })");
  const ir::Graph after = apply_precision(g, PrecisionPolicy::auto_mixed_bf16());
  const Literals in = {Literal::of<int32_t>({1}, {4095}), Literal::of<float>({4}, {1, 0.5f, 0.25f, 0.1f}),
                       Literal::full(parse_shape("f32[4]"), 1)};
  test::expect_close(ir::interpret(after, in), ir::interpret(g, in), 1e-2);
}

// A cache of 16 bits: what is stored so is not widened on its way in or out.
TEST(Precision, widens_nothing_that_is_narrowed_again) {
  const ir::Graph g = graph(R"(graph @g(x: f32[1,3,8], w: f32[8,8], before: bf16[1,3,8]) {
    h = matmul(x, w)
    kept = cast(h, to=bf16)
    k = cast(before, to=f32)
    y:2 = attention(h, k, k, num_heads=2)
    return y, kept
  })");
  const ir::Graph after = apply_precision(g, PrecisionPolicy::auto_mixed_bf16());
  EXPECT_TRUE(after.verify().empty());
  int casts = 0;
  for (const ir::Node* n : after.nodes()) {
    casts += n->op->name == "cast";
    if (n->op->name == "attention") {
      EXPECT_EQ(n->shapes[0].dtype(), DType::bf16);
    }
  }
  // Of x, of w, of the result; the cast of `before` is left without a use.
  EXPECT_EQ(casts, 4) << cat(after);
  test::expect_close(ir::interpret(after, test::sample_leaves(g)), ir::interpret(g, test::sample_leaves(g)),
                     2e-2);
}

TEST(Precision, keeps_reductions_and_listed_operators_in_f32) {
  const ir::Graph g =
      graph("graph @g(x: f32[4,8]) { a = exp(x) s = softmax(a, axis=1) y = tanh(s) return y }");
  const auto type_of = [](const ir::Graph& h, std::string_view op) {
    for (const ir::Node* n : h.nodes()) {
      if (n->op->name == op) return n->shapes[0].dtype();
    }
    return DType::i8;
  };
  const ir::Graph mixed = apply_precision(g, PrecisionPolicy::auto_mixed_conservative());
  EXPECT_EQ(type_of(mixed, "softmax"), DType::f32);
  EXPECT_EQ(type_of(mixed, "exp"), DType::f16);
  PrecisionPolicy policy = PrecisionPolicy::auto_mixed_bf16();
  policy.keep = {"exp"};
  const ir::Graph kept = apply_precision(g, policy);
  EXPECT_EQ(type_of(kept, "exp"), DType::f32);
  EXPECT_EQ(type_of(kept, "softmax"), DType::bf16);
}

TEST(Precision, leaves_stores_of_pages_as_they_are) {
  const ir::Graph g = graph(R"(graph @g(q: f32[2,1,4], k: f32[8,4], v: f32[8,4], p: i32[2,3], at: i32[2,1]) {
    y = paged_attention(q, k, p, at, v, num_heads=2, page=2)
    return y
  })");
  EXPECT_EQ(apply_precision(g, PrecisionPolicy::auto_mixed()), g);
}

TEST(Precision, saturates_fills_beyond_the_range_of_halves) {
  const ir::Graph g = graph(R"(graph @g(x: f32[2]) {
    m = full(shape=f32[2], value=-1e9)
    a = add(x, m)
    y = sub(a, a)
    return y
  })");
  for (const double v :
       ir::interpret(apply_precision(g, PrecisionPolicy::always_f16()), test::sample_leaves(g))[0].to_reals())
    EXPECT_EQ(v, 0);
}

// A mask with its blocked places as -1e9, of which the last row has no others: in f32 its softmax is even.
TEST(Precision, saturates_constants_beyond_the_range_of_halves) {
  const ir::Graph g = graph(R"(graph @g(x: f32[2,2]) {
    mask = constant(value=f32[2,2]{0.0, -1e9, -1e9, -1e9})
    far = constant(value=f32[2]{-inf, 1e9})
    y = softmax(add(x, mask), axis=1)
    e = exp(add(x, far))
    return y, e
  })");
  const Literals x = {Literal::full(parse_shape("f32[2,2]"), 0)};
  const Literals got = ir::interpret(apply_precision(g, PrecisionPolicy::always_f16()), x);
  EXPECT_EQ(got[0].to_reals(), (std::vector<double>{1, 0, 0.5, 0.5}));
  EXPECT_EQ(got[1].to_reals()[0], 0);  // an infinity stays one
}

// The lowest f32 is how masks are often written; it rounds to an infinity in bf16.
TEST(Precision, saturates_numbers_beyond_the_range_of_bf16) {
  const ir::Graph g = graph(R"(graph @g(x: f32[2,2]) {
    mask = constant(value=f32[2,2]{0.0, -3.4028235e38, -3.4028235e38, -3.4028235e38})
    low = full(shape=f32[2,2], value=-3.4028235e38)
    y = softmax(add(x, mask), axis=1)
    z = softmax(add(x, low), axis=1)
    return y, z
  })");
  const Literals got = ir::interpret(apply_precision(g, PrecisionPolicy::auto_mixed_bf16()),
                                     Literals{Literal::full(parse_shape("f32[2,2]"), 0)});
  EXPECT_EQ(got[0].to_reals(), (std::vector<double>{1, 0, 0.5, 0.5}));
  EXPECT_EQ(got[1].to_reals(), (std::vector<double>(4, 0.5)));
}

// Finite numbers stay finite, infinities and NaN stay what they are.
TEST(Precision, saturates_inputs_and_params) {
  const float inf = INFINITY;
  const ir::Graph g = graph("graph @g(x: f32[6], param w: f32[6]) { y = neg(x) z = neg(w) return y, z }");
  const Literal values = Literal::of<float>({6}, {-1e9f, -3.4028235e38f, 3.4028235e38f, -inf, inf, NAN});
  const auto numbers = [&](const PrecisionPolicy& policy, size_t output) {
    return ir::interpret(apply_precision(g, policy), Literals{values, values})[output].to_reals();
  };
  for (const size_t output : {0, 1}) {
    std::vector<double> halves = numbers(PrecisionPolicy::always_f16(), output);
    std::vector<double> brain = numbers(PrecisionPolicy::auto_mixed_bf16(), output);
    EXPECT_TRUE(std::isnan(halves[5]) && std::isnan(brain[5]));
    halves.pop_back(), brain.pop_back();
    EXPECT_EQ(halves, (std::vector<double>{65504, 65504, -65504, inf, -inf}));
    EXPECT_EQ(brain, (std::vector<double>{0x1.dcp29, 0x1.fep127, -0x1.fep127, inf, -inf}));
  }
}

TEST(Precision, descends_into_bodies_and_keeps_their_types) {
  const ir::Graph g = graph(R"(graph @g(c: f32[4], xs: f32[3,4]) {
    r = scan(c, xs, body=graph @step(c: f32[4], x: f32[4]) {
      s = mul(c, x)
      n = tanh(s)
      return n
    }, length=3, carries=1)
    return r
  })");
  const ir::Graph after = apply_precision(g, PrecisionPolicy::auto_mixed());
  EXPECT_TRUE(after.verify().empty());
  EXPECT_NE(cat(after).find("f16[4]"), std::string::npos);
  test::expect_close(ir::interpret(after, test::sample_leaves(g)), ir::interpret(g, test::sample_leaves(g)),
                     1e-2);
}

// 3,001 is no number of 16 bits. Where an index goes through a loop, a branch or a function, all that makes it stays; so does
// what a loop counts.
TEST(Precision, keeps_indices_and_counters_through_bodies) {
  constexpr std::string_view kTexts[] = {
      R"(graph @in_a_loop(t: f32[5000], i: f32[]) {
        j = mul(i, full(shape=f32[], value=1.0))
        z = full(shape=f32[], value=0.0)
        y = scan(z, t, j, body=graph @b(c: f32[], t: f32[5000], j: f32[]) {
          g = gather(t, j)
          s = add(g, c)
          return s
        }, length=1, carries=1, consts=2)
        return y
      })",
      R"(graph @carried(t: f32[5000], i: f32[]) {
        z = full(shape=f32[], value=0.0)
        y:2 = scan(i, z, t, body=graph @b(j: f32[], c: f32[], t: f32[5000]) {
          g = gather(t, j)
          k = add(j, full(shape=f32[], value=1.0))
          return k, g
        }, length=3, carries=2, consts=1)
        return y, y#1
      })",
      R"(graph @swapped(t: f32[5000], i: f32[]) {
        z = full(shape=f32[], value=3.0)
        y:2 = scan(i, z, body=graph @b(j: f32[], k: f32[]) {
          a = add(j, full(shape=f32[], value=2.0))
          return k, a
        }, length=4, carries=2)
        g = gather(t, y)
        return g
      })",
      R"(graph @stacked(t: f32[5000], i: f32[4]) {
        y = scan(i, body=graph @b(j: f32[]) {
          a = add(j, full(shape=f32[], value=2.0))
          return a
        }, length=4)
        g = gather(t, y)
        return g
      })",
      R"(graph @chosen(t: f32[5000], i: f32[]) {
        p = full(shape=bool[], value=1.0)
        y = if(p, i, then_body=graph @b(j: f32[]) {
          k = add(j, full(shape=f32[], value=2.0))
          return k
        }, else_body=graph @c(j: f32[]) { return j })
        g = gather(t, y)
        return g
      })",
      R"(graph @called(t: f32[5000], i: f32[]) {
        y = custom_fn(i, fwd_body=graph @b(j: f32[]) {
          k = add(j, full(shape=f32[], value=2.0))
          return k
        })
        g = gather(t, y)
        return g
      })",
      R"(graph @counted(t: f32[5000], i: f32[]) {
        y:2 = while(full(shape=f32[], value=0.0), full(shape=f32[], value=0.0), i,
          cond=graph @c(n: f32[], x: f32[], i: f32[]) {
            q = compare(n, i, kind=lt)
            return q
          }, body=graph @b(n: f32[], x: f32[], i: f32[]) {
            m = add(n, full(shape=f32[], value=1.0))
            return m, n
          }, carries=2, max_iterations=4000)
        return y
      })"};
  for (const std::string_view text : kTexts) {
    const ir::Graph g = graph(text);
    SCOPED_TRACE(g.name());
    Literals in = test::sample_leaves(g);
    for (int i = 0; i < 5000; ++i) in[0].mutable_data<float>()[size_t(i)] = float(i % 97);
    in[1] = Literal::full(in[1].shape(), 3001);
    const Literals want = ir::interpret(g, in);
    for (const PrecisionPolicy& policy :
         {PrecisionPolicy::always_f16(), PrecisionPolicy::auto_mixed_bf16()}) {
      const ir::Graph after = apply_precision(g, policy);
      EXPECT_TRUE(after.verify().empty());
      EXPECT_EQ(ir::interpret(after, in), want) << cat(after);
    }
  }
}

// A counter does not keep the rest of its loop from 16 bits.
TEST(Precision, stores_what_a_counted_loop_carries_beside_its_counter) {
  const ir::Graph after = apply_precision(graph(R"(graph @g(x: f32[8]) {
    y:2 = while(full(shape=f32[], value=0.0), x, cond=graph @c(n: f32[], x: f32[8]) {
      q = compare(n, full(shape=f32[], value=9.0), kind=lt)
      return q
    }, body=graph @b(n: f32[], x: f32[8]) {
      m = add(n, full(shape=f32[], value=1.0))
      z = tanh(x)
      return m, z
    }, carries=2)
    return y#1
  })"),
                                          PrecisionPolicy::always_f16());
  EXPECT_NE(cat(after).find("f16[8]"), std::string::npos) << cat(after);
  EXPECT_EQ(cat(after).find("f16[]"), std::string::npos) << cat(after);
}

TEST(Precision, stores_what_a_branch_is_chosen_by) {
  const ir::Graph after = apply_precision(graph(R"(graph @g(x: f32[8]) {
    s = mul(x, x)
    m = reduce(s, axes=[0])
    p = compare(m, full(shape=f32[], value=1.0), kind=gt)
    y = if(p, s, then_body=graph @a(v: f32[8]) { return v }, else_body=graph @b(v: f32[8]) { return v })
    return y
  })"),
                                          PrecisionPolicy::always_f16());
  EXPECT_NE(cat(after).find("f16[8]"), std::string::npos) << cat(after);
}

TEST(Precision, refuses_types_that_are_no_short_floats) {
  EXPECT_EQ(test::error_of([] { apply_precision(ir::Graph("g"), PrecisionPolicy::all(DType::i8)); }),
            "precision: values cannot be stored as i8; f32, f16 or bf16 expected");
}

TEST(Precision, refuses_names_of_no_operator) {
  PrecisionPolicy policy = PrecisionPolicy::all(DType::bf16);
  policy.keep = {"exp", "sofmax"};
  EXPECT_EQ(test::error_of([&] { apply_precision(ir::Graph("g"), policy); }),
            "precision: 'sofmax' is to stay in f32, but no operator has that name; did you mean 'softmax'");
}

}  // namespace
}  // namespace rlx::passes
