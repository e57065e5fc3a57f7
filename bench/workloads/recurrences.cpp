// Loops by scan, written as one would write them by hand: what does not depend on the step before stands outside.
#include "bench/bench.h"
#include "bench/workloads/workload.h"
#include "rlx/ir/sample.h"
#include "rlx/ir/text.h"
#include "rlx/ops/all.h"
#include "rlx/runtime/compiled_graph.h"

namespace rlx::bench {
namespace {

constexpr const char* kLstm = R"(
graph @lstm(x: f32[128,32,256], h: f32[32,256], c: f32[32,256], param w: f32[256,1024], param u: f32[256,1024],
            param b: f32[1024]) {
  p = add(matmul(x, w), b)
  r:3 = scan(h, c, u, p, body=graph @cell(h: f32[32,256], c: f32[32,256], u: f32[256,1024], p: f32[32,1024]) {
    g = add(matmul(h, u), p)
    i = sigmoid(narrow(g, axis=1, start=0, len=256))
    f = sigmoid(narrow(g, axis=1, start=256, len=256))
    z = tanh(narrow(g, axis=1, start=512, len=256))
    o = sigmoid(narrow(g, axis=1, start=768, len=256))
    n = add(mul(f, c), mul(i, z))
    y = mul(o, tanh(n))
    return y, n, y
  }, length=128, carries=2, consts=1)
  return r#2
})";

constexpr const char* kTanhCell = R"(
graph @rnn(x: f32[128,32,256], h: f32[32,256], param w: f32[256,256], param u: f32[256,256], param b: f32[256]) {
  p = add(matmul(x, w), b)
  r:2 = scan(h, u, p, body=graph @cell(h: f32[32,256], u: f32[256,256], p: f32[32,256]) {
    y = tanh(add(matmul(h, u), p))
    return y, y
  }, length=128, carries=1, consts=1)
  return r#1
})";

// A damped pendulum, ten operations a step, all on single numbers.
constexpr const char* kPendulum = R"(
graph @pendulum(angle: f32[], speed: f32[], step: f32[], gravity: f32[], damping: f32[]) {
  r:3 = scan(angle, speed, step, gravity, damping,
             body=graph @step(a: f32[], s: f32[], dt: f32[], g: f32[], k: f32[]) {
    pull = mul(sin(a), g)
    drag = mul(s, k)
    n = sub(s, mul(add(pull, drag), dt))
    b = add(a, mul(n, dt))
    e = add(mul(n, n), mul(b, b))
    return b, n, e
  }, length=1000, carries=2, consts=3)
  return r, r#1, r#2
})";

std::function<void()> program(const char* text) {
  const ir::Graph g = ir::parse_graph(text, ops::table());
  NamedLiterals weights;
  const auto values = std::make_shared<NamedLiterals>();
  for (const ir::NodeId id : g.leaves()) {
    const ir::Node& n = g.node(id);
    Literal value = ir::sample_literal(cat(n.shapes[0]), 11 + values->size() + weights.size());
    for (float& v : value.mutable_data<float>()) v *= 0.06f;
    (n.is<ir::Param>() ? weights : *values).emplace(n.name, value);
  }
  const auto f = std::make_shared<CompiledGraph>(compile(g, weights, {.threads = threads()}));
  const auto inputs = std::make_shared<std::vector<Input>>();
  for (const auto& [name, value] : *values) inputs->push_back({name, view(value)});
  return [f, values, inputs] { f->run(*inputs); };
}

}  // namespace

std::vector<Workload> recurrence_workloads() {
  return {{"lstm_b32_t128_h256", [](const std::string&) { return program(kLstm); }},
          {"rnn_b32_t128_h256", [](const std::string&) { return program(kTanhCell); }},
          {"pendulum_1000", [](const std::string&) { return program(kPendulum); }}};
}

}  // namespace rlx::bench
