#include "rlx/train/trainer.h"

#include <gtest/gtest.h>

#include <cmath>

#include "rlx/backend/plan.h"
#include "rlx/base/file.h"
#include "rlx/ir/sample.h"
#include "rlx/train/batches.h"
#include "rlx/train/init.h"
#include "tests/support/compare.h"
#include "tests/support/errors.h"
#include "tests/support/graphs.h"
#include "tests/support/scratch.h"

namespace rlx {
namespace {

using namespace train;

// Three layers on any number of rows.
ir::Graph network() {
  return test::graph(
      R"(graph @net(x: f32[n,6], t: f32[n,2], param a: f32[6,8], param b: f32[8], param c: f32[8,8],
                                  param d: f32[8,2]) {
    h = tanh(add(matmul(x, a), b))
    g = tanh(matmul(h, c))
    e = sub(matmul(g, d), t)
    loss = reduce(mul(e, e), kind=mean)
    return loss, error=e
  })");
}
NamedLiterals weights() { return init(network(), std::vector<InitChoice>{}, 3); }
NamedLiterals batch(int64_t rows, uint64_t seed) {
  return {{"x", ir::sample_literal(cat("f32[", rows, ",6]"), seed)},
          {"t", ir::sample_literal(cat("f32[", rows, ",2]"), seed + 1000)}};
}

// The values of `count` batches in one tensor, with an axis in front.
NamedLiterals stacked(int64_t rows, uint64_t seed, int64_t count) {
  NamedLiterals out;
  for (const auto& [name, width] : {std::pair{"x", 6}, std::pair{"t", 2}}) {
    std::vector<float> all;
    for (int64_t i = 0; i < count; ++i) {
      const Literal part = batch(rows, seed + uint64_t(i)).at(name);
      const auto one = part.data<float>();
      all.insert(all.end(), one.begin(), one.end());
    }
    out.emplace(name, Literal::of<float>({count, rows, width}, all));
  }
  return out;
}

void expect_same(const NamedLiterals& a, const NamedLiterals& b) {
  ASSERT_EQ(a.size(), b.size());
  for (const auto& [name, value] : a) EXPECT_EQ(value, b.at(name)) << name;
}
void expect_close(const NamedLiterals& a, const NamedLiterals& b, double tolerance) {
  for (const auto& [name, value] : a) {
    SCOPED_TRACE(name);
    test::expect_close(value, b.at(name), tolerance);
  }
}

TEST(Trainer, makes_the_loss_small_at_any_number_of_rows) {
  Trainer t(network(), weights(), {.optimizer = adam(), .rate = constant(0.01)});
  const double first = t.step(batch(7, 1)).loss;
  double last = first;
  for (int i = 0; i < 300; ++i) last = t.step(batch(7, 1)).loss;
  EXPECT_LT(last, 0.05 * first);
  EXPECT_EQ(t.steps(), 301);
  t.step(batch(3, 2));
  EXPECT_EQ(t.output("error").shape(), parse_shape("f32[3,2]"));
}

TEST(Trainer, steps_that_are_queued_ahead_are_the_same_steps) {
  const TrainOptions plain{.optimizer = adamw(), .rate = cosine(0.01, 10)};
  TrainOptions scaled = plain;
  scaled.loss_scale = LossScale();
  for (const TrainOptions& options : {plain, scaled}) {
    Trainer a(network(), weights(), options), b(network(), weights(), options);
    const size_t ahead = options.loss_scale ? 1 : CompiledGraph::kAhead;
    std::vector<StepResult> told;
    for (uint64_t i = 0; i < 7; ++i) {
      const NamedLiterals one = batch(5, i);
      b.start_step({{"x", view(one.at("x"))}, {"t", view(one.at("t"))}});
      if (i + 1 >= ahead) told.push_back(b.finish_step());
    }
    while (told.size() < 7) told.push_back(b.finish_step());
    for (uint64_t i = 0; i < 7; ++i) {
      const StepResult want = a.step(batch(5, i));
      EXPECT_EQ(told[i].step, want.step);
      EXPECT_EQ(told[i].loss, want.loss);
      EXPECT_EQ(told[i].rate, want.rate);
      EXPECT_EQ(told[i].scale, want.scale);
    }
    expect_same(a.weights(), b.weights());
  }
}

TEST(Trainer, tells_of_steps_that_were_not_finished) {
  Trainer t(network(), weights(), {.optimizer = adam(), .rate = constant(0.01)});
  const NamedLiterals one = batch(5, 1);
  EXPECT_EQ(test::error_of([&] { t.finish_step(); }), "train: finish_step: no step was started");
  t.start_step({{"x", view(one.at("x"))}, {"t", view(one.at("t"))}});
  EXPECT_EQ(test::error_of([&] { t.step(one); }),
            "train: step: 1 steps were started and not finished; finish them first");
  EXPECT_NE(test::error_of([&] { t.weights(); }).find("finish them first"), std::string::npos);
  t.finish_step();
  EXPECT_EQ(t.output("error").shape(), parse_shape("f32[5,2]"));
}

TEST(Trainer, changes_weights_in_their_place) {
  for (const Optimizer& optimizer : {sgd(), sgd({.momentum = 0.9}), adam(), adamw(), lion()}) {
    SCOPED_TRACE(optimizer.name);
    Trainer t(network(), weights(), {.optimizer = optimizer, .rate = constant(0.1)});
    t.step(batch(4, 1));
    const backend::Plan& plan =
        t.program().plan({{"x", parse_shape("f32[4,6]")}, {"t", parse_shape("f32[4,2]")}});
    for (const backend::Plan::Step& s : plan.steps) EXPECT_NE(s.kernel, "copy") << plan.text();
    EXPECT_EQ(t.program().inputs().size(), 3u);  // x, t and the rate
  }
}

TEST(Trainer, resumes_from_a_checkpoint_with_the_same_bits) {
  const test::Scratch scratch;
  const std::string path = scratch.path("run.safetensors");
  for (const std::string& name : optimizer_names()) {
    SCOPED_TRACE(name);
    const TrainOptions options{.optimizer = optimizer_named(name),
                               .rate = warm_up(3, cosine(0.01, 20)),
                               .clip_norm = 0.5,
                               .average = 0.9};
    Trainer whole(network(), weights(), options);
    for (uint64_t i = 0; i < 5; ++i) whole.step(batch(4, i));
    whole.save_checkpoint(path);
    Trainer second(network(), init(network(), normal(), 99), options);
    second.load_checkpoint(path);
    EXPECT_EQ(second.steps(), 5);
    for (uint64_t i = 5; i < 12; ++i) {
      const StepResult a = whole.step(batch(4, i)), b = second.step(batch(4, i));
      EXPECT_EQ(a.loss, b.loss);
      EXPECT_EQ(a.rate, b.rate);
    }
    expect_same(whole.weights(), second.weights());
    expect_same(whole.weights(true), second.weights(true));
  }
}

TEST(Trainer, refuses_a_checkpoint_of_something_else) {
  const test::Scratch scratch;
  const std::string path = scratch.path("run.safetensors");
  Trainer a(network(), weights(), {.optimizer = sgd()});
  a.step(batch(4, 1));
  a.save_checkpoint(path);
  const std::string start = cat("checkpoint: '", path, "' does not fit: ");
  Trainer momentum(network(), weights(), {.optimizer = sgd({.momentum = 0.9}), .frozen = {"a", "b", "c"}});
  const NamedLiterals before = momentum.weights();
  EXPECT_EQ(
      test::message_of([&] { momentum.load_checkpoint(path); }),
      start +
          "it was made by sgd(dampening=0.0, momentum=0.0, nesterov=0.0, weight_decay=0.0), here is "
          "sgd(dampening=0.0, momentum=0.9, nesterov=0.0, weight_decay=0.0); it has no 'optimizer/momentum/d'");
  Trainer fewer(network(), weights(), {.optimizer = sgd(), .frozen = {"a"}});
  EXPECT_EQ(test::message_of([&] { fewer.load_checkpoint(path); }),
            start + "load_states: there is no state 'a'");
  expect_same(momentum.weights(), before);
  EXPECT_EQ(momentum.steps(), 0);
}

TEST(Trainer, averages_gradients_over_batches) {
  Trainer one(network(), weights(), {.optimizer = adam(), .rate = constant(0.01)});
  Trainer four(network(), weights(), {.optimizer = adam(), .rate = constant(0.01), .accumulate = 4});
  for (uint64_t i = 0; i < 5; ++i) {
    // The same rows at once and in four parts.
    const NamedLiterals parts = stacked(3, 10 * i, 4);
    NamedLiterals all;
    for (const auto& [name, value] : parts) all.emplace(name, value.reshaped({12, value.shape().dim(2)}));
    const double loss = one.step(all).loss;
    EXPECT_NEAR(four.step(parts).loss, loss, 1e-6);
  }
  EXPECT_EQ(four.output("error").shape(), parse_shape("f32[4,3,2]"));
  expect_close(four.weights(), one.weights(), 1e-5);
}

TEST(Trainer, keeps_a_running_mean_of_the_weights) {
  Trainer t(network(), weights(), {.optimizer = sgd(), .rate = constant(0.1), .average = 0.8});
  NamedLiterals mean = weights();
  for (uint64_t i = 0; i < 4; ++i) {
    t.step(batch(4, i));
    const NamedLiterals all = t.weights();
    for (auto& [name, value] : mean) {
      const auto now = all.at(name).data<float>();
      auto at = value.mutable_data<float>();
      for (size_t k = 0; k < at.size(); ++k) at[k] = 0.8f * at[k] + 0.2f * now[k];
    }
  }
  expect_close(t.weights(true), mean, 1e-6);
}

TEST(Trainer, leaves_frozen_weights_and_follows_rules) {
  Trainer t(network(), weights(),
            {.optimizer = sgd({.weight_decay = 0.5}),
             .rate = constant(0.1),
             .frozen = {"a", "b"},
             .rules = {{"c", 0.0}, {"d", 1.0, 0.0}}});
  Trainer plain(network(), weights(), {.optimizer = sgd(), .rate = constant(0.1), .frozen = {"a", "b"}});
  t.step(batch(4, 1));
  plain.step(batch(4, 1));
  const NamedLiterals start = weights(), now = t.weights();
  for (const char* name : {"a", "b", "c"}) EXPECT_EQ(now.at(name), start.at(name)) << name;
  EXPECT_EQ(now.at("d"), plain.weights().at("d"));
  EXPECT_NE(now.at("d"), start.at("d"));
}

double norm_of_step(const NamedLiterals& a, const NamedLiterals& b) {
  double square = 0;
  for (const auto& [name, value] : a) {
    for (int64_t i = 0; i < value.elements(); ++i)
      square += std::pow(value.real_at(i) - b.at(name).real_at(i), 2);
  }
  return std::sqrt(square);
}

TEST(Trainer, limits_gradients_by_norm_and_by_value) {
  Trainer free(network(), weights(), {.optimizer = sgd(), .rate = constant(1)});
  free.step(batch(4, 1));
  const double norm = norm_of_step(free.weights(), weights());
  Trainer clipped(network(), weights(), {.optimizer = sgd(), .rate = constant(1), .clip_norm = norm / 3});
  EXPECT_NEAR(*clipped.step(batch(4, 1)).grad_norm, norm, 1e-5 * norm);
  EXPECT_NEAR(norm_of_step(clipped.weights(), weights()), norm / 3, 1e-4 * norm);
  Trainer wide(network(), weights(), {.optimizer = sgd(), .rate = constant(1), .clip_norm = 10 * norm});
  wide.step(batch(4, 1));
  expect_close(wide.weights(), free.weights(), 1e-6);
  Trainer flat(network(), weights(), {.optimizer = sgd(), .rate = constant(1), .clip_value = 1e-3});
  flat.step(batch(4, 1));
  for (const auto& [name, value] : weights()) {
    for (int64_t i = 0; i < value.elements(); ++i)
      EXPECT_LE(std::fabs(flat.weights().at(name).real_at(i) - value.real_at(i)), 1.001e-3);
  }
}

TEST(Trainer, computes_again_what_does_not_fit_the_budget) {
  const TrainOptions plain{.optimizer = adamw(), .rate = constant(0.01)};
  Trainer all(network(), weights(), plain);
  for (const int64_t budget : {0, 400, 100000}) {
    SCOPED_TRACE(budget);
    TrainOptions options = plain;
    options.activation_budget = budget;
    const ir::Graph fixed = network().bind([] {
      DimBinding b;
      b.set("n", 5);
      return b;
    }());
    Trainer some(fixed, weights(), options), reference(fixed, weights(), plain);
    EXPECT_LE(some.saved_bytes(), budget);
    EXPECT_NE(some.forward_program(), nullptr);
    EXPECT_EQ(reference.forward_program(), nullptr);
    for (uint64_t i = 0; i < 4; ++i)
      EXPECT_NEAR(some.step(batch(5, i)).loss, reference.step(batch(5, i)).loss, 1e-6);
    EXPECT_EQ(some.output("error").shape(), parse_shape("f32[5,2]"));
    expect_close(some.weights(), reference.weights(), 1e-6);
  }
}

TEST(Trainer, lowers_the_loss_scale_when_gradients_overflow) {
  const LossScale scale{.initial = 1e30, .interval = 3};
  Trainer t(network(), weights(),
            {.optimizer = adam(), .rate = constant(0.01), .mixed = DType::f16, .loss_scale = scale});
  const NamedLiterals start = weights();
  int skipped = 0;
  StepResult r = t.step(batch(4, 1));
  EXPECT_TRUE(r.skipped);
  expect_same(t.weights(), start);
  while (r.skipped && skipped < 200) r = t.step(batch(4, 1)), ++skipped;
  EXPECT_LT(skipped, 120);
  EXPECT_GT(skipped, 40);  // until the scaled gradients are below 65504
  // The number of the step did not move while steps were skipped: a first step of Adam moves by the rate.
  EXPECT_NEAR(std::fabs(t.weights().at("d").real_at(0) - start.at("d").real_at(0)), 0.01, 1e-4);
  const double low = t.step(batch(4, 2)).scale;
  t.step(batch(4, 2));
  EXPECT_EQ(t.step(batch(4, 2)).scale, 2 * low);
}

// Gradients that fit in f32 with every scale that does.
TEST(Trainer, raises_the_loss_scale_to_no_infinity) {
  const ir::Graph g = test::graph(R"(graph @g(x: f32[2], param w: f32[2]) {
    p = mul(x, w)
    return reduce(p)
  })");
  Trainer t(g, {{"w", Literal::of<float>({2}, {1, 2})}},
            {.optimizer = adam(),
             .rate = constant(0.01),
             .loss_scale = LossScale{.initial = 0x1p126, .interval = 1}});
  const NamedLiterals x{{"x", Literal::of<float>({2}, {1e-3F, 2e-3F})}};
  for (int i = 0; i < 6; ++i) {
    const StepResult r = t.step(x);
    EXPECT_FALSE(r.skipped) << i;
    EXPECT_LE(r.scale, 0x1p127) << i;
  }
}

