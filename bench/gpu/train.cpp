// A training step of the shape of GPT-2 (124M): products in bf16, weights and AdamW in f32, one program that changes its weights.
#include <algorithm>
#include <cstdio>

#include "bench/gpu/program.h"
#include "rlx/ir/sample.h"
#include "rlx/ops/all.h"
#include "rlx/train/init.h"
#include "rlx/train/trainer.h"

namespace rlx::bench {
namespace {

using ir::Expr;

constexpr int64_t kWidth = 768, kHeads = 12, kLayers = 12, kVocab = 50304, kContext = 1024;

// Mean cross entropy of the next token; `ids` has one token more than the context.
ir::Graph loss_graph(int64_t batch) {
  ir::Graph g("gpt2");
  const auto weight = [&](const std::string& name, Dims dims) {
    return Expr{&g, g.param(name, Shape(DType::f32, std::move(dims)))};
  };
  const auto linear = [&](const std::string& name, Expr x, int64_t in, int64_t out) {
    return ops::add(ops::matmul(x, weight(name + ".w", {in, out})), weight(name + ".b", {out}));
  };
  const auto norm = [&](const std::string& name, Expr x) {
    return ops::layer_norm(x, weight(name + ".g", {kWidth}), weight(name + ".b", {kWidth}), -1, 1e-5);
  };
  const Expr ids{&g, g.input("ids", Shape(DType::i32, {batch, kContext}))},
      next{&g, g.input("next", Shape(DType::i32, {batch * kContext}))};
  const Expr tokens = weight("tokens", {kVocab, kWidth});
  Expr x = ops::add(ops::gather(tokens, ids, 0), weight("places", {kContext, kWidth}));
  for (int64_t i = 0; i < kLayers; ++i) {
    const std::string at = cat("layer", i);
    const Expr qkv = linear(at + ".qkv", norm(at + ".ln1", x), kWidth, 3 * kWidth);
    const auto third = [&](int64_t n) { return ops::narrow(qkv, 2, n * kWidth, kWidth); };
    const Expr a =
        ops::attention_kind(third(0), third(1), third(2), kHeads, kWidth / kHeads, ops::MaskKind::causal);
    x = ops::add(x, linear(at + ".o", a, kWidth, kWidth));
    const Expr up = ops::gelu_approx(linear(at + ".up", norm(at + ".ln2", x), kWidth, 4 * kWidth));
    x = ops::add(x, linear(at + ".down", up, 4 * kWidth, kWidth));
  }
  const Expr rows = ops::reshape(norm("ln", x), {batch * kContext, kWidth});
  const Expr logits = ops::matmul(rows, ops::transpose(tokens, {1, 0}));
  g.set_outputs({ops::reduce_mean(ops::softmax_cross_entropy_with_logits(logits, next), {0})}, {"loss"});
  return g;
}

void training_step(int64_t batch, bool keep_narrow) {
  const ir::Graph loss = loss_graph(batch);
  train::TrainOptions options{.optimizer = train::adamw({.weight_decay = 0.1}),
                              .rate = train::constant(3e-4),
                              .mixed = DType::bf16,
                              .keep_narrow = keep_narrow,
                              .compile = {.device = "cuda"}};
  const Literal ids = ir::sample_literal(cat("i32[", batch, ",", kContext, "] <", kVocab), 3),
                next = ir::sample_literal(cat("i32[", batch * kContext, "] <", kVocab), 4);
  if (only_plans || show_steps) {
    const train::StepGraph step = train::step_graph(loss, options);
    ProgramOptions program;
    program.inputs = {{"ids", ids}, {"next", next}};
    for (const auto& s : step.states) program.compile.states.push_back({s.name, cat("next/", s.name)});
    Program p(step.graph, program);
    if (only_plans) {
      std::printf("%s", p.plan().c_str());
    } else {
      std::printf("again, with all kernels loaded\n");
      p.print_steps();
      std::printf("%.3f ms repeated\n", seconds_of(p) * 1e3);
    }
    return;
  }
  const double begin = now();
  train::Trainer t(loss, train::init(loss, {{"*", train::normal(0.02)}}, 1), options);
  const auto step = [&] { return t.step({{"ids", view(ids)}, {"next", view(next)}}).loss; };
  const double first = step();
  step();
  const double ready = now() - begin;
  std::vector<double> seconds;
  double last = 0;
  for (int i = 0; i < 9; ++i) {
    const double from = now();
    last = step();
    seconds.push_back(now() - from);
  }
  std::nth_element(seconds.begin(), seconds.begin() + 4, seconds.end());
  const std::vector<Input> inputs = {{"ids", view(ids)}, {"next", view(next)}};
  std::vector<double> ahead;
  t.start_step(inputs);
  for (int round = 0; round < 9; ++round) {
    constexpr int kSteps = 5;
    const double from = now();
    for (int i = 0; i < kSteps; ++i) {
      t.start_step(inputs);
      t.finish_step();
    }
    ahead.push_back((now() - from) / kSteps);
  }
  const double end = t.finish_step().loss;
  std::nth_element(ahead.begin(), ahead.begin() + 4, ahead.end());
  int on_host = 0;
  for (const auto& s : t.program().plan().steps) on_host += s.kernel == "on_host";
  const auto line = [&](const char* how, double s, double loss) {
    std::printf(
        "%-34s %16s   %3zu steps, %d on the host, ready in %.1f s, %.2f ms a step, loss %.3f to %.3f\n",
        cat("train_gpt2_b", batch, "_s", kContext, keep_narrow ? "" : "_rounded", how).c_str(),
        rounded(double(batch * kContext) / s, "tokens/s").c_str(), t.program().plan().steps.size(), on_host,
        ready, s * 1e3, first, loss);
    std::fflush(stdout);
  };
  line("", seconds[4], last);
  line("_ahead", ahead[4], end);  // the next step is queued before the loss of the last is read
}

// The loss of GPT-2 and its gradient by themselves, as mixed precision has them.
void loss_step(int64_t rows) {
  ir::Graph g("loss");
  const Expr x{&g, g.input("x", Shape(DType::bf16, {rows, kVocab}))},
      labels{&g, g.input("labels", Shape(DType::i32, {rows}))},
      d{&g, g.input("d", Shape(DType::f32, {rows}))};
  const Expr wide = ops::cast(x, DType::f32);
  const Expr gradient = ops::make<ops::SoftmaxCrossEntropyBackward>(g, {}, {wide, labels, d});
  g.set_outputs({ops::softmax_cross_entropy_with_logits(wide, labels), ops::cast(gradient, DType::bf16)},
                {"loss", "gradient"});
  ProgramOptions options;
  options.inputs = {{"labels", ir::sample_literal(cat("i32[", rows, "] <", kVocab), 3)}};
  Program p(g, options);
  const double seconds = seconds_of(p), bytes = 4.0 * double(rows * kVocab);
  report(cat("loss_", rows, "x", kVocab, "_bf16"),
         cat(rounded(seconds * 1e6, "us"), ", ", rounded(bytes / seconds / 1e12, "TB/s")), p);
}

}  // namespace

std::vector<Case> training_cases() {
  // The second rounds all weights at the beginning of each step.
  return {{"loss", [] { loss_step(8192); }},
          {"train_gpt2", [] { training_step(8, true); }},
          {"train_rounded_gpt2", [] { training_step(8, false); }}};
}

}  // namespace rlx::bench
