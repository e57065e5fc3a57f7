#include "tests/onnx/runner/case.h"

#include <algorithm>
#include <filesystem>

#include "rlx/base/file.h"
#include "rlx/base/json.h"
#include "rlx/io/literal.h"
#include "rlx/io/onnx/contents.h"
#include "rlx/io/onnx/read.h"
#include "rlx/io/safetensors.h"

namespace rlx::onnx_cases {
namespace {

namespace fs = std::filesystem;

Literal read_tensor(const fs::path& path) {
  const MappedFile file = MappedFile::open(path.string());
  io::onnx::Contents contents(path.string(), file.owner());
  return contents.literal(io::onnx::parse_tensor(file.bytes(), path.string()));
}

// input_0.pb, input_1.pb, ... belong to the names in order.
ir::NamedLiterals read_numbered(const fs::path& folder, const std::string& prefix,
                                const std::vector<std::string>& names) {
  ir::NamedLiterals out;
  for (size_t i = 0; i < names.size(); ++i) {
    const fs::path path = folder / cat(prefix, "_", i, ".pb");
    if (fs::exists(path)) out.emplace(names[i], read_tensor(path));
  }
  return out;
}

ir::NamedLiterals read_named(const fs::path& path) {
  ir::NamedLiterals out;
  const auto file = io::SafetensorsFile::open(path.string());
  for (const io::TensorView& t : file.tensors()) out.emplace(t.name, io::to_literal(t));
  return out;
}

double number_in(const JsonView& object, const char* key, double otherwise) {
  const auto v = object.find(key);
  return v ? v->real() : otherwise;
}

void read_meta(const fs::path& path, Case& c) {
  const Json meta = Json::parse(read_file(path.string()), path.string());
  if (const auto refusal = meta.find("expect_refusal")) c.expects_refusal = refusal->boolean();
  if (const auto t = meta.find("tolerance")) {
    c.tolerance.absolute = number_in(*t, "atol", 0);
    c.tolerance.relative = number_in(*t, "rtol", 0);
    c.tolerance.relative_l2 = number_in(*t, "relative_l2", 0);
  }
}

}  // namespace

std::vector<std::string> find_cases(const std::string& folder) {
  std::vector<std::string> out;
  if (fs::exists(fs::path(folder) / "model.onnx")) return {folder};
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (fs::exists(entry.path() / "model.onnx")) out.push_back(entry.path().string());
  }
  std::sort(out.begin(), out.end());
  return out;
}

Case read_case(const std::string& folder) {
  Case c;
  const fs::path root(folder);
  c.name = root.filename().string();
  c.model = (root / "model.onnx").string();
  if (fs::exists(root / "meta.json")) read_meta(root / "meta.json", c);
  for (const char* number : {"", "2"}) {
    const fs::path in = root / cat("inputs", number, ".safetensors");
    if (fs::exists(in))
      c.sets.push_back({cat("set ", *number ? "2" : "1"), read_named(in),
                        read_named(root / cat("outputs", number, ".safetensors"))});
  }
  if (!c.sets.empty() || c.expects_refusal) return c;
  const io::onnx::Model model = io::onnx::read_model(c.model);
  std::vector<std::string> inputs, outputs;
  for (const auto& v : model.graph.inputs) inputs.push_back(v.name);
  for (const auto& v : model.graph.outputs) outputs.push_back(v.name);
  std::vector<fs::path> folders;
  for (const auto& entry : fs::directory_iterator(root)) {
    if (entry.is_directory() && entry.path().filename().string().starts_with("test_data_set_"))
      folders.push_back(entry.path());
  }
  std::sort(folders.begin(), folders.end());
  try {
    for (const fs::path& f : folders)
      c.sets.push_back(
          {f.filename().string(), read_numbered(f, "input", inputs), read_numbered(f, "output", outputs)});
  } catch (const Error& e) {
    c.data_error = e.what();
  }
  return c;
}

}  // namespace rlx::onnx_cases
