// GGUF in the table of file formats. Metadata that came through safetensors is put back.
#include "rlx/base/error.h"
#include "rlx/io/gguf_json.h"
#include "rlx/io/gguf_layout.h"
#include "rlx/io/metadata_keys.h"
#include "rlx/io/model_file.h"

namespace rlx::io {
namespace {

bool recognises(const Input& input) { return input.text().starts_with(detail::kGgufMagic); }

void open(const Input& input, ModelFile& out) {
  out.gguf = GgufFile::open(input);
  out.files = out.gguf->file_count();
  out.tensors.assign(out.gguf->tensors().begin(), out.gguf->tensors().end());
}

void add_metadata(GgufWriter& writer, const ModelFile& in) {
  if (in.gguf) {
    for (const GgufEntry& e : in.gguf->entries()) {
      if (in.files == 1 || !is_split_entry(e)) writer.add(e.key, e.value);
    }
    return;
  }
  bool typed = false;
  for (const auto& [key, value] : in.metadata) typed |= key == kGgufMetadata;
  if (!typed)
    writer.add_string("general.architecture", in.architecture().empty() ? "unknown" : in.architecture());
  for (const auto& [key, value] : in.metadata) {
    if (key == kGgufMetadata) {
      add_typed_json(writer, value, cat("'", in.path, "'"));
    } else {
      writer.add_string(cat(kSafetensorsPrefix, key), value);
    }
  }
}

// Of a model under the names of GGUF; of any other file every tensor may change.
bool stays(const ModelFile& in, const TensorView& t) {
  bool named = in.gguf.has_value();
  for (const auto& [key, value] : in.metadata) named |= key == kGgufMetadata;
  return named && !is_product_weight(t);
}

void write(const std::string& path, const WriteJob& job) {
  GgufWriter writer(job.in.gguf ? job.in.gguf->alignment() : 32);
  add_metadata(writer, job.in);
  for (const TensorView& t : job.tensors) writer.add_tensor_later(t);
  writer.write(path, job.load);
}

}  // namespace

bool is_product_weight(const TensorView& t) {
  if (t.dims.size() < 2 || !t.name.ends_with("weight")) return false;
  for (const char* part :
       {"_norm", "ffn_gate_inp", "position_embd", "token_types", "ssm_conv1d", "time_mix", "rel_b"})
    if (t.name.find(part) != t.name.npos) return false;
  return true;
}

extern const FileFormat kGgufFormat{
    .name = "gguf",
    .ending = ".gguf",
    .summary = "GGUF model of llama.cpp",
    .recognises = recognises,
    .open = open,
    .can_hold = [](const StorageType& type) { return type.format != nullptr; },
    .write = write,
    .stays = stays,
};

}  // namespace rlx::io
