// The samples of all operators, exported, with inputs and results: for tests/onnx/compare_runtime.py.
#include <cstdio>
#include <filesystem>

#include "rlx/base/file.h"
#include "rlx/io/literal.h"
#include "rlx/io/safetensors.h"
#include "rlx/onnx/export.h"
#include "rlx/ops/table.h"
#include "tests/onnx/runner/case.h"
#include "tests/onnx/sample_program.h"

namespace rlx::onnx_cases {
namespace {

void write_values(const std::filesystem::path& path, const NamedLiterals& values) {
  std::vector<io::TensorView> views;
  for (const auto& [name, value] : values) views.push_back(io::to_view(name, value));
  io::write_safetensors(path.string(), views);
}

}  // namespace

void write_samples(const std::string& folder) {
  for (const auto& [name, op] : ops::table().all()) {
    if (op->traits.leaf || op->samples == nullptr) continue;
    for (size_t i = 0; i < op->samples().size(); ++i) {
      const auto sample = test::sample_program(*op, i);
      if (!sample) continue;
      try {
        const std::string bytes = onnx::export_model(sample->program);
        const std::filesystem::path to = std::filesystem::path(folder) / cat(name, "_", i);
        std::filesystem::create_directories(to);
        write_file((to / "model.onnx").string(), std::string_view(bytes));
        write_values(to / "inputs.safetensors", sample->inputs);
        NamedLiterals results;
        for (size_t k = 0; k < sample->want.size(); ++k)
          results.emplace(sample->program.graph.output_name(k), sample->want[k]);
        write_values(to / "outputs.safetensors", results);
      } catch (const Error& e) {
        std::printf("%s %zu: %s\n", std::string(name).c_str(), i, e.what());
      }
    }
  }
}

}  // namespace rlx::onnx_cases
