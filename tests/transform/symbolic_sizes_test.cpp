// Sizes that are equal because an operator asks for it: transforms give what they give with numbers.
#include <gtest/gtest.h>

#include "rlx/transform/transform.h"
#include "tests/support/derivatives.h"
#include "tests/support/graphs.h"

namespace rlx::transform {
namespace {

using ir::interpret;
using test::error_of;
using test::f64;
using test::graph;

// Values, gradients, tangents, Hessian products and batches of a graph with symbols against those of the graph
// with numbers; all leaves are f64.
void expect_as_with_numbers(std::string_view text, const DimBinding& sizes) {
  const ir::Graph symbols = graph(text), numbers = symbols.bind(sizes);
  ASSERT_TRUE(symbols.has_dynamic_dims());
  std::vector<std::string> names;
  VmapOptions batch{.size = 2};
  for (const ir::NodeId id : symbols.leaves()) {
    names.push_back(static_cast<const ir::NamedLeaf*>(symbols.node(id).attrs.get())->name);
    batch.in_axes[names.back()] = 0;
  }
  const auto pulled = [&](const ir::Graph& g) { return grad(g, names, {.cotangent_inputs = true}); };
  const std::vector<std::pair<const char*, std::function<ir::Graph(const ir::Graph&)>>> transforms = {
      {"value", [](const ir::Graph& g) { return g; }},
      {"grad", pulled},
      {"jvp", [&](const ir::Graph& g) { return jvp(g, names); }},
      {"grad of grad", [&](const ir::Graph& g) { return pulled(pulled(g)); }},
      {"jvp of grad", [&](const ir::Graph& g) { return jvp(pulled(g), names); }},
      {"vmap", [&](const ir::Graph& g) { return vmap(g, batch); }},
      {"grad of vmap", [&](const ir::Graph& g) { return pulled(vmap(g, batch)); }},
      {"vmap of grad", [&](const ir::Graph& g) { return vmap(pulled(g), batch); }}};
  for (const auto& [name, run] : transforms) {
    SCOPED_TRACE(name);
    try {
      const ir::Graph a = run(symbols), b = run(numbers);
      for (const auto& e : a.verify()) ADD_FAILURE() << cat(e);
      Literals in;
      for (const ir::NodeId id : b.leaves())
        in.push_back(ir::sample_literal(cat(b.node(id).shapes[0]), 3 + id));
      test::expect_close(interpret(a, in), interpret(b, in), 1e-9);
    } catch (const Error& e) {
      ADD_FAILURE() << e.what();
    }
  }
}

TEST(SymbolicSizes, a_variance_divides_by_the_size_it_has) {
  const char* text = "graph(x: f64[n], y: f64[m]) { return variance(add(x, y)) }";
  const ir::Graph g = graph(text);
  const Literals in{f64({2}, {0, 0}), f64({2}, {1, 3})};
  EXPECT_EQ(interpret(g, in)[0].real_at(0), 1);
  test::expect_values(interpret(grad(g, {"y"}), in)[0], {-1, 1});
  EXPECT_EQ(interpret(value_and_grad(g, {"y"}), in)[0].real_at(0), 1);
  EXPECT_EQ(error_of([&] { interpret(g, Literals{f64({1}, {1}), f64({2}, {1, 3})}); }),
            "run: symbol 'n' = m would be both 1 and 2 (y: f64[n] given f64[2])");
  expect_as_with_numbers(text, {{"n", 3}});
  expect_as_with_numbers("graph(x: f64[n], y: f64[m]) { return layer_norm(add(x, y)) }", {{"m", 3}});
  expect_as_with_numbers("graph(x: f64[n], y: f64[m]) { return rms_norm(add(x, y)) }", {{"n", 3}});
}

TEST(SymbolicSizes, gradients_of_a_product_have_the_types_of_its_operands) {
  const char* text = R"(graph @f(x: f64[b,2,3], y: f64[c,3,2]) {
    z = matmul(x, y)
    return reduce(mul(z, z))
  })";
  EXPECT_EQ(error_of([&] { graph(text).bind({{"b", 1}, {"c", 2}}); }),
            "bind: c = 2, but in graph 'f' c is b, which is 1");
  expect_as_with_numbers(text, {{"b", 2}});
}