TEST(Trainer, in_mixed_precision_stays_near_f32) {
  for (const DType narrow : {DType::bf16, DType::f16}) {
    SCOPED_TRACE(cat(narrow));
    Trainer wide(network(), weights(), {.optimizer = adam(), .rate = constant(0.01)});
    Trainer mixed(network(), weights(), {.optimizer = adam(), .rate = constant(0.01), .mixed = narrow});
    for (uint64_t i = 0; i < 20; ++i) {
      const double a = wide.step(batch(8, i)).loss, b = mixed.step(batch(8, i)).loss;
      EXPECT_NEAR(a, b, (narrow == DType::bf16 ? 0.05 : 0.01) * (1 + a));
      EXPECT_NE(a, b);
    }
    EXPECT_EQ(mixed.weights().at("a").dtype(), DType::f32);
  }
}

// Weights that the update rounds for the next step instead of the step at its beginning.
TEST(Trainer, keeps_weights_in_the_narrow_type_with_the_same_bits) {
  const test::Scratch scratch;
  for (const DType narrow : {DType::bf16, DType::f16}) {
    SCOPED_TRACE(cat(narrow));
    TrainOptions options{
        .optimizer = adamw(), .rate = constant(0.01), .clip_norm = 0.5, .average = 0.9, .mixed = narrow};
    if (narrow == DType::f16)
      options.loss_scale = LossScale{.initial = 1e9, .interval = 2};  // some steps are left out
    TrainOptions plain = options;
    plain.keep_narrow = false;
    Trainer kept(network(), weights(), options), rounded(network(), weights(), plain);
    EXPECT_EQ(kept.program().states().size(), rounded.program().states().size() + 4);
    int skipped = 0;
    for (uint64_t i = 0; i < 20; ++i) {
      const StepResult a = kept.step(batch(8, i)), b = rounded.step(batch(8, i));
      EXPECT_EQ(a.loss, b.loss) << i;
      EXPECT_EQ(a.skipped, b.skipped) << i;
      skipped += a.skipped;
    }
    EXPECT_EQ(skipped > 0, narrow == DType::f16);
    expect_same(kept.weights(), rounded.weights());
    // Checkpoints are those of a training without them, in both directions.
    const std::string path = scratch.path("run.safetensors"), other = scratch.path("other.safetensors");
    kept.save_checkpoint(path);
    rounded.save_checkpoint(other);
    EXPECT_EQ(read_file(path), read_file(other));
    Trainer again(network(), init(network(), normal(), 99), options);
    again.load_checkpoint(other);
    for (uint64_t i = 20; i < 25; ++i)
      EXPECT_EQ(again.step(batch(8, i)).loss, kept.step(batch(8, i)).loss) << i;
    expect_same(again.weights(), kept.weights());
  }
}

