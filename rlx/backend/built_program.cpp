// The program of rlx/backend/built.h: its steps prepared, its memory, a run.
#include <algorithm>

#include "rlx/backend/builder.h"
#include "rlx/backend/built.h"

namespace rlx::backend::built {
namespace {

int thread_count(int threads) {
  if (threads < 0) throw invalid("create: ", threads, " threads; give 1 or more, or 0 for all");
  const int all = default_pool().threads();
  return threads > 0 ? std::min(threads, all) : all;
}

}  // namespace

Program::Program(const char* name, const Backend& backend, FormCache& cache, int threads, int64_t arena_bytes)
    : Assembly(backend, thread_count(threads)),
      cache_(cache),
      team_(default_pool(), threads_),
      planned_arena_(arena_bytes) {
  plan_.graph = name;
}

void Program::check_number(int number) const {
  RLX_CHECK(number == int(plan_.buffers.size()), "buffer ", number, " comes as number ",
            plan_.buffers.size());
}

void Program::input(int number, const char* name, int64_t bytes) {
  weight(number, name, bytes, nullptr);
  inputs_.push_back(number);
}

void Program::weight(int number, const char* name, int64_t bytes, const std::byte* data) {
  check_number(number);
  new_buffer(BufferKind::leaf, name, bytes, int(weights_.size()));
  fixed_leaves_.push_back(data != nullptr);
  weights_.push_back({data, {}});
}

void Program::form(int weight, const char* form, std::span<const std::byte> bytes) {
  weights_[size_t(plan_.buffers[size_t(weight)].index)].forms[form] = bytes;
}

void Program::output(int number, const char* name, int64_t bytes, int output) {
  check_number(number);
  new_buffer(BufferKind::output, name, bytes, output);
  outputs_.resize(std::max(outputs_.size(), size_t(output) + 1), -1);
  outputs_[size_t(output)] = number;
}

void Program::constant(int number, const char* name, Literal value) {
  check_number(number);
  new_constant(name, std::move(value));
}

void Program::activation(int number, const char* name, int64_t bytes, int64_t offset) {
  check_number(number);
  new_buffer(BufferKind::activation, name, bytes);
  plan_.buffers.back().offset = offset;
}

void Program::workspace(int number, int64_t bytes, int64_t offset) {
  check_number(number);
  new_buffer(BufferKind::workspace, cat("workspace ", number), bytes);
  plan_.buffers.back().offset = offset;
}

// Where a step needs more than was planned, on another number of threads, it works behind the arena: one step works at a time.
int Program::workspace_for(const Step& step, int planned) {
  const auto bytes = int64_t(step.workspace);
  if (bytes == 0) return -1;
  if (planned >= 0 && bytes <= plan_.buffers[size_t(planned)].bytes) return planned;
  more_arena_ = std::max(more_arena_, bytes);
  const int buffer = new_buffer(BufferKind::workspace, cat("workspace of step ", plan_.steps.size()), bytes);
  plan_.buffers.back().offset = planned_arena_;
  return buffer;
}

// The plan may have put a result where an operand lies.
void Program::check_in_place(const Plan::Step& s, const Step& step) const {
  for (size_t y = 0; y < s.out.size(); ++y) {
    for (size_t x = 0; x < s.in.size(); ++x) {
      if (s.in[x].buffer != s.out[y].buffer || !s.in[x].extent().meets(s.out[y].extent())) continue;
      const bool may = std::any_of(step.in_place.begin(), step.in_place.end(), [&](const InPlace& p) {
        return p.operand == int(x) && p.result == int(y);
      });
      if (!may)
        throw invalid("create: step '", s.name, "' (", s.kernel, ") would overwrite operand ", x, " on ",
                      threads_, " threads; create it on the number it was built for");
    }
  }
}

void Program::step(const char* name, const char* kernel, const Call& call, Places in, Places out,
                   int workspace, const char* origin) {
  ir::Node node;
  node.id = ir::NodeId(plan_.steps.size());
  node.op = &call.op();
  node.attrs = call.attrs();
  node.name = name;
  std::vector<Arg> args, results;
  for (const Plan::Place& p : in) {
    node.inputs.push_back({ir::NodeId(node.inputs.size()), 0, 0});
    args.push_back(arg(p));
  }
  for (const Plan::Place& p : out) {
    node.shapes.push_back(p.shape);
    results.push_back({.shape = p.shape, .layout = p.layout});
  }
  const Builder builder(backend_, threads_);
  const Request request{.node = node, .in = args, .out = results, .threads = threads_, .builder = &builder};
  std::string why = "it is not among the families of the program";
  const auto find = [&](const Kernels& kernels) -> const Kernel* {
    for (const Kernel& k : kernels) {
      if (k.name != kernel) continue;
      const Support answer = k.accepts(request);
      if (answer) return &k;
      why = answer.reason();
    }
    return nullptr;
  };
  const Kernel* found = find(backend_.kernels().of(*node.op));
  if (found == nullptr) found = find(backend_.kernels().general());
  if (found == nullptr) {
    Error e = invalid("create: kernel ", kernel, " does not run ", node.op->name, " on ", threads_,
                      " threads: ", why, "; build the program again here");
    e.set_node(name);
    e.set_origin(origin);
    throw e;
  }
  Plan::Step s{.node = node.id,
               .name = name,
               .op = std::string(node.op->name),
               .kernel = kernel,
               .origin = origin,
               .in = in,
               .out = out};
  auto step = found->prepare(request);
  RLX_CHECK(step != nullptr, kernel, " accepted ", node.op->name, " and prepared nothing");
  check_in_place(s, *step);
  s.workspace = workspace_for(*step, workspace);
  append(std::move(s), std::move(step));
}

void Program::copy(const Plan::Place& from, const Plan::Place& to) {
  auto step = backend_.prepare_copy(arg(from), arg(to), threads_);
  Plan::Step s{.op = "copy", .kernel = "copy", .in = {from}, .out = {to}};
  s.workspace = workspace_for(*step, -1);
  append(std::move(s), std::move(step));
}

void Program::finish() {
  plan_.arena_bytes = planned_arena_ + (more_arena_ + 63) / 64 * 64;
  bind_addresses(weights_.size(), outputs_.size());
  for (const Executable::WeightForm& form : out_->packings()) {
    const Weight& weight = weights_[size_t(form.leaf)];
    const Packing& packing = form.packing;
    const auto stored = weight.forms.find(packing.form);
    const bool fits =
        stored != weight.forms.end() && packing.restore && int64_t(stored->second.size()) == packing.bytes;
    forms_.push_back(cache_.find_or_make(weight.data, packing.form, [&] {
      return fits ? packing.restore(team_, stored->second) : packing.make(team_, weight.data);
    }));
    packed_.push_back(forms_.back().get());
  }
  for (const Weight& w : weights_)
    leaves_.push_back(const_cast<std::byte*>(w.data));  // no step writes to an operand
  results_.resize(outputs_.size());
  arena_ = Block(backend_.memory(), out_->arena_bytes());
}

void Program::check_lists(const void* const* inputs, void* const* outputs) const {
  const auto check = [&](const void* list, const std::vector<int>& buffers, const char* what) {
    if (list != nullptr || buffers.empty()) return;
    std::vector<std::string> names;
    for (const int b : buffers) names.push_back(cat("'", plan_.buffers[size_t(b)].name, "'"));
    throw invalid("run: no list of ", what, "s; it has the addresses of ", join(names));
  };
  check(inputs, inputs_, "input");
  check(outputs, outputs_, "output");
}

void Program::check_sizes(const std::vector<int>& buffers, const size_t* bytes, const char* what) const {
  for (size_t i = 0; bytes != nullptr && i < buffers.size(); ++i) {
    const Plan::Buffer& b = plan_.buffers[size_t(buffers[i])];
    if (bytes[i] != size_t(b.bytes))
      throw invalid("run: ", what, " '", b.name, "' has ", bytes[i], " bytes; it needs ", b.bytes);
  }
}

void Program::check_memory(const void* const* inputs, void* const* outputs) const {
  const auto bytes = [&](int buffer) { return plan_.buffers[size_t(buffer)].bytes; };
  const auto name = [&](int buffer) { return cat("'", plan_.buffers[size_t(buffer)].name, "'"); };
  const auto overlap = [&](const void* a, int x, const void* b, int y) {
    const auto p = reinterpret_cast<uintptr_t>(a), q = reinterpret_cast<uintptr_t>(b);
    return std::max(p, q) < std::min(p + uintptr_t(bytes(x)), q + uintptr_t(bytes(y)));
  };
  for (size_t i = 0; i < inputs_.size(); ++i) {
    if (inputs[i] == nullptr && bytes(inputs_[i]) > 0)
      throw invalid("run: input ", name(inputs_[i]), " has no memory");
  }
  for (size_t i = 0; i < outputs_.size(); ++i) {
    const int mine = outputs_[i];
    if (outputs[i] == nullptr && bytes(mine) > 0)
      throw invalid("run: output ", name(mine), " has no memory, it needs ", bytes(mine), " bytes");
    int other = -1;
    for (size_t k = 0; k < i; ++k) {
      if (overlap(outputs[i], mine, outputs[k], outputs_[k])) other = outputs_[k];
    }
    for (size_t k = 0; k < inputs_.size(); ++k) {
      if (overlap(outputs[i], mine, inputs[k], inputs_[k])) other = inputs_[k];
    }
    if (other >= 0)
      throw invalid("run: the memory of output ", name(mine), " is also that of ", name(other),
                    "; every output needs memory that nothing else uses");
  }
}

void Program::run(const void* const* inputs, void* const* outputs, const size_t* input_bytes,
                  const size_t* output_bytes) {
  if (running_.test_and_set(std::memory_order_acquire))
    throw invalid("run: another thread runs this object; create one for each thread");
  struct Done {
    std::atomic_flag& flag;
    ~Done() { flag.clear(std::memory_order_release); }
  } const done{running_};
  check_lists(inputs, outputs);
  check_sizes(inputs_, input_bytes, "input");
  check_sizes(outputs_, output_bytes, "output");
  check_memory(inputs, outputs);
  for (size_t i = 0; i < inputs_.size(); ++i) {
    const int leaf = plan_.buffers[size_t(inputs_[i])].index;
    leaves_[size_t(leaf)] = static_cast<std::byte*>(const_cast<void*>(inputs[i]));
  }
  for (size_t i = 0; i < outputs_.size(); ++i) results_[i] = static_cast<std::byte*>(outputs[i]);
  out_->run({.team = team_,
             .leaves = leaves_.data(),
             .outputs = results_.data(),
             .arena = arena_.get(),
             .packed = packed_.data()});
}

}  // namespace rlx::backend::built
