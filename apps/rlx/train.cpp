// rlx train: makes the loss of a graph small on data from a file.
#include <chrono>
#include <cmath>
#include <filesystem>

#include "apps/rlx/command.h"
#include "apps/rlx/device.h"
#include "apps/rlx/output.h"
#include "apps/rlx/progress.h"
#include "apps/rlx/schedule_arguments.h"
#include "apps/rlx/value_files.h"
#include "rlx/backend/plan.h"
#include "rlx/base/file.h"
#include "rlx/base/json_write.h"
#include "rlx/io/literal.h"
#include "rlx/io/npy.h"
#include "rlx/io/safetensors.h"
#include "rlx/ir/call.h"
#include "rlx/ir/leaves.h"
#include "rlx/lang/graph_file.h"
#include "rlx/runtime/devices.h"
#include "rlx/train/batches.h"
#include "rlx/train/init.h"
#include "rlx/train/trainer.h"

namespace rlx::cli {
namespace {

struct Options {
  std::string path, device = "cpu", loss, optimizer = "adamw", mixed, save, averaged, checkpoint, resume;
  std::string progress = "auto";
  std::vector<std::string> data, init, settings, frozen, no_decay;
  train::ScheduleText schedule;
  ScheduleArguments schedule_arguments;
  std::optional<double> clip_norm, clip_value, average;
  std::optional<int64_t> steps, budget;
  int64_t accumulate = 1, checkpoint_every = 0;
  int threads = 0;
  uint64_t seed = 1;
  bool json = false;
};

train::Settings read_settings(const std::vector<std::string>& list) {
  train::Settings out;
  for (const std::string& item : list) {
    const size_t equals = item.find('=');
    const std::string value = equals == std::string::npos ? "" : item.substr(equals + 1);
    char* end = nullptr;
    double number = std::strtod(value.c_str(), &end);
    const bool word = value == "true" || value == "false";
    if (word) number = value == "true";
    if (equals == 0 || value.empty() || (!word && *end != '\0'))
      throw invalid("train: --set ", item, "; NAME=NUMBER expected");
    const std::string name = item.substr(0, equals);
    if (!out.emplace(name, number).second) throw invalid("train: --set ", name, " is given twice");
  }
  return out;
}

// What the file has, then --init, then random numbers; floats take the types of the graph.
NamedLiterals starting_weights(const ir::Graph& g, const NamedLiterals& own, const Options& o) {
  NamedLiterals given = read_values("train", "--init", o.init);
  for (const auto& [name, value] : own) given.emplace(name, value);
  NamedLiterals out = train::init(g, {}, o.seed);
  std::vector<std::string> unknown;
  for (const auto& [name, value] : given) {
    const auto it = out.find(name);
    if (it == out.end()) {
      unknown.push_back(cat("'", name, "'"));
    } else {
      const DType type = it->second.dtype();
      it->second = is_float(value.dtype()) && is_float(type) ? value.cast(type) : value;
    }
  }
  if (!unknown.empty()) throw invalid("train: ", join(unknown), " of --init: no params of the graph");
  return out;
}

train::TrainOptions train_options(const Options& o, int64_t steps) {
  train::TrainOptions out;
  out.loss = o.loss;
  out.frozen = o.frozen;
  out.optimizer = train::optimizer_named(o.optimizer, read_settings(o.settings));
  train::ScheduleText schedule = o.schedule;
  schedule.steps = steps;
  out.rate = train::schedule_of(schedule);
  for (const std::string& names : o.no_decay) out.rules.push_back({names, 1, 0.0});
  out.clip_norm = o.clip_norm;
  out.clip_value = o.clip_value;
  out.accumulate = o.accumulate;
  out.average = o.average;
  if (!o.mixed.empty()) out.mixed = o.mixed == "bf16" ? DType::bf16 : DType::f16;
  out.activation_budget = o.budget;
  out.compile = {.device = o.device, .threads = o.threads};
  return out;
}

// A budget is counted in bytes, so the sizes of the data have to be known.
ir::Graph with_sizes_of(const ir::Graph& g, std::span<const Input> batch) {
  std::vector<Shape> leaves;
  for (const ir::NodeId id : g.leaves()) {
    const auto given = std::find_if(batch.begin(), batch.end(),
                                    [&](const Input& in) { return in.name == ir::leaf_name(g.node(id)); });
    leaves.push_back(given == batch.end() ? g.node(id).shapes[0] : given->value.shape());
  }
  return g.bind(ir::solve_sizes(g, leaves));
}

void save_weights(const std::string& path, const NamedLiterals& weights) {
  std::vector<io::TensorView> tensors;
  for (const auto& [name, value] : weights) tensors.push_back(io::to_view(name, value));
  io::write_safetensors(path, tensors);
}

// What is only written at the end should not fail there for a reason that was known before.
void check_places(const Options& o) {
  for (const auto& [option, path] : {std::pair("--save", o.save), std::pair("--save-average", o.averaged),
                                     std::pair("--checkpoint", o.checkpoint)}) {
    if (path.empty()) continue;
    const std::string folder = std::filesystem::path(path).parent_path().string();
    if (!folder.empty() && path_kind(folder) != PathKind::folder)
      throw invalid("train: ", option, " ", path, ": there is no folder '", folder, "'");
    if (path_kind(path) == PathKind::folder)
      throw invalid("train: ", option, " ", path, " is a folder; the name of a file is needed");
  }
}

struct Curve {
  std::vector<double> loss, rate, grad_norm;
  std::vector<int64_t> skipped;
  int64_t first = 0;
  double seconds = 0;
};

Curve train_steps(train::Trainer& trainer, train::Batches& batches, int64_t steps, const Options& o) {
  Curve out{.first = trainer.steps()};
  Progress progress("train", o.progress);
  const auto start = std::chrono::steady_clock::now();
  while (trainer.steps() < steps) {
    const train::StepResult r = trainer.step(batches.at(trainer.steps()));
    if (std::isnan(r.loss) && !r.skipped)
      throw invalid(
          "train: the loss of step ", r.step,
          " is nan, and so are the weights behind it; look for NaN in the data, or try a smaller --lr or --clip-norm");
    out.loss.push_back(r.loss);
    out.rate.push_back(r.rate);
    if (r.grad_norm) out.grad_norm.push_back(*r.grad_norm);
    if (r.skipped) out.skipped.push_back(r.step);
    if (o.checkpoint_every > 0 && trainer.steps() % o.checkpoint_every == 0 && trainer.steps() < steps) {
      check_mapped_files();
      trainer.save_checkpoint(o.checkpoint);
    }
    progress.show(r.step + 1, steps, cat("step ", r.step + 1, " of ", steps, ", loss ", r.loss));
  }
  out.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return out;
}

void print_json(const ir::Graph& g, const train::Trainer& trainer, const Options& o, const Curve& c) {
  int64_t numbers = 0;
  const NamedLiterals weights = trainer.weights();
  for (const std::string& name : trainer.trained()) numbers += weights.at(name).elements();
  JsonWriter out({.indent = 2});
  out.begin_object();
  out.member("graph", g.name());
  out.member("optimizer", o.optimizer);
  out.member("trained", numbers);
  out.member("first_step", c.first);
  out.member("steps", trainer.steps());
  out.member("seconds", c.seconds);
  out.member("loss", c.loss);
  out.member("rate", c.rate);
  if (!c.grad_norm.empty()) out.member("grad_norm", c.grad_norm);
  out.member("skipped", c.skipped);
  out.end_object();
  print(out.take() + "\n");
}

void run(const Options& o) {
  o.schedule_arguments.check();
  device_named(o.device);  // an unknown one is told before anything else
  check_places(o);
  const GraphFile file = read_graph(o.path);
  train::Batches batches(file.graph, read_values("train", "--data", o.data), o.accumulate);
  const int64_t steps = o.steps.value_or(batches.steps());
  const ir::Graph graph =
      o.budget && o.accumulate == 1 ? with_sizes_of(file.graph, batches.at(0)) : file.graph;
  train::Trainer trainer(graph, starting_weights(graph, file.weights, o), train_options(o, steps));
  if (!o.resume.empty()) trainer.load_checkpoint(o.resume);
  const Curve curve = train_steps(trainer, batches, steps, o);
  check_mapped_files();
  if (o.json) {
    print_json(file.graph, trainer, o, curve);
  } else if (curve.loss.empty()) {
    print(cat("nothing to do: ", trainer.steps(), " steps are done\n"));
  } else {
    print(cat("loss ", curve.loss.front(), " at step ", curve.first, ", ", curve.loss.back(), " at step ",
              trainer.steps() - 1, "; ", curve.loss.size(), " steps in ",
              std::round(curve.seconds * 1e3) / 1e3, " s\n"));
  }
  if (!o.checkpoint.empty()) trainer.save_checkpoint(o.checkpoint);
  if (!o.save.empty()) save_weights(o.save, trainer.weights());
  if (!o.averaged.empty()) save_weights(o.averaged, trainer.weights(true));
}

void add_method(Command command, const std::shared_ptr<Options>& o) {
  command.add_option("--optimizer", o->optimizer, "the method")
      .one_of(train::optimizer_names())
      .with_default_shown();
  command.add_option("--set", o->settings, "NAME=NUMBER, ...: settings of the optimizer")
      .separated_by_commas();
  o->schedule_arguments.add(command, "train", o->schedule, true);
  command.add_option("--clip-norm", o->clip_norm, "largest norm of all gradients together").positive();
  command.add_option("--clip-value", o->clip_value, "largest gradient of an element").positive();
  command.add_option("--frozen", o->frozen, "params that stay, * for any text").separated_by_commas();
  command.add_option("--no-decay", o->no_decay, "params without weight decay, * for any text")
      .separated_by_commas();
  const Argument average =
      command.add_option("--average", o->average, "decay of a running mean of the weights");
  command.add_option("--save-average", o->averaged, "write the averaged weights to this safetensors file")
      .needs(average);
}

}  // namespace

void add_train(Command app) {
  Command command = app.add_subcommand("train", "train the params of a loss graph on data");
  auto o = std::make_shared<Options>();
  command.add_option("FILE", o->path, "a .rlx text, its JSON form or a saved graph; its output is the loss")
      .required();
  command
      .add_option("--data", o->data,
                  cat("the inputs: ", value_files_taken(), "; the first axis counts batches"))
      .required();
  command.add_option("--init", o->init,
                     cat("starting values of params, others are random: ", value_files_taken()));
  command.add_option("--seed", o->seed, "of random starting values").not_negative().with_default_shown();
  command.add_option("--loss", o->loss, "the output to make small (default: the first)");
  command.add_option("--steps", o->steps, "steps in all (default: the data once)").not_negative();
  command.add_option("--accumulate", o->accumulate, "batches averaged for a step").positive();
  add_method(command, o);
  command.add_option("--mixed", o->mixed, "compute in this type").one_of({"bf16", "f16"});
  command.add_option("--budget", o->budget, "bytes kept for the backward part; the rest is computed again")
      .not_negative();
  command.add_option("--resume", o->resume, "go on from this checkpoint");
  const Argument checkpoint =
      command.add_option("--checkpoint", o->checkpoint, "write weights and state to this file at the end");
  command.add_option("--checkpoint-every", o->checkpoint_every, "and whenever that many steps are done")
      .positive()
      .needs(checkpoint);
  command.add_option("--save", o->save, "write the weights to this safetensors file");
  add_device(command, o->device);
  command.add_option("--threads", o->threads, "threads; 0: all cores").not_negative();
  command.add_option("--progress", o->progress, "how far it is, on standard error")
      .one_of({"auto", "bar", "lines", "none"});
  command.add_flag("--json", o->json, "losses and rates of all steps as JSON");
  command.callback([o] { run(*o); });
}

}  // namespace rlx::cli