TEST(Trainer, rounds_no_weight_inside_of_a_step_that_keeps_it_narrow) {
  Trainer t(network(), weights(), {.optimizer = adamw(), .rate = constant(0.01), .mixed = DType::bf16});
  t.step(batch(4, 1));
  const backend::Plan& plan =
      t.program().plan({{"x", parse_shape("f32[4,6]")}, {"t", parse_shape("f32[4,2]")}});
  const auto leaf_of = [&](const std::string& name) {
    for (size_t i = 0; i < plan.buffers.size(); ++i) {
      if (plan.buffers[i].kind == backend::BufferKind::leaf && plan.buffers[i].name == name) return int(i);
    }
    return -1;
  };
  for (const char* name : {"a", "c", "d"}) {
    const int weight = leaf_of(name);
    ASSERT_GE(weight, 0);
    EXPECT_GE(leaf_of(cat("narrow/", name)), 0);
    // The update alone.
    int readers = 0;
    for (const backend::Plan::Step& s : plan.steps)
      readers += std::any_of(s.in.begin(), s.in.end(),
                             [&](const backend::Plan::Place& p) { return p.buffer == weight; });
    EXPECT_EQ(readers, 1) << name << "\n" << plan.text();
  }
  for (const backend::Plan::Step& s : plan.steps) EXPECT_NE(s.kernel, "copy") << plan.text();
}

