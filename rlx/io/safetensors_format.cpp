// safetensors in the table of file formats: one file, an index of several, or a model folder.
#include <cstring>

#include "rlx/io/gguf_json.h"
#include "rlx/io/metadata_keys.h"
#include "rlx/io/model_file.h"
#include "rlx/io/safetensors.h"

namespace rlx::io {
namespace {

// A header length within the limit of the format, then a JSON object. The file may be shorter than it says.
bool recognises(const Input& input) {
  if (input.is_folder())
    return input.contains("model.safetensors") || input.contains("model.safetensors.index.json");
  if (input.path().ends_with(".safetensors.index.json")) return true;
  const std::string_view text = input.text();
  uint64_t header = 0;
  if (text.size() < 9) return false;
  std::memcpy(&header, text.data(), sizeof header);
  return header >= 2 && header <= kMaxSafetensorsHeader && text[8] == '{';
}

void open(const Input& input, ModelFile& out) {
  const SafetensorsFile file = SafetensorsFile::open(input);
  out.files = file.file_count();
  out.metadata = file.metadata();
  out.tensors.assign(file.tensors().begin(), file.tensors().end());
  if (input.is_folder()) out.folder = HfFolder::open(input.path());
}

Metadata metadata_of(const ModelFile& in) {
  Metadata metadata = in.metadata;
  if (!in.gguf) return metadata;
  std::vector<GgufEntry> typed;
  for (const GgufEntry& e : in.gguf->entries()) {
    if (e.key.starts_with(kSafetensorsPrefix) && e.value.type() == GgufType::string) {
      metadata.emplace_back(e.key.substr(kSafetensorsPrefix.size()), e.value.string());
    } else if (e.key != "general.alignment" && (in.files == 1 || !is_split_entry(e))) {
      typed.push_back(e);
    }
  }
  if (!typed.empty()) metadata.emplace_back(kGgufMetadata, typed_json(typed));
  return metadata;
}

}  // namespace

extern const FileFormat kSafetensorsFormat{
    .name = "safetensors",
    .ending = ".safetensors",
    .summary = "safetensors file, index of such files, or model folder",
    .recognises = recognises,
    .open = open,
    .can_hold = [](const StorageType& type) { return !safetensors_dtype(type).empty(); },
    .write = [](const std::string& path,
                const WriteJob& job) { write_safetensors(path, job.tensors, metadata_of(job.in), job.load); },
};

}  // namespace rlx::io
