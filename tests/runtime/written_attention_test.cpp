// Attention that a program writes out with products and a softmax, compiled.
#include <gtest/gtest.h>

#include "rlx/backend/plan.h"
#include "rlx/ir/sample.h"
#include "rlx/rlx.h"
#include "tests/support/compare.h"

namespace rlx {
namespace {

Graph layer() {
  return trace("layer", [](Tracer& t) {
    const Tensor x = t.input("x", {Dim::batch(), Dim::seq(), 24}),
                 allowed = t.input("mask", {Dim::batch(), 1, 1, Dim::seq()});
    const auto heads = [&](const char* name) {
      return x.matmul(t.param(name, {24, 24}))
          .reshape({Dim::batch(), Dim::seq(), 4, 6})
          .transpose({0, 2, 1, 3});
    };
    const Tensor scores = heads("q").matmul(heads("k").transpose({0, 1, 3, 2})) / std::sqrt(6.0);
    const Tensor p = (scores + (1.0 - allowed) * -1e4).softmax();
    const Tensor y = p.matmul(heads("v")).transpose({0, 2, 1, 3}).reshape({Dim::batch(), Dim::seq(), 24});
    return NamedTensors{{"y", y}};
  });
}

NamedLiterals values(uint64_t seed, std::vector<std::pair<std::string, std::string>> types) {
  NamedLiterals out;
  for (const auto& [name, type] : types) out.emplace(name, ir::sample_literal(type, seed++));
  return out;
}

std::vector<std::string> kernels(const backend::Plan& plan) {
  std::vector<std::string> out;
  for (const auto& s : plan.steps) out.push_back(s.kernel);
  return out;
}

TEST(WrittenAttention, is_one_kernel_at_every_size) {
  const Graph g = layer();
  const NamedLiterals weights = values(7, {{"q", "f32[24,24]"}, {"k", "f32[24,24]"}, {"v", "f32[24,24]"}});
  CompiledGraph fast = compile(g, weights), exact = compile(g, weights, {.device = "ref"});
  for (const int rows : {1, 7, 33}) {
    const NamedLiterals in =
        values(20, {{"x", cat("f32[2,", rows, ",24]")}, {"mask", cat("f32[2,1,1,", rows, "] in 0..1")}});
    test::expect_close(fast.run(in).at("y"), exact.run(in).at("y"), 1e-5);
    const backend::Plan& plan = fast.plan({{"x", in.at("x").shape()}, {"mask", in.at("mask").shape()}});
    const auto names = kernels(plan);
    EXPECT_EQ(std::count(names.begin(), names.end(), "attention_tiled_f32"), 1) << plan.text();
    EXPECT_EQ(std::count(names.begin(), names.end(), "softmax_rows_f32"), 0) << plan.text();
  }
}

TEST(WrittenAttention, is_what_it_was_where_its_gradient_reads_the_weights) {
  const Graph loss = trace("loss", [](Tracer& t) {
    const Tensor q = t.param("q", {5, 4}), k = t.input("k", {7, 4}), v = t.input("v", {7, 4});
    return NamedTensors{{"loss", q.matmul(k.transpose({1, 0})).softmax().matmul(v).square().mean()}};
  });
  const NamedLiterals weights = values(7, {{"q", "f32[5,4]"}}),
                      in = values(9, {{"k", "f32[7,4]"}, {"v", "f32[7,4]"}});
  const Graph step = value_and_grad(loss, {"q"});
  const NamedLiterals got = compile(step, weights).run(in),
                      want = compile(step, weights, {.device = "ref"}).run(in);
  for (const auto& [name, value] : want) test::expect_close(got.at(name), value, 1e-5);
}

}  // namespace
}  // namespace rlx