// A running mean of the inputs, as a batch norm keeps it.
TEST(Trainer, carries_states_of_the_model) {
  const ir::Graph g = test::graph(R"(graph @net(x: f32[4], mean: f32[], param w: f32[4]) {
    m = reduce(x, kind=mean)
    next = add(mul(mean, full(shape=f32[], value=0.5)), mul(m, full(shape=f32[], value=0.5)))
    d = sub(mul(x, w), mean)
    loss = reduce(mul(d, d))
    return loss, next
  })");
  const NamedLiterals start{{"w", Literal::full(parse_shape("f32[4]"), 1)}};
  const Literal x = Literal::full(parse_shape("f32[4]"), 2), two = Literal::full(parse_shape("f32[2,4]"), 2);
  Trainer t(g, start, {.optimizer = sgd(), .rate = constant(0), .states = {{"mean", "next"}}});
  EXPECT_EQ(t.step({{"x", view(x)}}).loss, 16);
  EXPECT_EQ(t.step({{"x", view(x)}}).loss, 4);
  EXPECT_EQ(t.program().state("mean").as<float>()[0], 1.5f);
  Trainer twice(g, start,
                {.optimizer = sgd(), .rate = constant(0), .accumulate = 2, .states = {{"mean", "next"}}});
  EXPECT_EQ(twice.step({{"x", view(two)}}).loss, 10);
}

