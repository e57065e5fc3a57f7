// Rows of a batch: the bits of each are those that it has alone.
#include <gtest/gtest.h>

#include <cstring>

#include "rlx/backend/cpu/isa.h"
#include "rlx/ir/leaves.h"
#include "rlx/runtime/compiled_graph.h"
#include "tests/support/graphs.h"

namespace rlx {
namespace {

using test::graph;

constexpr int64_t kRows = 37;

// A first axis of n rows, kernels of every family that adds up, sizes that cut tiles and vectors.
constexpr const char* kGraphs[] = {
    R"(graph @products(x: f32[n,200], param w: f32[200,300], param b: f32[300], param v: f32[300,7], param g: f32[200]) {
      h = matmul(rms_norm(x, g), w)
      u = silu(add(h, b))
      y = softmax(matmul(u, v), axis=1)
      return y, u
    })",
    R"(graph @halves(x: bf16[n,400], param w: bf16[400,30], z: f16[n,100], param v: f16[100,20]) {
      y = matmul(x, w)
      u = gelu(matmul(z, v))
      return y, u
    })",
    R"(graph @wide(x: f64[n,100], param w: f64[100,30], z: c64[n,40], param v: c64[40,30]) {
      y = tanh(matmul(x, w))
      u = matmul(z, v)
      return y, u
    })",
    R"(graph @batches(x: f32[n,20,30], y: f32[n,30,40], a: f32[n,6,6], b: f32[n,6,2]) {
      z = matmul(x, y)
      s = batched_dense_solve(a, b)
      return z, s
    })",
    R"(graph @sums(x: f32[n,50000]) {
      s = reduce(x, axes=[1])
      m = reduce(mul(x, x), axes=[1], kind=mean)
      e = softmax(x, axis=1)
      v = variance(x, axes=[1])
      return s, m, e, v
    })",
    R"(graph @wide_sums(x: f64[n,50000], z: f64[n,20,30,40]) {
      s = reduce(x, axes=[1])
      v = variance(x, axes=[1])
      l = logsumexp(x, axes=[1])
      t = reduce(z, axes=[1])
      u = reduce(z, axes=[1,3], kind=mean)
      return s, v, l, t, u
    })",
    R"(graph @images(x: f32[n,8,14,14], param w: f32[16,8,3,3], param d: f32[8,1,3,3]) {
      y = relu(conv2d(x, w, padding=[1,1]))
      p = reduce(y, axes=[2,3], kind=mean)
      z = conv2d(x, d, padding=[1,1], groups=8)
      return y, p, z
    })",
    R"(graph @attention(q: f32[n,33,64], k: f32[n,70,64], o: f32[n,1,64], l: f32[n,700,64]) {
      a:2 = attention(q, k, k, num_heads=4)
      b:2 = attention(o, l, l, num_heads=4)
      return a, b
    })",
    R"(graph @loop(c: f32[n,32], x: f32[n,32], param w: f32[32,32]) {
      r = scan(c, w, x, body=graph @step(c: f32[n,32], w: f32[32,32], x: f32[n,32]) {
        h = tanh(add(matmul(c, w), x))
        return h
      }, length=12, carries=1, consts=2)
      return r
    })",
    R"(graph @transforms(x: f32[n,512], z: f64[n,2000], p: f32[n,334]) {
      y = fft(x)
      u = fft(z)
      v = fft(p)
      return y, u, v
    })",
};

// The first rows of a batch.
Literal first_rows(const Literal& all, int64_t rows) {
  const Shape shape = all.shape().with_dim(0, rows);
  return Literal::copy_of(shape, all.bytes().first(size_t(shape.size_bytes())));
}

TEST(Batches, rows_have_the_bits_that_they_have_alone) {
  const cpu::Isa before = cpu::current_isa();
  for (const cpu::Isa isa : cpu::available_isas()) {
    cpu::use_isa(isa);
    for (const char* text : kGraphs) {
      const ir::Graph g = graph(text);
      SCOPED_TRACE(cat(g.name(), " at ", cpu::isa_name(isa)));
      DimBinding all;
      all.set("n", kRows);
      NamedLiterals weights, inputs;
      uint64_t seed = 0;
      for (const ir::NodeId id : g.leaves()) {
        const ir::Node& leaf = g.node(id);
        (leaf.is<ir::Param>() ? weights : inputs)
            .emplace(ir::leaf_name(leaf), ir::sample_literal(cat(leaf.shapes[0].bind(all)), ++seed));
      }
      CompiledGraph f = compile(g, weights, {.threads = 2, .batch_independent = true});
      const NamedLiterals together = f.run(inputs);
      for (const int64_t rows : {1, 2, 3, 5, 8, 16}) {
        NamedLiterals few;
        for (const auto& [name, value] : inputs) few.emplace(name, first_rows(value, rows));
        for (const auto& [name, value] : f.run(few)) {
          const auto wanted = together.at(name).bytes().first(value.bytes().size());
          EXPECT_EQ(std::memcmp(value.bytes().data(), wanted.data(), wanted.size()), 0)
              << name << " of " << rows;
        }
      }
    }
  }
  cpu::use_isa(before);
}

}  // namespace
}  // namespace rlx
