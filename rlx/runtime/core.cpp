#include "rlx/runtime/core.h"

#include <algorithm>

#include "rlx/ir/call.h"
#include "rlx/ir/leaves.h"
#include "rlx/passes/prologue.h"
#include "rlx/runtime/devices.h"
#include "rlx/runtime/pipeline.h"
#include "rlx/runtime/wanted_for.h"

namespace rlx::runtime {
namespace {

backend::Builder builder_for(const CompileOptions& o) {
  const backend::Backend& device = device_named(o.device);
  if (o.batch_independent && !device.memory().on_host())
    throw invalid("compile: batch_independent on '", o.device,
                  "', whose libraries choose by the number of rows; "
                  "cpu and ref have it");
  if (o.plans_kept < 1) throw invalid("compile: ", o.plans_kept, " plans kept; 1 or more expected");
  if (o.threads < 0)
    throw invalid("compile: ", o.threads,
                  " threads; 1 or more expected, or 0 for all that the process may use");
  const int most = default_pool().threads();
  return {device, o.threads > 0 ? std::min(o.threads, most) : most, o.batch_independent};
}

// "auto" becomes the device it stands for.
CompileOptions on_one_device(CompileOptions o) {
  o.device = device_named(o.device).name();
  return o;
}

// Why a state cannot be of these types; empty when it can.
std::string types_refused(const Shape& before, const Shape& after) {
  if (before == after) return {};
  const bool grows = before.dtype() == after.dtype() && before.rank() == after.rank() &&
                     !(before.is_static() && after.is_static());
  return cat(before, " and becomes ", after, "; both must be of one type",
             grows ? "; what grows is a state of the most rows, into which dynamic_update_slice writes" : "");
}

}  // namespace

Core::Core(const ir::Graph& graph, const NamedLiterals& weights, const CompileOptions& options, bool split)
    : options_(on_one_device(options)),
      graph_(optimise(graph, options_, {}, &remarks_)),
      builder_(builder_for(options_)),
      weights_(builder_.backend().memory()) {
  if (split && options.optimise) {
    if (passes::Split parts = passes::split_prologue(graph_); !parts.empty()) {
      graph_ = std::move(parts.main);
      derived_ = std::move(parts.made);
      CompileOptions once = options_;
      once.states.clear();
      prologue_ = std::make_unique<CompiledGraph>(
          std::make_shared<Core>(parts.prologue, NamedLiterals{}, once, false));
    }
  }
  read_interface();
  set_params(weights);
}

Core::Core(Prepared prepared)
    : options_(on_one_device(prepared.options)),
      graph_(prepared.graph),
      builder_(builder_for(options_)),
      weights_(builder_.backend().memory()) {
  read_interface();
  // Params that only the prologue read are no longer asked for.
  std::erase_if(params, [&](const Port& p) { return graph_.users(*graph_.find_leaf(p.name)).empty(); });
  set_params(prepared.weights);
  for (StoredForm& form : prepared.forms) weights_.offer(std::move(form));
  prepared.forms.clear();
  prepared_ = std::move(prepared);
}

Prepared Core::prepared() {
  if (!graph_.has_dynamic_dims()) {
    std::vector<Shape> shapes;
    for (const Leaf& l : leaves_) shapes.push_back(l.shape);
    instance(shapes);
  }
  const std::lock_guard lock(mutex_);
  require_weights();
  run_prologue();
  Prepared out{graph_, {}, options_, {}, weights_.stored_forms()};
  if (prepared_) out.programs = prepared_->programs;
  for (size_t i = 0; i < leaves_.size(); ++i) {
    if (leaves_[i].role == LeafRole::param && !graph_.node(graph_.leaves()[i]).uses.empty())
      out.weights.emplace(leaves_[i].name, *weights_.find(i));
  }
  for (const auto& made : instances_) {
    const auto same = [&](const auto& p) { return p.first == made->leaves; };
    if (std::none_of(out.programs.begin(), out.programs.end(), same))
      out.programs.emplace_back(made->leaves, program_graph(made->leaves));
  }
  return out;
}

// What is made of weights is made again when they change.
void Core::run_prologue() {
  if (!prologue_ || derived_at_ == version()) return;
  NamedLiterals values;
  for (const Port& p : prologue_->params()) values.emplace(p.name, *weights_.find(*find_leaf(p.name)));
  prologue_->set_params(values);
  for (auto& [name, value] : prologue_->run(NamedLiterals{})) weights_.set(*find_leaf(name), value);
  derived_at_ = version();
}

// What it makes is there already: a look at the steps, for whoever wants every one.
void Core::show_prologue(backend::Observer& observer) {
  if (!prologue_) return;
  const std::lock_guard lock(mutex_);
  CompiledGraph seen = prologue_->clone();
  seen.observe(&observer);
  seen.run(NamedLiterals{});
}

Team Core::team() const { return Team(default_pool(), builder_.threads()); }

void Core::read_interface() {
  for (const ir::NodeId id : graph_.leaves()) {
    const ir::Node& n = graph_.node(id);
    leaves_.push_back({static_cast<const ir::NamedLeaf*>(n.attrs.get())->name, n.shapes[0],
                       n.is<ir::Param>() ? LeafRole::param : LeafRole::input});
  }
  const auto names = graph_.output_names();
  for (size_t i = 0; i < names.size(); ++i) outputs_.push_back({names[i], graph_.shape(graph_.outputs()[i])});
  if (outputs_.empty())
    throw invalid("compile: graph '", graph_.name(), "' has no outputs; name them with set_outputs");
  pair_states();
  for (const Leaf& l : leaves_) {
    if (l.role == LeafRole::input) inputs.push_back({l.name, l.shape});
    const bool derived = std::find(derived_.begin(), derived_.end(), l.name) != derived_.end();
    if (l.role == LeafRole::param && !derived) params.push_back({l.name, l.shape});
  }
  for (const Output& o : outputs_) {
    if (o.state < 0) results.push_back({o.name, o.shape});
  }
}

// A state lies where its output is written. One output cannot lie at two places, and one state cannot hold two.
void Core::pair_states() {
  std::vector<std::string> problems;
  for (size_t s = 0; s < options_.states.size(); ++s) {
    const StatePair& pair = options_.states[s];
    const auto leaf = find_leaf(pair.input);
    const auto output = std::find_if(outputs_.begin(), outputs_.end(),
                                     [&](const Output& o) { return o.name == pair.output; });
    const size_t before = problems.size();
    if (!leaf) {
      problems.push_back(cat("state '", pair.input, "' is no input"));
    } else if (leaves_[*leaf].role == LeafRole::param) {
      problems.push_back(cat("state '", pair.input, "' is a param; states are inputs"));
    } else if (leaves_[*leaf].role == LeafRole::state) {
      problems.push_back(cat("state '", pair.input, "' is in two pairs"));
    }
    if (output == outputs_.end()) {
      problems.push_back(cat("state '", pair.input, "' becomes '", pair.output, "', which is no output"));
    } else if (output->state >= 0) {
      problems.push_back(cat("output '", pair.output, "' becomes state '",
                             options_.states[size_t(output->state)].input, "' and state '", pair.input,
                             "'; return the value under a name for each"));
    } else if (leaf) {
      if (std::string wrong = types_refused(leaves_[*leaf].shape, output->shape); !wrong.empty())
        problems.push_back(cat("state '", pair.input, "' is ", wrong));
    }
    // A wrong pair takes its input and its output too, so that another with them is told as well.
    if (leaf && leaves_[*leaf].role == LeafRole::input) leaves_[*leaf].role = LeafRole::state;
    if (output != outputs_.end() && output->state < 0) output->state = int(s);
    if (problems.size() > before) continue;
    leaves_[*leaf].state = int(s);
    states.push_back({pair.input, output->shape});
  }
  if (problems.empty()) return;
  std::vector<std::string> takes, gives;
  for (const Leaf& l : leaves_) {
    if (l.role != LeafRole::param) takes.push_back(l.name);
  }
  for (const Output& o : outputs_) gives.push_back(o.name);
  throw invalid("compile: ", join(problems, "; "), "; graph '", graph_.name(), "' takes ",
                takes.empty() ? "none" : join(takes), " and returns ", join(gives));
}

std::optional<size_t> Core::find_leaf(std::string_view name) const {
  for (size_t i = 0; i < leaves_.size(); ++i) {
    if (leaves_[i].name == name) return i;
  }
  return std::nullopt;
}

std::vector<Shape> Core::sizes_of(std::string_view where, const std::map<std::string, Shape>& told) const {
  std::vector<std::string> problems, known;
  std::vector<Shape> out;
  for (const Leaf& leaf : leaves_) {
    known.push_back(leaf.name);
    const auto it = told.find(leaf.name);
    out.push_back(it == told.end() ? leaf.shape : it->second);
  }
  for (const auto& [name, shape] : told) {
    if (const auto leaf = find_leaf(name)) {
      if (!ir::may_be(leaves_[*leaf].shape, shape))
        problems.push_back(cat("'", name, "' is ", leaves_[*leaf].shape, ", told as ", shape));
      continue;
    }
    const std::string near = nearest_name(name, known);
    problems.push_back(
        cat("'", name, "' is not an input", near.empty() ? "" : cat("; did you mean '", near, "'")));
  }
  if (problems.empty()) {
    bind_states(out);
    return out;
  }
  known.clear();
  for (const Port& p : inputs) known.push_back(p.name);
  throw invalid(where, ": ", join(problems, "; "), "; graph '", graph_.name(), "' takes ",
                known.empty() ? "none" : join(known));
}

bool Core::has_open_states() const {
  return std::any_of(states.begin(), states.end(), [](const Port& p) { return !p.shape.is_static(); });
}

void Core::bind_states(std::vector<Shape>& shapes) const {
  if (!has_open_states()) return;
  const DimBinding sizes = ir::solve_sizes(graph_, shapes);
  for (size_t i = 0; i < leaves_.size(); ++i) {
    if (leaves_[i].role == LeafRole::state) shapes[i] = shapes[i].bind(sizes);
  }
}

void Core::set_params(const NamedLiterals& values) {
  if (prepared_)
    throw invalid("set_param: graph '", graph_.name(),
                  "' was loaded compiled, with what was made of its weights; compile it again");
  const std::lock_guard lock(mutex_);
  std::vector<std::string> problems, known;
  for (const Port& p : params) known.push_back(p.name);
  for (const auto& [name, value] : values) {
    const auto leaf = find_leaf(name);
    if (std::find(known.begin(), known.end(), name) == known.end()) {
      const std::string near = nearest_name(name, known);
      problems.push_back(
          cat("'", name, "' is not a param", near.empty() ? "" : cat("; did you mean '", near, "'")));
    } else if (value.shape() != leaves_[*leaf].shape) {
      problems.push_back(cat("'", name, "' is ", leaves_[*leaf].shape, ", the value is ", value.shape()));
    }
  }
  if (!problems.empty()) throw invalid("set_param: ", join(problems, "; "));
  for (const auto& [name, value] : values) weights_.set(*find_leaf(name), value);
  if (!values.empty()) version_.fetch_add(1, std::memory_order_release);
}

bool Core::has_weights(const NamedLiterals& values) const {
  const std::lock_guard lock(mutex_);
  for (const auto& [name, value] : values) {
    const auto leaf = find_leaf(name);
    const Literal* now = leaf ? weights_.find(*leaf) : nullptr;
    if (now == nullptr) return false;
    if (now->bytes().data() != value.bytes().data() && !(*now == value)) return false;
  }
  return true;
}

ir::Graph Core::bound(const std::vector<Shape>& shapes) const {
  if (!graph_.has_dynamic_dims()) return graph_;
  ir::Graph bound = graph_.bind(ir::solve_sizes(graph_, shapes));
  if (const auto left = bound.dynamic_symbols(); !left.empty())
    throw invalid("run: the inputs do not tell the size of ", join(left), "; bind it first");
  return bound;
}

ir::Graph Core::program_graph(const std::vector<Shape>& shapes, const PassListener& listener) const {
  if (prepared_) {
    for (const auto& [leaves, graph] : prepared_->programs) {
      if (leaves == shapes) return graph;
    }
  }
  std::vector<passes::Remark> ignored;
  return specialise(bound(shapes), builder_.backend(), options_, ignored, listener);
}

Core::Built Core::build(const std::vector<Shape>& shapes) const {
  backend::Interface interface;
  for (size_t i = 0; i < leaves_.size(); ++i) {
    interface.fixed.push_back(leaves_[i].role == LeafRole::param);
    if (leaves_[i].role != LeafRole::state) continue;
    for (size_t o = 0; o < outputs_.size(); ++o) {
      if (outputs_[o].state == leaves_[i].state) interface.donated.push_back({int(i), int(o)});
    }
  }
  if (prepared_) return {builder_.build(program_graph(shapes), interface), {}};
  std::vector<passes::Remark> remarks;
  const ir::Graph g = specialise(bound(shapes), builder_.backend(), options_, remarks);
  return {builder_.build(g, interface), std::move(remarks)};
}

void Core::require_weights() const {
  std::vector<std::string> missing;
  for (const Port& p : params) {
    if (!weights_.find(*find_leaf(p.name))) missing.push_back(cat("'", p.name, "'"));
  }
  if (!missing.empty()) throw invalid("run: no value for param ", join(missing), "; set it with set_param");
}

Core::Instances::iterator Core::find_instance(const std::vector<Shape>& shapes) {
  return std::find_if(instances_.begin(), instances_.end(),
                      [&](const auto& i) { return i->leaves == shapes; });
}

std::shared_ptr<Instance> Core::new_instance(const std::vector<Shape>& shapes, Built built) const {
  auto made = std::make_shared<Instance>();
  made->leaves = shapes;
  made->program = std::move(built.program);
  made->remarks = std::move(built.remarks);
  made->outputs.reserve(outputs_.size());
  const DimBinding binding = ir::solve_sizes(graph_, shapes);
  for (const Output& o : outputs_) made->outputs.push_back(o.shape.bind(binding));
  return made;
}

// In the place of what there was for these sizes.
void Core::keep(std::shared_ptr<const Instance> made) {
  if (const auto old = find_instance(made->leaves); old != instances_.end()) instances_.erase(old);
  instances_.push_front(std::move(made));
  while (int64_t(instances_.size()) > options_.plans_kept) instances_.pop_back();
}

std::shared_ptr<const Instance> Core::planned(const std::vector<Shape>& shapes) {
  const std::lock_guard lock(mutex_);
  if (const auto found = find_instance(shapes); found != instances_.end()) return *found;
  keep(new_instance(shapes, build(shapes)));
  return instances_.front();
}

std::shared_ptr<const Instance> Core::instance(const std::vector<Shape>& shapes) {
  const std::lock_guard lock(mutex_);
  const uint64_t now = version();
  const auto found = find_instance(shapes);
  if (found != instances_.end() && (*found)->version == now) {
    instances_.splice(instances_.begin(), instances_, found);
    return instances_.front();
  }
  require_weights();
  run_prologue();
  const bool planned = found != instances_.end();
  const auto made =
      new_instance(shapes, planned ? Built{(*found)->program, (*found)->remarks} : build(shapes));
  made->version = now;
  made->forms = weights_.forms_for(*made->program, team());
  for (const auto& f : made->forms) made->packed.push_back(f.get());
  made->weights.resize(leaves_.size());
  for (size_t i = 0; i < leaves_.size(); ++i) {
    if (leaves_[i].role == LeafRole::param && made->program->reads_leaf(i))
      made->weights[i] = wanted_for([&] { return cat("weight '", leaves_[i].name, "'"); },
                                    [&] { return weights_.resident(i); });
  }
  keep(made);
  return made;
}

}  // namespace rlx::runtime