// What a weight of 16 bits rounds is the weight, not its gradient's norm, its eps or the mean of its squares; one without a
// gradient stays.
TEST(Trainer, updates_weights_of_16_bits_in_f32) {
  const auto loss = [](const std::string& type) {
    return test::graph("graph @narrow(x: f32[2,2], param w: " + type + "[2,2], param unused: " + type +
                       R"([3]) {
      v = cast(w)
      a = mul(v, x)
      e = mul(a, a)
      return loss=reduce(e)
    })");
  };
  const Literal x = Literal::of<float>({2, 2}, {1, 20, 100, 150});
  const auto trained = [&](const std::string& type, const Optimizer& optimizer) {
    const ir::Graph g = loss(type);
    NamedLiterals start;
    for (const ir::NodeId id : g.params())
      start.emplace(g.node(id).name, Literal::full(g.node(id).shapes[0], 0.5));
    Trainer t(g, start,
              {.optimizer = optimizer, .rate = constant(0.03125), .clip_norm = 1.0, .average = 0.5});
    for (int i = 0; i < 8; ++i) t.step({{"x", view(x)}});
    const Literal mean = t.weights(true).at("w");
    EXPECT_EQ(cat(mean.shape()), type + "[2,2]");
    NamedLiterals out = t.weights();
    out.emplace("mean", mean);
    return out;
  };
  for (const std::string& name : optimizer_names()) {
    if (name == "lbfgs") continue;  // divides differences of gradients, which the rounding of weights decides
    const Optimizer o = optimizer_named(name);
    const NamedLiterals want = trained("f32", o);
    for (const std::string type : {"f16", "bf16"}) {
      SCOPED_TRACE(name + " " + type);
      for (const auto& [weight, value] : trained(type, o))
        test::expect_close(value.cast(DType::f32), want.at(weight), type == "f16" ? 5e-3 : 4e-2);
    }
  }
}

