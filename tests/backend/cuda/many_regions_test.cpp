// Equal regions over different memory as one launch: which ones are joined, that the kernel compiles, and, where there is a GPU, that the bits are those
// of the regions apart.
#include <gtest/gtest.h>

#include <algorithm>

#include "rlx/backend/builder.h"
#include "rlx/ir/sample.h"
#include "rlx/runtime/pipeline.h"
#include "tests/backend/cuda/on_device.h"
#include "tests/support/graphs.h"

namespace rlx {
namespace {

/// Weights of these shapes with a running mean each, updated by gradients of 16 bits; the weights also come out in 16 bits.
std::string updates_text(const std::vector<std::string>& shapes) {
  std::string leaves = "r: f32[]", body, results;
  for (size_t i = 0; i < shapes.size(); ++i) {
    const std::string& s = shapes[i];
    leaves += cat(", w", i, ": f32", s, ", m", i, ": f32", s, ", g", i, ": bf16", s);
    body += cat("  f", i, " = cast(g", i, ", to=f32) d", i, " = mul(f", i, ", r) n", i, " = add(m", i, ", d",
                i, ") u", i, " = tanh(n", i, ") v", i, " = sub(w", i, ", u", i, ") b", i, " = cast(v", i,
                ", to=bf16)\n");
    results += cat(i == 0 ? "" : ", ", "n", i, "=n", i, ", v", i, "=v", i, ", b", i, "=b", i);
  }
  return cat("graph @f(", leaves, ") {\n", body, "  return ", results, "\n}");
}
const std::vector<std::string> kShapes = {"[7]", "[40,3]", "[1]", "[1000]", "[3,5,2]", "[300,77]"};

std::shared_ptr<const backend::Executable> build(const cuda::Device& device, const std::string& text,
                                                 const backend::Interface& interface = {}) {
  std::vector<passes::Remark> remarks;
  auto program = backend::Builder(device, 1).build(
      runtime::specialise(test::graph(text), device, {}, remarks), interface);
  for (const std::string& wrong : backend::verify_plan(program->plan())) ADD_FAILURE() << wrong;
  return program;
}

std::vector<std::string> kernels_of(const backend::Plan& plan) {
  std::vector<std::string> out;
  for (const auto& s : plan.steps) out.push_back(s.kernel);
  return out;
}

TEST(ManyRegions, updates_of_weights_are_one_step) {
  for (const char* architecture : {"sm_90a", "sm_80"}) {
    const cuda::Device device(architecture, nullptr);
    const auto program = build(device, updates_text({"[7]", "[40,3]", "[1000]"}));
    EXPECT_EQ(kernels_of(program->plan()), std::vector<std::string>{"many_regions"});
    EXPECT_EQ(program->plan().steps[0].note.find("3 regions, 1 launches"), 0u)
        << program->plan().steps[0].note;
    if (cuda::compiler_problem().empty()) {
      EXPECT_EQ(device.functions().compile_waiting(), 1u);
    }
  }
}

// One element has no order: its region is another one, and two of them are joined again.
TEST(ManyRegions, single_elements_are_a_group_of_their_own) {
  const cuda::Device device("sm_90a", nullptr);
  const auto kernels = kernels_of(build(device, updates_text({"[7]", "[1]", "[40,3]", "[1,1]"}))->plan());
  EXPECT_EQ(kernels, (std::vector<std::string>{"many_regions", "many_regions"}));
  if (cuda::compiler_problem().empty()) device.functions().compile_waiting();
}

// More members than parameters hold are several launches.
TEST(ManyRegions, many_members_are_several_launches) {
  const cuda::Device device("sm_90a", nullptr);
  const auto program = build(device, updates_text(std::vector<std::string>(100, "[12]")));
  ASSERT_EQ(program->plan().steps.size(), 1u);
  EXPECT_EQ(program->plan().steps[0].note.find("100 regions, 2 launches"), 0u)
      << program->plan().steps[0].note;
}

TEST(ManyRegions, regions_stay_apart_where_asked_to) {
  setenv("RLX_CUDA_JOIN", "0", 1);
  const cuda::Device device("sm_90a", nullptr);
  EXPECT_EQ(kernels_of(build(device, updates_text({"[7]", "[40,3]"}))->plan()),
            (std::vector<std::string>{"region", "region"}));
  unsetenv("RLX_CUDA_JOIN");
}

// Equal regions of which each waits for the one before, through a product.
TEST(ManyRegions, a_chain_is_no_group) {
  const cuda::Device device("sm_90a", nullptr);
  const auto kernels = kernels_of(
      build(
          device,
          "graph @f(x: f32[64,64], w: f32[64,64]) {\n  a = matmul(x, w) b = relu(a) c = matmul(b, w) d = relu(c) "
          "e = matmul(d, w) f = relu(e)\n  return f\n}")
          ->plan());
  EXPECT_EQ(std::count(kernels.begin(), kernels.end(), "many_regions"), 0);
}

// Two kinds of regions, each of which waits for one of the other kind: not both can be groups.
TEST(ManyRegions, groups_that_would_wait_for_each_other_are_not_made) {
  const cuda::Device device("sm_90a", nullptr);
  const auto kernels = kernels_of(
      build(device,
            "graph @f(x: f32[64,64], y: f32[64,64], w: f32[64,64]) {\n"
            "  a = relu(x) p = matmul(a, w) b = tanh(p)\n  c = tanh(y) q = matmul(c, w) d = relu(q)\n"
            "  return b, d=d\n}")
          ->plan());
  EXPECT_EQ(std::count(kernels.begin(), kernels.end(), "many_regions"), 1);
  EXPECT_EQ(std::count(kernels.begin(), kernels.end(), "region"), 2);
}

// Large activations do not wait for each other: they would be kept until the last of them is there.
TEST(ManyRegions, large_activations_stay_apart) {
  const cuda::Device device("sm_90a", nullptr);
  const auto kernels = kernels_of(
      build(device,
            "graph @f(x: f32[512,512], w: f32[512,512], v: f32[512,512]) {\n  a = matmul(x, w) b = relu(a) "
            "c = matmul(x, v) d = relu(c) e = matmul(b, d)\n  return e\n}")
          ->plan());
  EXPECT_EQ(std::count(kernels.begin(), kernels.end(), "many_regions"), 0);
}

// States are written where they lie, as by regions of their own: nothing is copied.
TEST(ManyRegions, states_are_written_in_place) {
  const cuda::Device device("sm_90a", nullptr);
  backend::Interface interface;
  // Leaves: r, then w, m, g of each weight; results: n, v, b of each.
  for (int i = 0; i < 3; ++i)
    interface.donated.insert(interface.donated.end(), {{1 + 3 * i, 3 * i + 1}, {2 + 3 * i, 3 * i}});
  const auto program = build(device, updates_text({"[7]", "[40,3]", "[1000]"}), interface);
  EXPECT_EQ(kernels_of(program->plan()), std::vector<std::string>{"many_regions"});
}

class ManyRegionsOnDevice : public test::OnDevice {
 protected:
  static NamedLiterals leaves_of(const ir::Graph& g) {
    Literals out;
    for (const ir::NodeId id : g.leaves())
      out.push_back(ir::sample_literal(cat(g.node(id).shapes[0]), out.size() + 5));
    return test::named(g, out);
  }

