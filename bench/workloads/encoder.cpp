#include "bench/workloads/encoder.h"

#include "bench/bench.h"
#include "bench/workloads/workload.h"
#include "rlx/ir/sample.h"
#include "rlx/ops/all.h"
#include "rlx/train/trainer.h"

namespace rlx::bench {
namespace {

using ir::Expr;

constexpr int64_t kWidth = kEncoderWidth, kInner = 1536, kHeads = 12, kLayers = 6;

Expr weight(Encoder& m, const std::string& name, Dims dims) {
  const Shape shape(DType::f32, std::move(dims));
  Literal value = ir::sample_literal(cat(shape), m.weights.size());
  for (float& v : value.mutable_data<float>()) v *= 0.05f;
  m.weights.emplace(name, value);
  return {&m.graph, m.graph.param(name, shape)};
}

Expr linear(Encoder& m, const std::string& name, Expr x, int64_t in, int64_t out) {
  return ops::add(ops::matmul(x, weight(m, name + ".w", {in, out})), weight(m, name + ".b", {out}));
}

Expr norm(Encoder& m, const std::string& name, Expr x) {
  return ops::layer_norm(x, weight(m, name + ".g", {kWidth}), weight(m, name + ".b", {kWidth}), -1, 1e-12);
}

Expr layers(Encoder& m, Dim batch, Dim seq) {
  ir::Graph& g = m.graph;
  Expr x{&g, g.input("x", Shape(DType::f32, {batch, seq, kWidth}))};
  const Expr mask{&g, g.input("mask", Shape(DType::f32, {batch, seq}))};
  for (int64_t i = 0; i < kLayers; ++i) {
    const std::string at = cat("layer", i);
    const Expr q = linear(m, at + ".q", x, kWidth, kWidth), k = linear(m, at + ".k", x, kWidth, kWidth),
               v = linear(m, at + ".v", x, kWidth, kWidth);
    const Expr a = ops::attention(q, k, v, mask, kHeads, kWidth / kHeads);
    x = norm(m, at + ".ln1", ops::add(linear(m, at + ".o", a, kWidth, kWidth), x));
    const Expr h = ops::gelu(linear(m, at + ".up", x, kWidth, kInner));
    x = norm(m, at + ".ln2", ops::add(linear(m, at + ".down", h, kInner, kWidth), x));
  }
  return x;
}

struct Batch {
  std::vector<float> x, mask;
  std::vector<Input> inputs;
  Batch(int64_t batch, int64_t seq)
      : x(size_t(batch * seq * kWidth)),
        mask(size_t(batch * seq), 1.0f),
        inputs{{"x", view(x.data(), {batch, seq, kWidth})}, {"mask", view(mask.data(), {batch, seq})}} {
    const Literal values = ir::sample_literal(cat("f32[", x.size(), "]"), 7);
    std::copy_n(values.data<float>().begin(), x.size(), x.begin());
  }
};

std::function<void()> forward(int64_t batch, int64_t seq) {
  const Encoder m = encoder();
  const auto f = std::make_shared<CompiledGraph>(compile(m.graph, m.weights, {.threads = threads()}));
  const auto in = std::make_shared<Batch>(batch, seq);
  return [f, in] { f->run(in->inputs); };
}

std::function<void()> step(int64_t batch, int64_t seq) {
  const Encoder m = encoder_loss(batch, seq);
  const auto t = std::make_shared<train::Trainer>(m.graph, m.weights,
                                                  train::TrainOptions{.compile = {.threads = threads()}});
  const auto in = std::make_shared<Batch>(batch, seq);
  return [t, in] { t->step(in->inputs); };
}

}  // namespace

Encoder encoder() {
  Encoder m;
  const Expr y = layers(m, Dim::batch(), Dim::seq());
  m.graph.set_outputs({y}, {"y"});
  return m;
}

Encoder encoder_loss(int64_t batch, int64_t seq) {
  Encoder m;
  const Expr y = layers(m, batch, seq);
  m.graph.set_outputs({ops::reduce_mean(ops::mul(y, y), {})}, {"loss"});
  return m;
}

double encoder_operations(int64_t batch, int64_t seq) {
  const double tokens = double(batch * seq);
  const double layer =
      tokens * double(4 * kWidth * kWidth + 2 * kWidth * kInner) + 2 * tokens * double(seq) * kWidth;
  return 2 * kLayers * layer;
}

std::vector<Workload> encoder_workloads() {
  std::vector<Workload> out;
  const int64_t sizes[][2] = {{1, 16}, {4, 15}, {8, 128}, {32, 128}};
  for (const auto& [batch, seq] : sizes) {
    out.push_back({cat("minilm_", batch, "x", seq),
                   [b = batch, s = seq](const std::string&) { return forward(b, s); }});
  }
  out.push_back({"minilm_train_8x128", [](const std::string&) { return step(8, 128); }});
  return out;
}

}  // namespace rlx::bench
