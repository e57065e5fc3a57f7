// Without a GPU: every model of the test data is built for a device that only compiles. No step needs the host, caches are
// written where they lie, and the kernels of one small model of each kind compile for two architectures.
#include <gtest/gtest.h>

#include <filesystem>
#include <set>

#include "rlx/backend/builder.h"
#include "rlx/backend/cuda/device.h"
#include "rlx/ir/leaves.h"
#include "rlx/models/model.h"
#include "rlx/passes/prologue.h"
#include "rlx/runtime/pipeline.h"
#include "tests/support/data.h"

namespace rlx::cuda {
namespace {

std::vector<std::string> model_paths() {
  std::vector<std::string> out;
  for (const char* folder : {"checkpoints", "gguf"}) {
    if (!std::filesystem::exists(test::data_path(folder))) continue;
    for (const auto& entry : std::filesystem::directory_iterator(test::data_path(folder))) {
      const std::string path = entry.path();
      const bool file = path.ends_with(".gguf") && !path.ends_with(".lora.gguf");
      if (entry.is_directory() || file) out.push_back(path);
    }
  }
  std::sort(out.begin(), out.end());
  return out;
}

void collect_host_steps(const backend::Plan& plan, std::set<std::string>& names) {
  for (const backend::Plan::Step& s : plan.steps) {
    if (s.kernel == "on_host") names.insert(s.op);
    for (const backend::Plan& body : s.bodies) collect_host_steps(body, names);
  }
}

std::string name_of_leaf(const ir::Node& n) { return static_cast<const ir::NamedLeaf*>(n.attrs.get())->name; }

/// The plan of a graph whose states are written in place.
backend::Plan plan_of(const Device& device, const ir::Graph& g, const std::vector<models::State>& states) {
  std::vector<passes::Remark> remarks;
  const ir::Graph ready = runtime::specialise(g, device, {}, remarks);
  backend::Interface interface;
  const auto results = ready.output_names();
  for (size_t i = 0; i < ready.leaves().size(); ++i) {
    const ir::Node& n = ready.node(ready.leaves()[i]);
    interface.fixed.push_back(n.is<ir::Param>());
    for (const models::State& s : states) {
      if (s.input != name_of_leaf(n)) continue;
      const auto output = std::find(results.begin(), results.end(), s.output);
      interface.donated.push_back({int(i), int(output - results.begin())});
    }
  }
  backend::Plan plan = backend::Builder(device, 1).build(ready, interface)->plan();
  for (const std::string& wrong : backend::verify_plan(plan)) ADD_FAILURE() << wrong;
  return plan;
}

// A cache is not copied: the step that writes it reads and writes one buffer.
void expect_in_place(const backend::Plan& plan) {
  for (const backend::Plan::Step& s : plan.steps) {
    if (s.op != "dynamic_update_slice") continue;
    EXPECT_EQ(plan.buffers[size_t(s.in[0].buffer)].kind, backend::BufferKind::leaf) << s.note;
    EXPECT_EQ(plan.buffers[size_t(s.out[0].buffer)].kind, backend::BufferKind::output) << s.note;
  }
}

TEST(Models, need_no_step_on_the_host) {
  RLX_REQUIRE_DATA("checkpoints");
  const Device device("sm_90a", nullptr);
  for (const std::string& path : model_paths()) {
    SCOPED_TRACE(path);
    const models::Model model = models::open_model(path);
    const bool encoder = model.config().encoder;
    const models::ModelGraph g = model.graph({.capacity = encoder ? 0 : 40, .mask = encoder});
    ir::Graph main = runtime::optimise(g.graph, {});
    std::set<std::string> names;
    if (passes::Split parts = passes::split_prologue(main); !parts.empty()) {
      collect_host_steps(plan_of(device, parts.prologue, {}), names);
      main = std::move(parts.main);
    }
    for (const int64_t seq : {1, 13}) {
      const DimBinding sizes =
          encoder ? DimBinding{{"batch", 2}, {"seq", seq}} : DimBinding{{"seq", seq}, {"keys", 20}};
      const backend::Plan plan = plan_of(device, main.bind(sizes), g.states);
      collect_host_steps(plan, names);
      expect_in_place(plan);
    }
    EXPECT_EQ(join(std::vector<std::string>(names.begin(), names.end())), "");
  }
}

// The texts of all kernels that small models ask for, also for the oldest architecture.
TEST(Models, kernels_compile_for_old_and_new_processors) {
  RLX_REQUIRE_DATA("gguf");
  if (const std::string why = compiler_problem(); !why.empty()) GTEST_SKIP() << why;
  for (const char* architecture : {"sm_80", "sm_90a"}) {
    const Device device(architecture, nullptr);
    for (const char* name : {"checkpoints/llama", "gguf/llama-Q4_K_M.gguf", "gguf/llama-Q8_0.gguf"}) {
      const models::ModelGraph g = models::open_model(test::data_path(name)).graph({.capacity = 40});
      ir::Graph main = runtime::optimise(g.graph, {});
      if (passes::Split parts = passes::split_prologue(main); !parts.empty()) main = std::move(parts.main);
      for (const int64_t seq : {1, 13}) plan_of(device, main.bind({{"seq", seq}, {"keys", 20}}), g.states);
    }
    EXPECT_GT(device.functions().compile_waiting(), 10u);
  }
}

}  // namespace
}  // namespace rlx::cuda
