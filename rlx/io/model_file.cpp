#include "rlx/io/model_file.h"

#include <algorithm>
#include <filesystem>
#include <map>

#include "rlx/base/error.h"
#include "rlx/base/file.h"
#include "rlx/io/byte_reader.h"
#include "rlx/io/gguf_json.h"
#include "rlx/io/json_document.h"
#include "rlx/io/npy.h"

namespace rlx::io {
namespace fs = std::filesystem;

std::string_view file_kind_name(FileKind kind) {
  switch (kind) {
    case FileKind::gguf:
      return "gguf";
    case FileKind::safetensors:
      return "safetensors";
    case FileKind::npy:
      return "npy";
    case FileKind::npz:
      return "npz";
  }
  return {};
}

std::optional<FileKind> recognise_file(const std::string& path) {
  if (fs::is_directory(path)) {
    const bool model =
        fs::exists(path + "/model.safetensors") || fs::exists(path + "/model.safetensors.index.json");
    return model ? std::optional(FileKind::safetensors) : std::nullopt;
  }
  const MappedFile file = MappedFile::open(path);
  const std::string_view text = file.text();
  if (text.starts_with("GGUF")) return FileKind::gguf;
  if (text.starts_with("\x93NUMPY")) return FileKind::npy;
  if (text.starts_with("PK\x03\x04") || text.starts_with("PK\x05\x06")) return FileKind::npz;
  if (path.ends_with(".safetensors.index.json")) return FileKind::safetensors;
  uint64_t header = 0;
  if (text.size() > 8) std::memcpy(&header, text.data(), 8);
  if (header >= 2 && header <= text.size() - 8 && text[8] == '{') return FileKind::safetensors;
  return std::nullopt;
}

ModelFile ModelFile::open(const std::string& path) {
  const auto kind = recognise_file(path);
  if (!kind) {
    throw invalid("'", path,
                  "' is no model file; a GGUF, safetensors, .npy or .npz file, a safetensors index, or a "
                  "folder with model.safetensors expected");
  }
  ModelFile out{.path = path, .kind = *kind};
  const auto take = [&](std::span<const TensorView> tensors) {
    out.tensors.assign(tensors.begin(), tensors.end());
  };
  switch (*kind) {
    case FileKind::gguf:
      out.gguf = GgufFile::open(path);
      out.files = out.gguf->file_count();
      take(out.gguf->tensors());
      break;
    case FileKind::safetensors: {
      const SafetensorsFile file = SafetensorsFile::open(path);
      out.files = file.file_count();
      out.metadata = file.metadata();
      take(file.tensors());
      if (fs::is_directory(path)) out.folder = HfFolder::open(path);
      break;
    }
    case FileKind::npy:
      out.tensors.push_back(read_npy(path));
      break;
    case FileKind::npz:
      out.tensors = read_npz(path);
      break;
  }
  return out;
}

std::string ModelFile::architecture() const {
  if (gguf) {
    const GgufValue* name = gguf->find("general.architecture");
    return name && name->type() == GgufType::string ? std::string(name->string()) : "";
  }
  if (folder && folder->config) return folder->config->model_type.value_or("");
  return "";
}

std::vector<TypeTotal> totals_by_type(std::span<const TensorView> tensors) {
  std::map<std::string_view, TypeTotal> totals;
  for (const TensorView& t : tensors) {
    TypeTotal& total = totals[t.type.name];
    total.type = t.type.name;
    total.tensors += 1;
    total.parameters += t.elements();
    total.bytes += int64_t(t.bytes.size());
  }
  std::vector<TypeTotal> out;
  for (const auto& [name, total] : totals) out.push_back(total);
  std::stable_sort(out.begin(), out.end(), [](const auto& a, const auto& b) { return a.bytes > b.bytes; });
  return out;
}

std::string describe_json(const ModelFile& file, size_t max_array) {
  JsonDocument out;
  out["path"] = file.path;
  out["kind"] = file_kind_name(file.kind);
  out["files"] = file.files;
  if (file.gguf) out["version"] = file.gguf->version(), out["alignment"] = file.gguf->alignment();
  out["architecture"] = file.architecture().empty() ? JsonDocument() : JsonDocument(file.architecture());
  int64_t parameters = 0, bytes = 0;
  JsonDocument types = JsonDocument::object();
  for (const TypeTotal& total : totals_by_type(file.tensors)) {
    types[std::string(total.type)] = {
        {"tensors", total.tensors}, {"parameters", total.parameters}, {"bytes", total.bytes}};
    parameters += total.parameters, bytes += total.bytes;
  }
  out["parameters"] = parameters;
  out["bytes"] = bytes;
  out["types"] = types;
  JsonDocument metadata = JsonDocument::object();
  if (file.gguf) {
    for (const GgufEntry& entry : file.gguf->entries()) {
      metadata[std::string(entry.key)] = plain_json(entry.value, max_array);
    }
  }
  for (const auto& [key, value] : file.metadata) metadata[key] = value;
  out["metadata"] = metadata;
  if (file.folder && file.folder->config) out["config"] = Json::Access::node(file.folder->config->json);
  out["tensors"] = JsonDocument::array();
  for (const TensorView& t : file.tensors) {
    out["tensors"].push_back(
        {{"name", t.name}, {"type", t.type.name}, {"shape", t.dims}, {"bytes", t.bytes.size()}});
  }
  return out.dump(2, ' ', false, JsonDocument::error_handler_t::replace);
}

}  // namespace rlx::io
