// Random training graphs: a step of an optimiser on the gradient of a random program. The interpreter, the compiled step
// without fusion and the compiled step with it agree.
#include <gtest/gtest.h>

#include "rlx/ir/clone.h"
#include "rlx/runtime/compiled_graph.h"
#include "rlx/train/step_graph.h"
#include "tests/support/graphs.h"
#include "tests/support/random_program.h"

namespace rlx {
namespace {

// The program with x1 and x2 as weights and the mean of its last value as loss.
ir::Graph loss_of(const ir::Graph& program) {
  ir::Graph out(program.name());
  ir::Cloner copy(out);
  for (const ir::Node* n : program.nodes()) {
    if (n->op->traits.leaf && n->name != "x0") {
      copy.set(n->result(), out.param(n->name, n->shapes[0]));
    } else {
      copy.copy(*n);
    }
  }
  const ir::Expr last{&out, copy.at(program.outputs()[0])};
  out.set_outputs({ops::reduce_mean(ops::tanh(last), {})}, {"loss"});
  return out;
}

train::TrainOptions options_of(uint64_t seed) {
  const auto names = train::optimizer_names();
  train::TrainOptions o;
  o.optimizer = train::optimizer_named(names[seed % names.size()]);
  if (seed % 2 == 0) o.clip_norm = 0.5;
  if (seed % 3 == 0) o.clip_value = 0.1;
  if (seed % 5 == 0) o.average = 0.9;
  if (seed % 7 == 0) o.loss_scale = train::LossScale{.initial = 8};
  if (seed % 4 == 0) o.accumulate = 2;
  return o;
}

// Weights and batch are random; the state is small and positive, as squares must be.
NamedLiterals leaves_of(const ir::Graph& step, uint64_t seed) {
  NamedLiterals out;
  for (const ir::NodeId id : step.leaves()) {
    const std::string& name = step.node(id).name;
    const Shape& shape = step.node(id).shapes[0];
    const bool state = name.starts_with("optimizer/") || name.starts_with("train/");
    out.emplace(name, state ? Literal::full(shape, name == "train/count" ? 3 : 0.25)
                            : ir::sample_literal(cat(shape), seed * 31 + id));
  }
  return out;
}

TEST(TrainingGraphs, of_random_programs_equal_the_interpreter) {
  for (uint64_t seed = 0; seed < 500; ++seed) {
    const test::RandomProgram program(seed + 5000, 10);
    const train::StepGraph step = train::step_graph(loss_of(program.graph()), options_of(seed));
    SCOPED_TRACE(cat("seed ", seed, " ", step.graph));
    const NamedLiterals leaves = leaves_of(step.graph, seed);
    const NamedLiterals want = ir::interpret(step.graph, leaves);
    for (const bool fuse : {false, true}) {
      SCOPED_TRACE(fuse ? "fused" : "not fused");
      for (const auto& [name, value] : compile(step.graph, {}, {.fuse = fuse}).run(leaves)) {
        SCOPED_TRACE(name);
        test::expect_close(value, want.at(name), 1e-7);
      }
    }
    if (testing::Test::HasFailure()) break;
  }
}

}  // namespace
}  // namespace rlx