  // As interpreted, and to the bit what regions apart give; three runs.
  static void compare(const std::string& text) {
    SCOPED_TRACE(text.substr(0, 300));
    const ir::Graph g = test::graph(text);
    const NamedLiterals leaves = leaves_of(g);
    setenv("RLX_CUDA_JOIN", "0", 1);
    const NamedLiterals apart = compile(g, {}, {.device = "cuda"}).run(leaves);
    unsetenv("RLX_CUDA_JOIN");
    CompiledGraph joined = compile(g, {}, {.device = "cuda"});
    const auto kernels = kernels_of(joined.plan());
    EXPECT_GE(std::count(kernels.begin(), kernels.end(), "many_regions"), 1) << joined.plan().text();
    for (int run = 0; run < 3; ++run) {
      for (const auto& [name, value] : joined.run(leaves)) {
        const auto a = value.bytes(), b = apart.at(name).bytes();
        EXPECT_TRUE(std::equal(a.begin(), a.end(), b.begin(), b.end())) << name << " in run " << run;
      }
    }
    test::expect_as_interpreted(g, leaves, 1e-9);
  }
};

TEST_F(ManyRegionsOnDevice, bits_are_those_of_regions_apart) {
  compare(updates_text(kShapes));
  compare(updates_text(std::vector<std::string>(100, "[12]")));
  // Sizes of more than a block, with rests of every size beside vectors of four.
  compare(updates_text({"[4099]", "[1025]", "[1026]", "[1027]", "[1028]", "[3]", "[2]"}));
}

// Places that no vector may be read from.
TEST_F(ManyRegionsOnDevice, operands_at_odd_places) {
  compare(
      "graph @f(x: f32[50], y: f32[50], z: f32[50]) {\n  a = narrow(x, axis=0, start=1, len=21) b = narrow(y, axis=0, start=3, len=33)\n"
      "  c = exp(a) d = exp(b) e = exp(z) return c, d=d, e=e\n}");
}

TEST_F(ManyRegionsOnDevice, states_change_in_place) {
  const ir::Graph g = test::graph(updates_text(kShapes));
  const NamedLiterals leaves = leaves_of(g);
  CompileOptions options{.device = "cuda"};
  for (size_t i = 0; i < kShapes.size(); ++i) {
    options.states.push_back({cat("w", i), cat("v", i)});
    options.states.push_back({cat("m", i), cat("n", i)});
  }
  CompiledGraph f = compile(g, {}, options);
  NamedLiterals want = leaves, inputs = leaves, states;
  for (const StatePair& s : options.states) {
    states.emplace(s.input, leaves.at(s.input));
    inputs.erase(s.input);
  }
  f.load_states(states);
  for (int run = 0; run < 4; ++run) {
    NamedLiterals got = f.run(inputs);
    const NamedLiterals next = ir::interpret(g, want);
    for (const auto& [name, value] : got) test::expect_close(value, next.at(name), 1e-2);
    for (const StatePair& s : options.states) want.at(s.input) = next.at(s.output);
  }
  for (const auto& [name, value] : f.save_states()) {
    SCOPED_TRACE(name);
    test::expect_close(value, want.at(name), 1e-4);
  }
}

// Weights in 16 bits that the update writes for the next run, and the same weights rounded at the beginning of each.
TEST_F(ManyRegionsOnDevice, weights_in_16_bits_follow_their_updates) {
  std::string leaves = "x: bf16[16,64]", casts, body, results;
  const auto at = [](const char* name, int i) { return cat(name, i); };
  for (int i = 0; i < 3; ++i) {
    leaves += cat(", w", i, ": f32[64,64]");
    casts += cat("  h", i, " = cast(w", i, ", to=bf16)\n");
    body += cat("  y", i, " = matmul(x, h", i, ") g", i, " = matmul(transpose(x, perm=[1,0]), y", i, ") d", i,
                " = cast(g", i, ", to=f32) v", i, " = sub(w", i, ", mul(d", i,
                ", full(shape=f32[64,64], value=0.01))) b", i, " = cast(v", i, ", to=bf16)\n");
    results += cat(i == 0 ? "" : ", ", "y", i, "=y", i, ", v", i, "=v", i, ", b", i, "=b", i);
  }
  std::string narrow = leaves;
  for (int i = 0; i < 3; ++i) narrow += cat(", h", i, ": bf16[64,64]");
  CompileOptions rounded{.device = "cuda"}, kept = rounded;
  for (int i = 0; i < 3; ++i) {
    rounded.states.push_back({at("w", i), at("v", i)});
    kept.states.push_back({at("w", i), at("v", i)});
    kept.states.push_back({at("h", i), at("b", i)});
  }
  CompiledGraph a = compile(
                    test::graph(cat("graph @f(", leaves, ") {\n", casts, body, "  return ", results, "\n}")),
                    {}, rounded),
                b = compile(test::graph(cat("graph @f(", narrow, ") {\n", body, "  return ", results, "\n}")),
                            {}, kept);
  NamedLiterals start;
  for (int i = 0; i < 3; ++i) start.emplace(at("w", i), ir::sample_literal("f32[64,64]", uint64_t(i) + 1));
  a.load_states(start);
  for (int i = 0; i < 3; ++i) start.emplace(at("h", i), start.at(at("w", i)).cast(DType::bf16));
  b.load_states(start);
  const NamedLiterals x{{"x", ir::sample_literal("bf16[16,64]", 9)}};
  for (int run = 0; run < 5; ++run) {
    const NamedLiterals want = a.run(x), got = b.run(x);
    for (const char* name : {"y0", "y1", "y2"})
      EXPECT_EQ(want.at(name), got.at(name)) << name << " in run " << run;
  }
  const NamedLiterals want = a.save_states(), got = b.save_states();
  for (const auto& [name, value] : want) EXPECT_EQ(value, got.at(name)) << name;
  for (const auto& s : b.plan().steps) EXPECT_NE(s.kernel, "copy") << b.plan().text();
}

}  // namespace
}  // namespace rlx
