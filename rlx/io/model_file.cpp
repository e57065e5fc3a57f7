#include "rlx/io/model_file.h"

#include <algorithm>
#include <map>

#include "rlx/base/error.h"
#include "rlx/base/json_write.h"
#include "rlx/io/gguf_json.h"

namespace rlx::io {

ModelFile ModelFile::open(const std::string& path, const FormatTable& table) {
  return open(Input::open(path), table);
}

ModelFile ModelFile::open(const Input& input, const FormatTable& table) {
  const FileFormat* format = table.recognise(input);
  if (format == nullptr) {
    throw invalid("'", input.path(), "' is no model file; ", table.names(),
                  ", a safetensors index or a folder with model.safetensors expected");
  }
  ModelFile out{.path = input.path(), .format = format};
  try {
    format->open(input, out);
  } catch (const Error&) {
    check_mapped(input.bytes());  // a file that was cut meanwhile is the better reason
    throw;
  }
  check_mapped(input.bytes());
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
    total.bytes += t.stored_bytes();
  }
  std::vector<TypeTotal> out;
  for (const auto& [name, total] : totals) out.push_back(total);
  std::stable_sort(out.begin(), out.end(), [](const auto& a, const auto& b) { return a.bytes > b.bytes; });
  return out;
}

namespace {

void describe_tensors(JsonWriter& out, const ModelFile& file) {
  out.key("tensors"), out.begin_array();
  for (const TensorView& t : file.tensors) {
    out.begin_object();
    out.member("name", t.name), out.member("type", t.type.name);
    out.member("shape", t.dims), out.member("bytes", t.stored_bytes());
    out.end_object();
  }
  out.end_array();
}

void describe_metadata(JsonWriter& out, const ModelFile& file, size_t max_array) {
  out.key("metadata"), out.begin_object();
  if (file.gguf) {
    for (const GgufEntry& entry : file.gguf->entries()) {
      out.key(entry.key);
      write_plain_json(out, entry.value, max_array);
    }
  }
  for (const auto& [key, value] : file.metadata) out.member(key, value);
  out.end_object();
}

}  // namespace

std::string describe_json(const ModelFile& file, size_t max_array) {
  JsonWriter out({.indent = 2, .replace_invalid = true});
  out.begin_object();
  out.member("path", file.path);
  out.member("kind", file.format->name);
  out.member("files", file.files);
  if (file.gguf) {
    out.member("version", file.gguf->version());
    out.member("alignment", file.gguf->alignment());
  }
  out.key("architecture");
  file.architecture().empty() ? out.null() : out.value(file.architecture());
  int64_t parameters = 0, bytes = 0;
  const auto totals = totals_by_type(file.tensors);
  for (const TypeTotal& total : totals) parameters += total.parameters, bytes += total.bytes;
  out.member("parameters", parameters);
  out.member("bytes", bytes);
  out.key("types"), out.begin_object();
  for (const TypeTotal& total : totals) {
    out.key(total.type), out.begin_object();
    out.member("tensors", total.tensors), out.member("parameters", total.parameters);
    out.member("bytes", total.bytes);
    out.end_object();
  }
  out.end_object();
  describe_metadata(out, file, max_array);
  if (file.folder && file.folder->config) out.member("config", JsonView(file.folder->config->json));
  describe_tensors(out, file);
  out.end_object();
  return out.take();
}

}  // namespace rlx::io
