#include "bench/gpu/program.h"

#include <algorithm>
#include <chrono>
#include <cstdio>

#include "rlx/backend/cuda/compile/timings.h"
#include "rlx/backend/cuda/queue.h"
#include "rlx/ir/leaves.h"
#include "rlx/ir/sample.h"
#include "rlx/passes/prologue.h"
#include "rlx/runtime/pipeline.h"

namespace rlx::bench {

bool show_steps = false;
bool only_plans = false;
bool show_times = false;

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

namespace {

// Without a GPU programs are built for the processor that figures are told of.
const cuda::Device& target() {
  static const cuda::Device none("sm_90a", nullptr);
  return only_plans ? none : cuda::device();
}

}  // namespace

namespace {

class StepTimes final : public backend::Observer {
 public:
  void before(const backend::Plan::Step&, const backend::Launch&) override { begin_ = now(); }
  void after(const backend::Plan::Step& s, const backend::Launch&) override {
    std::printf("    %9.1f us  %s  // %s\n", (now() - begin_) * 1e6, s.kernel.c_str(), s.note.c_str());
    std::fflush(stdout);
  }

 private:
  double begin_ = 0;
};

}  // namespace

Program::Program(const ir::Graph& g, const ProgramOptions& options) {
  const cuda::Device& device = target();
  const double begin = now();
  std::vector<passes::Remark> remarks;
  // What depends on weights alone is no part of a run.
  ir::Graph main = runtime::optimise(g, options.compile);
  if (passes::Split parts = passes::split_prologue(main); !parts.empty()) main = std::move(parts.main);
  if (main.has_dynamic_dims()) main = main.bind(options.sizes);
  const ir::Graph ready = runtime::specialise(main, device, options.compile, remarks);
  backend::Interface interface;
  std::vector<std::string> names;
  for (const ir::NodeId id : ready.leaves()) {
    const ir::Node& n = ready.node(id);
    interface.fixed.push_back(n.is<ir::Param>());
    names.push_back(static_cast<const ir::NamedLeaf*>(n.attrs.get())->name);
  }
  const auto results = ready.output_names();
  for (const StatePair& s : options.compile.states) {
    const auto leaf = std::find(names.begin(), names.end(), s.input);
    const auto output = std::find(results.begin(), results.end(), s.output);
    interface.donated.push_back({int(leaf - names.begin()), int(output - results.begin())});
  }
  program_ = backend::Builder(device, 1).build(ready, interface);
  ready_seconds_ = now() - begin;
  for (const auto& s : program_->plan().steps) on_host_ += s.kernel == "on_host";
  if (only_plans) {
    // Without a GPU kernels are compiled where their times are asked for.
    if (show_times) target().functions().compile_waiting();
    return;
  }
  queue_ = device.make_queue();
  for (size_t i = 0; i < names.size(); ++i) {
    const Shape& shape = ready.node(ready.leaves()[i]).shapes[0];
    const auto given = options.inputs.find(names[i]);
    leaves_.emplace_back(device.memory(), size_t(shape.size_bytes()));
    fill(leaves_.back(), shape, given == options.inputs.end() ? nullptr : &given->second);
    in_.push_back(leaves_.back().get());
    if (interface.fixed[i] && program_->reads_leaf(i)) weight_bytes_ += double(shape.size_bytes());
  }
  patterns_.clear();
  for (size_t i = 0; i < results.size(); ++i) {
    const auto state = std::find_if(interface.donated.begin(), interface.donated.end(),
                                    [&](const backend::Donation& d) { return d.output == int(i); });
    if (state == interface.donated.end())
      outputs_.emplace_back(device.memory(), size_t(ready.shape(ready.outputs()[i]).size_bytes()));
    out_.push_back(state == interface.donated.end() ? outputs_.back().get() : in_[size_t(state->leaf)]);
  }
  arena_ = backend::Block(device.memory(), program_->arena_bytes());
  if (show_steps) print_steps();  // the first run tells a step that fails
  const double first = now();
  run();
  queue_->wait();
  ready_seconds_ += now() - first;
}

// Large leaves repeat a part that is made once for each type and copied on the device.
void Program::fill(const backend::Block& to, const Shape& shape, const Literal* value) {
  const backend::Memory& memory = cuda::device().memory();
  if (to.size() == 0) return;
  if (value != nullptr) {
    RLX_CHECK(value->bytes().size() == to.size(), "a value of ", value->shape(), " for ", shape);
    return memory.upload(to.get(), value->bytes().data(), to.size());
  }
  constexpr int64_t kPart = 1000003;  // odd, so that rows of weights differ
  backend::Block& pattern = patterns_[shape.dtype()];
  if (!pattern) {
    const std::string type = cat(Shape(shape.dtype(), {kPart}), shape.dtype() == DType::u8 ? " <60" : "");
    const Literal part = ir::sample_literal(type, 1);
    pattern = backend::Block(memory, part.bytes().size());
    memory.upload(pattern.get(), part.bytes().data(), part.bytes().size());
  }
  size_t done = std::min(to.size(), pattern.size());
  memory.copy(to.get(), pattern.get(), done);
  for (; done < to.size(); done += std::min(done, to.size() - done))
    memory.copy(to.get() + done, to.get(), std::min(done, to.size() - done));
}

void Program::run(backend::Observer* observer) {
  queue_->run(*program_, {.team = Team(default_pool(), 1),
                          .leaves = in_.data(),
                          .outputs = out_.data(),
                          .arena = arena_.get(),
                          .observer = observer});
}

std::string Program::chain() const {
  const auto* const queue = dynamic_cast<const cuda::GpuQueue*>(queue_.get());
  if (!queue) return {};
  if (!queue->chain_problem().empty()) return "no chain: " + queue->chain_problem();
  return queue->chained() > 0 ? cat(queue->chained(), " phases in chains") : std::string();
}

size_t Program::steps() const { return program_->plan().steps.size(); }
std::string Program::plan() const { return program_->plan().text(); }

void Program::print_steps() {
  StepTimes times;
  run(&times);
}

double seconds_of(Program& p) {
  if (only_plans) {
    std::printf("%s", p.plan().c_str());
    return 1;
  }
  const auto round = [&](int repeats) {
    const double begin = now();
    for (int i = 0; i < repeats; ++i) p.run();
    p.wait();
    return (now() - begin) / repeats;
  };
  const bool slow = round(1) > 0.25;
  if (!slow) round(4);
  const int repeats = slow ? 1 : std::clamp(int(0.05 / std::max(round(1), 1e-6)), 3, 2000),
            count = slow ? 3 : 9;
  std::vector<double> rounds;
  for (int r = 0; r < count; ++r) rounds.push_back(round(repeats));
  std::nth_element(rounds.begin(), rounds.begin() + count / 2, rounds.end());
  return rounds[size_t(count / 2)];
}

void report(const std::string& name, const std::string& figure, const Program& p) {
  std::printf("%-34s %16s   %3zu steps, %d on the host, ready in %.0f ms\n", name.c_str(), figure.c_str(),
              p.steps(), p.on_host(), p.ready_seconds() * 1e3);
  std::fflush(stdout);
}

void print_timings() {
  auto all = cuda::take_timings();
  std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.begin < b.begin; });
  for (const cuda::Timing& t : all)
    std::printf("    at %8.1f: %8.1f ms  %s\n", t.begin * 1e3, t.seconds * 1e3, t.what.c_str());
  std::fflush(stdout);
}

std::string rounded(double v, const char* unit) {
  char text[64];
  std::snprintf(text, sizeof text, "%.3f %s", v, unit);
  return text;
}

}  // namespace rlx::bench
