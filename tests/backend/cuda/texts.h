// Graphs as texts: without a GPU that every step has a kernel for both generations, with one that they give what the interpreter gives.
#pragma once

#include <map>

#include "rlx/backend/builder.h"
#include "rlx/ir/sample.h"
#include "rlx/runtime/pipeline.h"
#include "tests/backend/cuda/on_device.h"
#include "tests/support/graphs.h"

namespace rlx::test {

struct TextCase {
  std::string text;
  std::map<std::string, std::string> fills = {};  // how leaves are filled, " <9"; normal numbers else
  double least = 1e-9;                            // tolerance
};

inline void expect_kernels(const std::vector<TextCase>& cases) {
  if (const std::string why = cuda::compiler_problem(); !why.empty()) GTEST_SKIP() << why;
  for (const char* architecture : {"sm_90a", "sm_80"}) {
    SCOPED_TRACE(architecture);
    const cuda::Device device(architecture, nullptr);
    for (const TextCase& c : cases) {
      SCOPED_TRACE(c.text);
      std::vector<passes::Remark> remarks;
      const auto program =
          backend::Builder(device, 1).build(runtime::specialise(graph(c.text), device, {}, remarks));
      for (const auto& s : program->plan().steps) EXPECT_NE(s.kernel, "on_host") << s.op;
      for (const std::string& wrong : backend::verify_plan(program->plan())) ADD_FAILURE() << wrong;
    }
    EXPECT_GT(device.functions().compile_waiting(), 0u);
  }
}

inline void expect_same_on_device(const std::vector<TextCase>& cases) {
  for (const TextCase& c : cases) {
    SCOPED_TRACE(c.text);
    const ir::Graph g = graph(c.text);
    NamedLiterals leaves;
    uint64_t seed = 11;
    for (const ir::NodeId id : g.leaves()) {
      const std::string name = static_cast<const ir::NamedLeaf*>(g.node(id).attrs.get())->name;
      const auto fill = c.fills.find(name);
      leaves.emplace(
          name, ir::sample_literal(cat(g.node(id).shapes[0]) + (fill == c.fills.end() ? "" : fill->second),
                                   seed++));
    }
    expect_as_interpreted(g, leaves, c.least);
  }
}

}  // namespace rlx::test
