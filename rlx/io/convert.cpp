#include "rlx/io/convert.h"

#include <filesystem>

#include "rlx/base/error.h"
#include "rlx/io/gguf_json.h"
#include "rlx/io/npy.h"

namespace rlx::io {
namespace {

constexpr std::string_view kGgufMetadata = "gguf.metadata", kSafetensorsPrefix = "safetensors.";

FileKind kind_for_name(const std::string& path) {
  if (path.ends_with(".gguf")) return FileKind::gguf;
  if (path.ends_with(".safetensors")) return FileKind::safetensors;
  if (path.ends_with(".npz")) return FileKind::npz;
  throw invalid("convert: the name '", path, "' must end in .gguf, .safetensors or .npz");
}

bool can_hold(FileKind kind, const StorageType& type) {
  if (kind == FileKind::gguf) return type.format != nullptr;
  if (kind == FileKind::safetensors) return !safetensors_dtype(type).empty();
  return type.dtype.has_value() || type.name == "u16" || type.name == "u64" || type.name == "c128";
}

bool is_block(const StorageType& type) { return type.format && !type.format->is_plain(); }

bool is_real(const StorageType& type) { return is_block(type) || (type.dtype && is_float(*type.dtype)); }

StorageType wanted_type(const std::string& name, FileKind to) {
  const quant::BlockFormat* format = quant::find_format(name);
  if (!format || !format->encode) {
    std::vector<std::string_view> names;
    for (const quant::BlockFormat& f : quant::formats()) {
      if (f.encode && (to == FileKind::gguf || f.is_plain())) names.push_back(f.name);
    }
    throw invalid("convert: nothing can be stored as '", name, "'; types: ", join(names));
  }
  const StorageType type = StorageType::of(*format);
  if (!can_hold(to, type)) {
    throw invalid("convert: ", file_kind_name(to), " files cannot hold ", format->name,
                  "; write a .gguf file");
  }
  return type;
}

// Whether rows of the tensor are whole blocks of the type.
bool rows_fit(const TensorView& t, const StorageType& type) {
  return type.elements == 1 || (t.dims.size() >= 2 && t.dims.back() % type.elements == 0);
}

// The plan: the tensors as they will be written, without bytes.
std::vector<TensorView> plan_types(const ModelFile& in, FileKind to, const ConvertOptions& options,
                                   ConvertReport& report) {
  std::optional<StorageType> wanted;
  if (options.type) wanted = wanted_type(*options.type, to);
  std::vector<TensorView> plan;
  std::vector<std::string> refused;
  int64_t kept = 0, decoded = 0;
  for (const TensorView& t : in.tensors) {
    TensorView planned{t.name, t.type, t.dims, {}, nullptr};
    if (wanted && is_real(t.type)) {
      if (rows_fit(t, *wanted)) {
        planned.type = *wanted;
      } else if (!(t.type == *wanted)) {
        ++kept;
      }
    }
    if (!can_hold(to, planned.type) && is_block(planned.type)) {
      planned.type = StorageType::of(DType::f32);
      ++decoded;
    }
    if (!can_hold(to, planned.type)) refused.push_back(cat("'", t.name, "' (", planned.type.name, ")"));
    const bool changes = !(planned.type == t.type);
    if (changes && is_block(t.type) && !t.type.format->decode)
      refused.push_back(cat("'", t.name, "' (", t.type.name, ")"));
    report.changed += changes;
    plan.push_back(std::move(planned));
  }
  if (!refused.empty()) {
    throw invalid("convert: ", file_kind_name(to), " files cannot hold, or nothing decodes: ", join(refused));
  }
  if (decoded) report.notes.push_back(cat(decoded, " tensors in block formats were decoded to f32"));
  if (kept) {
    report.notes.push_back(cat(kept, " float tensors kept their type: rows of ", wanted->name,
                               " are multiples of ", wanted->elements, " in two dimensions or more"));
  }
  return plan;
}

// Bytes of a tensor in its new type; one buffer, reused.
class Loader {
 public:
  Loader(const ModelFile& in, const std::vector<TensorView>& plan) : in_(in), plan_(plan) {}

  std::span<const std::byte> operator()(size_t i) {
    const TensorView& from = in_.tensors[i];
    const StorageType& type = plan_[i].type;
    if (type == from.type) return from.bytes;
    const std::vector<float> values = to_f32(from);
    buffer_.resize(size_t(quant::encoded_bytes(*type.format, int64_t(values.size()))));
    quant::encode(*type.format, values, buffer_);
    return buffer_;
  }

 private:
  const ModelFile& in_;
  const std::vector<TensorView>& plan_;
  std::vector<std::byte> buffer_;
};

bool is_split_entry(const GgufEntry& e) { return e.key.starts_with("split."); }

void write_gguf(const ModelFile& in, const std::string& out, const std::vector<TensorView>& plan,
                const LoadTensor& load) {
  GgufWriter writer(in.gguf ? in.gguf->alignment() : 32);
  if (in.gguf) {
    for (const GgufEntry& e : in.gguf->entries()) {
      if (in.files == 1 || !is_split_entry(e)) writer.add(e.key, e.value);
    }
  } else {
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
  for (const TensorView& t : plan) writer.add_tensor_later(t);
  writer.write(out, load);
}

Metadata safetensors_metadata(const ModelFile& in) {
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

ConvertReport convert_file(const std::string& in_path, const std::string& out_path,
                           const ConvertOptions& options) {
  ConvertReport report{};
  report.to = kind_for_name(out_path);
  const ModelFile in = ModelFile::open(in_path);
  report.from = in.kind;
  report.tensors = int64_t(in.tensors.size());
  if (options.deflate && report.to != FileKind::npz)
    throw invalid("convert: only .npz files can be deflated");
  std::error_code ignored;
  if (std::filesystem::equivalent(in_path, out_path, ignored)) {
    throw invalid("convert: '", out_path, "' is the input; write to another name");
  }
  const std::vector<TensorView> plan = plan_types(in, report.to, options, report);
  for (size_t i = 0; i < plan.size(); ++i) {
    report.bytes_in += int64_t(in.tensors[i].bytes.size());
    report.bytes_out += written_bytes(plan[i], true, "convert");
  }
  Loader loader(in, plan);
  const LoadTensor load = [&](size_t i) { return loader(i); };
  switch (report.to) {
    case FileKind::gguf:
      write_gguf(in, out_path, plan, load);
      break;
    case FileKind::safetensors:
      write_safetensors(out_path, plan, safetensors_metadata(in), load);
      break;
    case FileKind::npz: {
      const size_t entries = in.gguf ? in.gguf->entries().size() : in.metadata.size();
      if (entries)
        report.notes.push_back(cat(entries, " metadata entries have no place in .npz and were left out"));
      write_npz(out_path, plan, options.deflate, load);
      break;
    }
    case FileKind::npy:
      break;
  }
  return report;
}

}  // namespace rlx::io
