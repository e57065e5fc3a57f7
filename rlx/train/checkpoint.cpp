#include "rlx/train/checkpoint.h"

#include <charconv>

#include "rlx/base/error.h"
#include "rlx/base/file.h"
#include "rlx/io/literal.h"
#include "rlx/io/safetensors.h"

namespace rlx::train {
namespace {

constexpr std::string_view kVersion = "1";

const std::string& required(const io::SafetensorsFile& file, const std::string& path,
                            const std::string& key) {
  const std::string* value = file.find_metadata(key);
  if (value == nullptr)
    throw invalid("checkpoint: '", path, "' has no entry '", key, "'; it is no checkpoint");
  return *value;
}

}  // namespace

void write_checkpoint(const std::string& path, const Checkpoint& c) {
  std::vector<io::TensorView> tensors;
  for (const auto& [name, value] : c.states) tensors.push_back(io::to_view(name, value));
  io::write_safetensors(path, tensors,
                        {{"rlx.format", "checkpoint"},
                         {"rlx.version", std::string(kVersion)},
                         {"rlx.steps", cat(c.steps)},
                         {"rlx.optimizer", c.optimizer}});
}

Checkpoint read_checkpoint(const std::string& path) {
  const auto file = io::SafetensorsFile::open(path);
  if (const std::string& format = required(file, path, "rlx.format"); format != "checkpoint")
    throw invalid("checkpoint: '", path, "' holds a ", format, ", not a checkpoint");
  if (const std::string& version = required(file, path, "rlx.version"); version != kVersion)
    throw invalid("checkpoint: '", path, "' has version ", version, "; version ", kVersion, " is known");
  Checkpoint out;
  const std::string& steps = required(file, path, "rlx.steps");
  const auto [end, error] = std::from_chars(steps.data(), steps.data() + steps.size(), out.steps);
  if (error != std::errc() || end != steps.data() + steps.size() || out.steps < 0)
    throw invalid("checkpoint: '", path, "': rlx.steps is '", steps, "'; a number of steps expected");
  out.optimizer = required(file, path, "rlx.optimizer");
  for (const io::TensorView& t : file.tensors()) out.states.emplace(t.name, io::to_literal(t));
  check_mapped_files();
  return out;
}

std::string describe(const Optimizer& o) {
  std::vector<std::string> settings;
  for (const auto& [name, value] : o.settings) settings.push_back(cat(name, "=", value));
  return cat(o.name, "(", join(settings), ")");
}

}  // namespace rlx::train
