#include "rlx/io/convert.h"

#include <filesystem>

#include "rlx/base/error.h"
#include "rlx/base/file.h"

namespace rlx::io {
namespace {

bool is_block(const StorageType& type) { return type.format && !type.format->is_plain(); }

bool is_real(const StorageType& type) { return is_block(type) || (type.dtype && is_float(*type.dtype)); }

StorageType wanted_type(const std::string& name, const FileFormat& to) {
  const quant::BlockFormat* format = quant::find_format(name);
  if (!format || !format->encode) {
    std::vector<std::string_view> names;
    for (const quant::BlockFormat& f : quant::formats()) {
      if (f.encode && to.can_hold(StorageType::of(f))) names.push_back(f.name);
    }
    throw invalid("convert: nothing can be stored as '", name, "'; types: ", join(names));
  }
  const StorageType type = StorageType::of(*format);
  if (!to.can_hold(type)) {
    throw invalid("convert: ", to.name, " files cannot hold ", format->name, "; write a .gguf file");
  }
  return type;
}

// Whether rows of the tensor are whole blocks of the type.
bool rows_fit(const TensorView& t, const StorageType& type) {
  return type.elements == 1 || (t.dims.size() >= 2 && t.dims.back() % type.elements == 0);
}

// The plan: the tensors as they will be written, without bytes.
std::vector<TensorView> plan_types(const ModelFile& in, const FileFormat& to, const ConvertOptions& options,
                                   ConvertReport& report) {
  std::optional<StorageType> wanted;
  if (options.type) wanted = wanted_type(*options.type, to);
  std::vector<TensorView> plan;
  std::vector<std::string> refused;
  int64_t kept = 0, stayed = 0, decoded = 0;
  for (const TensorView& t : in.tensors) {
    TensorView planned{t.name, t.type, t.dims, {}, nullptr};
    if (wanted && is_real(t.type)) {
      if (wanted->dtype != DType::f32 && to.stays && to.stays(in, t)) {
        stayed += !(t.type == *wanted);
      } else if (rows_fit(t, *wanted)) {
        planned.type = *wanted;
      } else if (!(t.type == *wanted)) {
        ++kept;
      }
    }
    if (!to.can_hold(planned.type) && is_block(planned.type)) {
      planned.type = StorageType::of(DType::f32);
      ++decoded;
    }
    if (!to.can_hold(planned.type)) refused.push_back(cat("'", t.name, "' (", planned.type.name, ")"));
    const bool changes = !(planned.type == t.type);
    if (changes && is_block(t.type) && !t.type.format->decode)
      refused.push_back(cat("'", t.name, "' (", t.type.name, ")"));
    report.changed += changes;
    plan.push_back(std::move(planned));
  }
  if (!refused.empty()) {
    throw invalid("convert: ", to.name, " files cannot hold, or nothing decodes: ", join(refused));
  }
  if (decoded) report.notes.push_back(cat(decoded, " tensors in block formats were decoded to f32"));
  if (stayed) {
    report.notes.push_back(cat(stayed, " float tensors kept their type: in a ", to.name,
                               " model only weights of products are stored as ", wanted->name));
  }
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
    if (type == from.type) {
      if (!from.unpack) return from.bytes;
      made_ = unpacked(from);
      return made_.bytes;
    }
    const std::vector<float> values = to_f32(from);
    buffer_.resize(size_t(quant::encoded_bytes(*type.format, int64_t(values.size()))));
    quant::encode(*type.format, values, buffer_);
    check_mapped(from.bytes);
    return buffer_;
  }

 private:
  const ModelFile& in_;
  const std::vector<TensorView>& plan_;
  std::vector<std::byte> buffer_;
  TensorView made_;
};

}  // namespace

ConvertReport convert_file(const std::string& in_path, const std::string& out_path,
                           const ConvertOptions& options, const FormatTable& table) {
  ConvertReport report{};
  const FileFormat& to = table.for_output(out_path);
  const ModelFile in = ModelFile::open(in_path, table);
  report.from = in.format->name;
  report.to = to.name;
  report.tensors = int64_t(in.tensors.size());
  if (options.deflate && !to.deflates) throw invalid("convert: only .npz files can be deflated");
  std::error_code ignored;
  if (std::filesystem::equivalent(in_path, out_path, ignored)) {
    throw invalid("convert: '", out_path, "' is the input; write to another name");
  }
  const std::vector<TensorView> plan = plan_types(in, to, options, report);
  for (size_t i = 0; i < plan.size(); ++i) {
    report.bytes_in += in.tensors[i].stored_bytes();
    report.bytes_out += written_bytes(plan[i], true, "convert");
  }
  Loader loader(in, plan);
  int64_t done = 0;
  const auto tell = [&] {
    if (options.progress) options.progress(done, report.bytes_out);
  };
  const LoadTensor load = [&](size_t i) {
    tell();
    done += written_bytes(plan[i], true, "convert");
    return loader(i);
  };
  to.write(out_path, {in, plan, load, options.deflate, report.notes});
  tell();
  return report;
}

}  // namespace rlx::io
