#include "rlx/base/error.h"
#include "rlx/base/output_file.h"
#include "rlx/base/utf8.h"
#include "rlx/io/gguf.h"
#include "rlx/io/gguf_layout.h"

namespace rlx::io {
namespace {

using detail::align_up;

template <class T>
void put(std::string& out, T value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof(T));
}

void put_string(std::string& out, std::string_view s) {
  put(out, uint64_t(s.size()));
  out.append(s);
}

// Values of version 1 files carry 32-bit lengths and are written with 64-bit ones.
void put_value(std::string& out, const GgufValue& v) {
  if (v.wide() || (v.type() != GgufType::string && v.type() != GgufType::array)) {
    out.append(as_text(v.raw()));
  } else if (v.type() == GgufType::string) {
    put_string(out, v.string());
  } else {
    put(out, uint32_t(v.element_type()));
    put(out, v.size());
    for (const GgufValue& element : v.elements()) put_value(out, element);
  }
}

void check_name(std::string_view what, std::string_view name) {
  if (name.empty() || name.size() > detail::kGgufMaxName || !valid_utf8(name)) {
    throw invalid("gguf write: ", what, " '", name, "' must be valid UTF-8 of 1 to ", detail::kGgufMaxName,
                  " bytes");
  }
}

}  // namespace

GgufWriter::GgufWriter(uint64_t alignment) : alignment_(alignment) {
  if (alignment == 0 || (alignment & (alignment - 1)) != 0 || alignment > UINT32_MAX) {
    throw invalid("gguf write: alignment ", alignment, " is not a power of two below 2^32");
  }
}

std::string& GgufWriter::begin_entry(std::string_view key, GgufType type) {
  check_name("metadata key", key);
  keys_.emplace_back(key);
  ++entry_count_;
  put_string(entries_, key);
  put(entries_, uint32_t(type));
  return entries_;
}

void GgufWriter::add(std::string_view key, const GgufValue& value) {
  if (key == "general.alignment" &&
      (value.type() != GgufType::u32 || uint64_t(value.integer()) != alignment_)) {
    throw invalid("gguf write: general.alignment must be a u32 of ", alignment_,
                  ", the alignment of this file");
  }
  put_value(begin_entry(key, value.type()), value);
}

void GgufWriter::add_u32(std::string_view key, uint32_t value) {
  add(key, GgufValue(GgufType::u32, std::as_bytes(std::span(&value, 1)), true));
}
void GgufWriter::add_u64(std::string_view key, uint64_t value) {
  put(begin_entry(key, GgufType::u64), value);
}
void GgufWriter::add_i32(std::string_view key, int32_t value) { put(begin_entry(key, GgufType::i32), value); }
void GgufWriter::add_f32(std::string_view key, float value) { put(begin_entry(key, GgufType::f32), value); }
void GgufWriter::add_bool(std::string_view key, bool value) {
  put(begin_entry(key, GgufType::bool_), uint8_t(value));
}
void GgufWriter::add_string(std::string_view key, std::string_view value) {
  put_string(begin_entry(key, GgufType::string), value);
}

void GgufWriter::add_strings(std::string_view key, std::span<const std::string_view> values) {
  std::string& out = begin_entry(key, GgufType::array);
  put(out, uint32_t(GgufType::string));
  put(out, uint64_t(values.size()));
  for (const std::string_view s : values) put_string(out, s);
}

void GgufWriter::add_i32s(std::string_view key, std::span<const int32_t> values) {
  std::string& out = begin_entry(key, GgufType::array);
  put(out, uint32_t(GgufType::i32));
  put(out, uint64_t(values.size()));
  for (const int32_t v : values) put(out, v);
}

void GgufWriter::add_f32s(std::string_view key, std::span<const float> values) {
  std::string& out = begin_entry(key, GgufType::array);
  put(out, uint32_t(GgufType::f32));
  put(out, uint64_t(values.size()));
  for (const float v : values) put(out, v);
}

void GgufWriter::check_tensor(const TensorView& t, bool loaded_later) {
  check_name("tensor name", t.name);
  if (!t.type.format) {
    throw invalid("gguf write: tensor '", t.name, "' has type ", t.type.name, ", which GGUF cannot hold");
  }
  if (t.dims.size() > detail::kGgufMaxRank) {
    throw invalid("gguf write: tensor '", t.name, "' has ", t.dims.size(), " dimensions; at most ",
                  detail::kGgufMaxRank);
  }
  written_bytes(t, loaded_later, "gguf write");
}

void GgufWriter::add_tensor(const TensorView& t) {
  check_tensor(t, false);
  tensors_.push_back(t);
}

void GgufWriter::add_tensor_later(const TensorView& t) {
  check_tensor(t, true);
  tensors_.push_back({t.name, t.type, t.dims, {}, nullptr});
}

template <class Sink>
void GgufWriter::emit(Sink&& sink, const LoadTensor& load) const {
  NameIndex index;
  if (const auto twice =
          index.build(tensors_.size(), [&](uint32_t i) { return std::string_view(tensors_[i].name); })) {
    throw invalid("gguf write: tensor '", *twice, "' was added twice");
  }
  const auto key_of = [&](uint32_t i) { return std::string_view(keys_[i]); };
  if (const auto twice = index.build(keys_.size(), key_of)) {
    throw invalid("gguf write: metadata key '", *twice, "' was added twice");
  }
  if (alignment_ != 32 && !index.find("general.alignment", key_of)) {
    throw invalid("gguf write: alignment ", alignment_, " needs the entry general.alignment");
  }

  std::string head(detail::kGgufMagic);
  put(head, uint32_t(3));
  put(head, uint64_t(tensors_.size()));
  put(head, entry_count_);
  head += entries_;
  uint64_t offset = 0;
  for (const TensorView& t : tensors_) {
    put_string(head, t.name);
    put(head, uint32_t(t.dims.size()));
    for (size_t i = t.dims.size(); i-- > 0;) put(head, uint64_t(t.dims[i]));
    put(head, uint32_t(t.type.format->ggml_id));
    put(head, offset);
    offset = align_up(offset + uint64_t(written_bytes(t, true, "gguf write")), alignment_);
  }
  head.resize(size_t(align_up(head.size(), alignment_)), '\0');
  sink.bytes(std::as_bytes(std::span(head)));
  for (size_t i = 0; i < tensors_.size(); ++i) {
    const auto bytes = bytes_to_write(tensors_, i, load);
    sink.bytes(bytes);
    sink.zeros(align_up(bytes.size(), alignment_) - bytes.size());
  }
}

void GgufWriter::write(const std::string& path, const LoadTensor& load) const {
  struct Sink {
    OutputFile file;
    void bytes(std::span<const std::byte> b) { file.write(b); }
    void zeros(uint64_t n) { file.write_zeros(n); }
  } sink{OutputFile(path)};
  emit(sink, load);
  sink.file.finish();
}

std::string GgufWriter::to_bytes() const {
  struct Sink {
    std::string out;
    void bytes(std::span<const std::byte> b) { out.append(as_text(b)); }
    void zeros(uint64_t n) { out.append(size_t(n), '\0'); }
  } sink;
  emit(sink, {});
  return std::move(sink.out);
}

GgufWriter gguf_copy(const GgufFile& file) {
  GgufWriter writer(file.alignment());
  for (const GgufEntry& entry : file.entries()) {
    if (file.file_count() > 1 && entry.key.starts_with("split.")) continue;  // the copy is one file
    writer.add(entry.key, entry.value);
  }
  for (const TensorView& t : file.tensors()) writer.add_tensor(t);
  return writer;
}

}  // namespace rlx::io