// A weight may be called like the mean of another.
TEST(Trainer, starts_every_weight_at_its_own_value) {
  const ir::Graph g = test::graph(
      R"(graph @g(x: f32[2], param "average/w": f32[2], param w: f32[2]) {
        y = mul(mul(x, "average/w"), w)
        return loss=reduce(y)
      })");
  const NamedLiterals start = {{"w", Literal::of<float>({2}, {1, 2})},
                               {"average/w", Literal::of<float>({2}, {3, 4})}};
  const Trainer t(g, start, {});
  expect_same(t.weights(), start);
}

TEST(Trainer, tells_what_is_wrong) {
  const auto error = [](const TrainOptions& o) {
    return test::message_of([&] { Trainer(network(), weights(), o); });
  };
  EXPECT_EQ(error({.frozen = {"z*"}}),
            "train: 'z*' is to be frozen, but no param has that name; there are a, b, c, d");
  EXPECT_EQ(error({.frozen = {"*"}}), "train: graph 'net' has no params to train");
  EXPECT_EQ(error({.loss = "error"}), "grad: the loss 'error' is f32[n,2]; it must be a real scalar");
  EXPECT_EQ(error({.accumulate = 0}), "train: gradients of 0 batches; at least 1");
  EXPECT_EQ(error({.average = 1.0}),
            "train: averaged weights with a decay of 1.0; at least 0 and below 1 is needed");
  EXPECT_EQ(error({.clip_value = -1.0}), "train: gradients limited to -1.0; a number above 0 is needed");
  EXPECT_EQ(error({.clip_norm = NAN}),
            "train: the norm of gradients limited to nan; a number above 0 is needed");
  EXPECT_EQ(error({.activation_budget = -5}),
            "train: an activation budget of -5 bytes; at least 0 is needed");
  EXPECT_EQ(error({.activation_budget = 1000}),
            "grad: a budget in bytes, and sizes of n are open; bind them first (Graph::bind)");
  EXPECT_EQ(error({.mixed = DType::f64}), "train: mixed precision computes in bf16 or f16");
  EXPECT_EQ(
      error({.states = {{"a", "none"}, {"x", "error"}}}),
      "train: state 'a' is no input of the graph, which takes x, t; state 'a' becomes 'none', which is no output; "
      "there are loss, error; state 'x' is f32[n,6] and becomes f32[n,2]; both must be of one type");
  EXPECT_EQ(error({.compile = {.states = {{"x", "error"}}}}),
            "train: the options of compiling have states; those of the model stand in TrainOptions::states");
  Trainer nowhere(network(), weights(), {.rate = [](int64_t step) { return step > 0 ? NAN : 0.1; }});
  nowhere.step(batch(4, 1));
  EXPECT_EQ(test::message_of([&] { nowhere.step(batch(4, 2)); }),
            "train: the rate of step 1 is nan; a finite number is needed");
  EXPECT_EQ(error({.rules = {{.names = "a", .rate_factor = -1}}}),
            "train: the rule for 'a' has a rate factor of -1.0; at least 0 and finite is needed");
  EXPECT_EQ(error({.rules = {{.names = "a", .weight_decay = NAN}}}),
            "train: the rule for 'a' has a weight decay of nan; at least 0 and finite is needed");
  EXPECT_EQ(error({.loss_scale = LossScale{.initial = 0}}),
            "train: a loss scale of 0.0; above 0 and finite is needed");
  EXPECT_EQ(error({.loss_scale = LossScale{.growth = 0.5}}),
            "train: a loss scale that grows by a factor of 0.5; at least 1 and finite is needed");
  EXPECT_EQ(error({.loss_scale = LossScale{.backoff = 1}}),
            "train: a loss scale that falls by a factor of 1.0; a number between 0 and 1 is needed");
  EXPECT_EQ(error({.loss_scale = LossScale{.interval = 0}}),
            "train: a loss scale that grows after 0 steps; at least 1 is needed");
  const std::string one_line =
      "optimizer: lbfgs moves all tensors along one line at one rate and decays none; by a rule 'b' ";
  EXPECT_EQ(error({.optimizer = lbfgs(), .rules = {{.names = "b", .rate_factor = 0.5}}}),
            one_line + "has another rate than 'a'");
  EXPECT_EQ(error({.optimizer = lbfgs(), .rules = {{.names = "b", .weight_decay = 0.1}}}),
            one_line + "decays by 0.1");
  EXPECT_EQ(error({.optimizer = lbfgs(), .rules = {{.names = "*", .rate_factor = 0.5, .weight_decay = 0}}}),
            "no error");
  NamedLiterals wrong = weights();
  wrong.erase("a");
  wrong["e"] = wrong.at("b");
  wrong["b"] = Literal::zeros(parse_shape("f32[3]"));
  EXPECT_EQ(
      test::message_of([&] { Trainer(network(), wrong); }),
      "train: param 'a' (f32[6,8]) has no value; 'b' is f32[8], the value is f32[3]; 'e' is not a param; did you "
      "mean 'a'");
  Trainer t(network(), weights());
  EXPECT_EQ(test::message_of([&] { t.output("loss"); }),
            "train: there was no step yet that could have an output 'loss'");
}