TEST(SymbolicSizes, operators_that_assume_equal_sizes) {
  expect_as_with_numbers("graph(x: f64[n,h], g: f64[4]) { return layer_norm(x, g) }", {{"n", 3}});
  expect_as_with_numbers("graph(x: f64[b,c,5], w: f64[2,3,2]) { return conv(x, w) }", {{"b", 2}});
  expect_as_with_numbers("graph(x: f64[n,2], y: f64[m,k]) { return concat(x, y, axis=1) }",
                         {{"n", 3}, {"k", 2}});
  expect_as_with_numbers("graph(a: f64[n,3], b: f64[m,k]) { return linear_recurrence(a, b) }", {{"n", 4}});
  expect_as_with_numbers(
      R"(graph(a: f64[n,i,j], b: f64[m,k,3]) { return einsum(a, b, equation="...ij,...jk->...ik") })",
      {{"n", 2}, {"i", 2}, {"j", 2}});
  expect_as_with_numbers(R"(graph(a: f64[n,m], b: f64[p,q]) {
    return cholesky(add(matmul(a, transpose(a, perm=[1, 0])), b))
  })",
                         {{"n", 1}, {"m", 3}});
}

TEST(SymbolicSizes, an_open_equation_is_a_reshape_for_the_types) {
  expect_as_with_numbers(R"(graph(x: f64[n,k], y: f64[p,q]) {
    s = add(reshape(x, shape=(n*k)), reshape(y, shape=(p*q)))
    return variance(mul(s, s))
  })",
                         {{"n", 2}, {"k", 3}, {"p", 3}, {"q", 2}});
}

TEST(SymbolicSizes, a_recurrent_net_of_any_length_and_batch) {
  expect_as_with_numbers(R"(graph @rnn(xs: f64[m,n,4], h: f64[n,4]) {
    y = scan(h, xs, length=m, carries=1, body=graph(h: f64[n,4], x: f64[n,4]) { return tanh(add(h, x)) })
    return y
  })",
                         {{"m", 3}, {"n", 2}});
  expect_as_with_numbers(R"(graph @rnn(xs: f64[m,n,4], h: f64[p,4]) {
    y:2 = scan(h, xs, length=t, carries=1, body=graph(h: f64[a,b], x: f64[c,d]) {
      s = tanh(add(h, x))
      return s, mul(s, x)
    })
    return y, y#1
  })",
                         {{"m", 3}, {"p", 2}});
}

TEST(SymbolicSizes, branches_loops_and_functions_with_two_symbols) {
  expect_as_with_numbers(R"(graph(x: f64[n,m], y: f64[m]) {
    p = compare(reduce(x), reduce(y), kind=lt)
    return if(p, x, y, then_body=graph(a: f64[n,m], b: f64[m]) { return mul(a, b) },
              else_body=graph(c: f64[p,q], d: f64[r]) { return sin(add(c, d)) })
  })",
                         {{"m", 3}, {"n", 2}});
  expect_as_with_numbers(R"(graph(x: f64[n,m], y: f64[k]) {
    return while(x, y, carries=1, max_iterations=3,
      cond=graph(a: f64[n,m], b: f64[m]) { return compare(reduce(mul(a, a)), reduce(mul(b, b)), kind=lt) },
      body=graph(a: f64[n,m], b: f64[m]) { return add(a, sin(b)) })
  })",
                         {{"m", 3}, {"n", 2}});
  expect_as_with_numbers(R"(graph(x: f64[n,m], y: f64[k]) {
    return custom_fn(x, y, fwd_body=graph(a: f64[n,m], b: f64[m]) { return mul(sin(a), b) })
  })",
                         {{"k", 3}, {"n", 2}});
}

}  // namespace
}  // namespace rlx::transform
