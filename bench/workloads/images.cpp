// Models that bench/peers writes as ONNX files, so that the peers run the same file.
#include "bench/bench.h"
#include "bench/workloads/workload.h"
#include "rlx/ir/sample.h"
#include "rlx/onnx/import.h"
#include "rlx/runtime/compiled_graph.h"

namespace rlx::bench {
namespace {

std::function<void()> images(const std::string& file, int64_t count) {
  const onnx::Imported m = onnx::import_model(file);
  const auto f =
      std::make_shared<CompiledGraph>(compile(m.program.graph, m.program.weights, {.threads = threads()}));
  const auto x = std::make_shared<Literal>(ir::sample_literal(cat("f32[", count, ",3,224,224]"), 5));
  const std::string name = f->inputs().at(0).name;
  return [f, x, name] { f->run({{name, view(*x)}}); };
}

}  // namespace

std::vector<Workload> image_workloads() {
  std::vector<Workload> out;
  for (const char* type : {"f32", "int8"}) {
    for (const int64_t count : {1, 8}) {
      out.push_back({cat("resnet18_", type, "_", count),
                     [count](const std::string& file) { return images(file, count); }, true});
    }
  }
  return out;
}

}  // namespace rlx::bench