TEST(Batches, go_round_and_convert_what_can_be_converted) {
  const ir::Graph g = test::graph("graph @g(x: f32[2], i: i32[], param w: f32[2]) { return mul(x, w), i }");
  const NamedLiterals data{{"x", Literal::of<double>({3, 2}, {0, 1, 2, 3, 4, 5})},
                           {"i", Literal::of<int64_t>({3}, {7, 8, 9})}};
  Batches b(g, data);
  EXPECT_EQ(b.steps(), 3);
  EXPECT_EQ(b.at(4)[0].value.as<float>()[1], 3);
  EXPECT_EQ(b.at(5)[1].value.as<int32_t>()[0], 9);
  NamedLiterals wrong{{"x", Literal::of<float>({3, 3}, std::vector<float>(9))},
                      {"i", Literal::of<int64_t>({1}, {int64_t(1) << 40})},
                      {"y", Literal::of<float>({1}, {0})}};
  EXPECT_EQ(
      test::message_of([&] { Batches(g, wrong); }),
      "train: data 'x' is f32[3,3]; input f32[2] needs an axis of batches in front; data 'i' holds 1099511627776, "
      "which is no i32; data 'y' is no input of the graph; the graph takes x, i");
}

// 5 batches for steps of 2: none is left out, and the third step goes on at the beginning.
TEST(Batches, that_fill_no_last_step_are_followed_by_the_first) {
  const ir::Graph g = test::graph("graph @g(x: f32[2], param w: f32[2]) { return mul(x, w) }");
  Batches b(g, {{"x", Literal::of<float>({5, 2}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9})}}, 2);
  EXPECT_EQ(b.steps(), 3);
  const auto numbers = [&](int64_t step) {
    const auto x = b.at(step)[0].value.as<float>();
    return std::vector<float>(x.begin(), x.end());
  };
  EXPECT_EQ(numbers(1), std::vector<float>({4, 5, 6, 7}));
  EXPECT_EQ(numbers(2), std::vector<float>({8, 9, 0, 1}));
  EXPECT_EQ(numbers(3), std::vector<float>({2, 3, 4, 5}));
  EXPECT_EQ(numbers(5), std::vector<float>({0, 1, 2, 3}));
  EXPECT_EQ(test::message_of([&] { Batches(g, {{"x", Literal::of<float>({1, 2}, {0, 1})}}, 2); }),
            "train: 1 batches for steps of 2");
}

}  // namespace
}  // namespace rlx
