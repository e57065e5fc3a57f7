#include "rlx/io/safetensors.h"

#include <algorithm>
#include <filesystem>
#include <numeric>
#include <set>

#include "rlx/base/file.h"
#include "rlx/base/json.h"
#include "rlx/base/json_write.h"
#include "rlx/base/output_file.h"
#include "rlx/io/byte_reader.h"

namespace rlx::io {
namespace {

constexpr size_t kDataAlignment = 64;

struct TypeName {
  std::string_view word;
  StorageType type;
};

// Every dtype of the format. F4 packs two elements in a byte, F6 four in three bytes.
const TypeName kTypes[] = {
    {"BOOL", StorageType::of(DType::bool_)},
    {"F4", {"f4", 2, 1}},
    {"F6_E2M3", {"f6e2m3", 4, 3}},
    {"F6_E3M2", {"f6e3m2", 4, 3}},
    {"U8", StorageType::of(DType::u8)},
    {"I8", StorageType::of(DType::i8)},
    {"F8_E5M2", StorageType::of(DType::f8e5m2)},
    {"F8_E4M3", StorageType::of(DType::f8e4m3)},
    {"F8_E8M0", {"f8e8m0", 1, 1}},
    {"F8_E4M3FNUZ", {"f8e4m3fnuz", 1, 1}},
    {"F8_E5M2FNUZ", {"f8e5m2fnuz", 1, 1}},
    {"I16", StorageType::of(DType::i16)},
    {"U16", {"u16", 1, 2}},
    {"F16", StorageType::of(DType::f16)},
    {"BF16", StorageType::of(DType::bf16)},
    {"I32", StorageType::of(DType::i32)},
    {"U32", StorageType::of(DType::u32)},
    {"F32", StorageType::of(DType::f32)},
    {"C64", StorageType::of(DType::c64)},
    {"F64", StorageType::of(DType::f64)},
    {"I64", StorageType::of(DType::i64)},
    {"U64", {"u64", 1, 8}},
};

uint64_t whole_number(JsonView value, const std::string& source, const std::string& field) {
  if (value.kind() != JsonKind::integer || value.real() < 0)
    throw invalid(source, ": ", field, " must be a whole number, not negative");
  const uint64_t number = value.unsigned_integer();
  if (number > uint64_t(INT64_MAX)) throw invalid(source, ": ", field, " is ", number, ", too large");
  return number;
}

struct Range {
  uint64_t begin, end;
};

TensorView read_tensor(std::string_view name, JsonView info, const std::string& source, Range& range) {
  const std::string who = cat("tensor '", name, "'");
  if (!info.is_object()) throw invalid(source, ": ", who, " must be an object");
  TensorView t;
  t.name = name;
  bool has_type = false, has_shape = false, has_offsets = false;
  for (const auto [key, value] : info.members()) {
    if (key == "dtype") {
      if (!value.is_string()) throw invalid(source, ": ", who, " dtype must be a string");
      const auto type = std::find_if(std::begin(kTypes), std::end(kTypes),
                                     [word = value.string()](auto& row) { return row.word == word; });
      if (type == std::end(kTypes))
        throw invalid(source, ": ", who, " has unknown dtype '", value.string(), "'");
      t.type = type->type;
      has_type = true;
    } else if (key == "shape") {
      if (!value.is_array()) throw invalid(source, ": ", who, " shape must be an array");
      for (const JsonView extent : value.items())
        t.dims.push_back(int64_t(whole_number(extent, source, who + " shape")));
      has_shape = true;
    } else if (key == "data_offsets") {
      if (!value.is_array() || value.size() != 2)
        throw invalid(source, ": ", who, " data_offsets must be an array of two numbers");
      range = {whole_number(value.at(size_t(0)), source, who + " data_offsets"),
               whole_number(value.at(1), source, who + " data_offsets")};
      has_offsets = true;
    } else {
      throw invalid(source, ": ", who, " has the field '", key,
                    "'; only dtype, shape and data_offsets are expected");
    }
  }
  if (!has_type || !has_shape || !has_offsets) {
    throw invalid(source, ": ", who, " needs dtype, shape and data_offsets");
  }
  if (range.begin > range.end) {
    throw invalid(source, ": ", who, " data_offsets run backwards: ", range.begin, " to ", range.end);
  }
  const auto bytes = checked_bytes(t.type, t.dims);
  if (!bytes) throw invalid(source, ": ", who, " ", t, " has a size that overflows or splits a byte");
  if (uint64_t(*bytes) != range.end - range.begin) {
    throw invalid(source, ": ", who, " ", t, " takes ", *bytes, " bytes, data_offsets give ",
                  range.end - range.begin);
  }
  return t;
}

void place_tensors(std::vector<TensorView>& tensors, const std::vector<Range>& ranges,
                   std::span<const std::byte> data, const std::string& source) {
  std::vector<uint32_t> order(tensors.size());
  std::iota(order.begin(), order.end(), 0u);
  std::stable_sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
    return std::pair(ranges[a].begin, ranges[a].end) < std::pair(ranges[b].begin, ranges[b].end);
  });
  uint64_t next = 0;
  for (const uint32_t i : order) {
    const auto [begin, end] = ranges[i];
    const auto fail = [&](const auto&... what) {
      return invalid(source, ": tensor '", tensors[i].name, "' at data offset ", begin, ": ", what...);
    };
    if (end > data.size()) throw fail("ends at ", end, ", the data has ", data.size(), " bytes");
    if (begin < next) throw fail("overlaps the tensor before it, which ends at ", next);
    if (begin > next) throw fail("leaves a hole after the tensor before it, which ends at ", next);
    tensors[i].bytes = data.subspan(size_t(begin), size_t(end - begin));
    next = end;
  }
  if (next != data.size()) {
    throw invalid(source, ": ", data.size() - next,
                  " bytes follow the last tensor, which ends at data offset ", next);
  }
}

// A shard's name must stay in its folder.
void check_shard_name(std::string_view name, const std::string& source) {
  if (name.empty() || name == "." || name == ".." || name.find('/') != name.npos ||
      name.find('\0') != name.npos) {
    throw invalid(source, ": weight_map names the file '", name, "'; a plain file name expected");
  }
}

// The header is padded so that data is aligned for any dtype once the file is mapped.
std::string header_bytes(std::span<const TensorView> tensors, const Metadata& metadata, bool loaded_later) {
  std::string header = "{";
  const auto comma = [&] {
    if (header.size() > 1) header += ',';
  };
  if (!metadata.empty()) {
    header += "\"__metadata__\":{";
    for (size_t i = 0; i < metadata.size(); ++i) {
      if (i) header += ',';
      header += json_quote(metadata[i].first) + ":" + json_quote(metadata[i].second);
    }
    header += '}';
  }
  uint64_t offset = 0;
  NameIndex names;
  if (const auto twice =
          names.build(tensors.size(), [&](uint32_t i) { return std::string_view(tensors[i].name); })) {
    throw invalid("safetensors write: tensor '", *twice, "' was given twice");
  }
  for (const TensorView& t : tensors) {
    if (t.name == "__metadata__") throw invalid("safetensors write: no tensor may be called __metadata__");
    if (safetensors_dtype(t.type).empty()) {
      throw invalid("safetensors write: tensor '", t.name, "' has type ", t.type.name,
                    ", which the format cannot hold; decode it first");
    }
    const uint64_t bytes = uint64_t(written_bytes(t, loaded_later, "safetensors write"));
    comma();
    header += cat(json_quote(t.name), ":{\"dtype\":\"", safetensors_dtype(t.type), "\",\"shape\":[",
                  join(t.dims, ","), "],\"data_offsets\":[", offset, ",", offset + bytes, "]}");
    offset += bytes;
  }
  header += '}';
  const size_t whole = (8 + header.size() + kDataAlignment - 1) / kDataAlignment * kDataAlignment;
  header.resize(whole - 8, ' ');
  if (header.size() > kMaxSafetensorsHeader) {
    throw invalid("safetensors write: the header has ", header.size(), " bytes; at most ",
                  kMaxSafetensorsHeader);
  }
  const uint64_t length = header.size();
  return std::string(reinterpret_cast<const char*>(&length), 8) + header;
}

}  // namespace

std::string_view safetensors_dtype(const StorageType& type) {
  for (const TypeName& row : kTypes) {
    if (row.type == type) return row.word;
  }
  return {};
}

SafetensorsFile SafetensorsFile::parse(std::span<const std::byte> bytes, std::shared_ptr<const void> owner,
                                       std::string_view name) {
  SafetensorsFile file;
  file.source_ = cat("safetensors '", name, "'");
  ByteReader in(bytes, file.source_);
  const uint64_t length = in.read<uint64_t>("header length");
  if (length > kMaxSafetensorsHeader) {
    throw invalid(file.source_, ": header length ", length, " at offset 0 is above the limit of ",
                  kMaxSafetensorsHeader);
  }
  const std::string_view header = as_text(in.take(length, "header"));
  if (!header.starts_with('{')) throw invalid(file.source_, ": the header at offset 8 must begin with '{'");
  const Json root = Json::parse_in_place(header, file.source_);
  std::vector<Range> ranges;
  for (const auto [key, value] : root.members()) {
    if (key == "__metadata__") {
      if (!value.is_object()) throw invalid(file.source_, ": __metadata__ must be one object of strings");
      for (const auto [k, v] : value.members()) {
        if (!v.is_string()) throw invalid(file.source_, ": __metadata__ '", k, "' must be a string");
        file.metadata_.emplace_back(k, v.string());
      }
      continue;
    }
    ranges.emplace_back();
    file.tensors_.push_back(read_tensor(key, value, file.source_, ranges.back()));
    file.tensors_.back().owner = owner;
  }
  file.index_tensors();
  place_tensors(file.tensors_, ranges, bytes.subspan(in.offset()), file.source_);
  return file;
}

void SafetensorsFile::index_tensors() {
  if (const auto twice =
          index_.build(tensors_.size(), [&](uint32_t i) { return std::string_view(tensors_[i].name); })) {
    throw invalid(source_, ": tensor '", *twice, "' occurs twice");
  }
}

SafetensorsFile SafetensorsFile::open(const Input& input) {
  const std::string& path = input.path();
  if (input.is_folder()) {
    constexpr const char *kIndex = "model.safetensors.index.json", *kSingle = "model.safetensors";
    if (input.contains(kIndex)) return open_index(Input::open(path + "/" + kIndex));
    if (input.contains(kSingle)) return open_one(Input::open(path + "/" + kSingle));
    throw invalid("safetensors '", path, "': the folder has neither ", kSingle, " nor ", kIndex);
  }
  return path.ends_with(".index.json") ? open_index(input) : open_one(input);
}

SafetensorsFile SafetensorsFile::open_one(const Input& input) {
  return parse(input.bytes(), input.owner(), input.path());
}

SafetensorsFile SafetensorsFile::open_index(const Input& input) {
  SafetensorsFile out;
  const std::string& path = input.path();
  out.source_ = cat("safetensors index '", path, "'");
  const Json root = Json::parse_in_place(input.text(), out.source_);
  const auto map = root.is_object() ? root.find("weight_map") : std::nullopt;
  if (!map || !map->is_object()) throw invalid(out.source_, ": needs an object 'weight_map'");

  std::vector<std::pair<std::string_view, std::string_view>> places;  // shard, tensor
  for (const auto [tensor, shard] : map->members()) {
    if (!shard.is_string()) throw invalid(out.source_, ": weight_map '", tensor, "' must be a string");
    check_shard_name(shard.string(), out.source_);
    places.emplace_back(shard.string(), tensor);
  }
  std::sort(places.begin(), places.end());
  const std::string folder = std::filesystem::path(path).parent_path().string();
  out.file_count_ = 0;
  std::set<Metadata::value_type> seen;
  for (size_t i = 0; i < places.size();) {
    const std::string_view shard = places[i].first;
    // A shard is one file: an index or folder here could name itself.
    const SafetensorsFile part =
        open_one(Input::open((folder.empty() ? "" : folder + "/") + std::string(shard)));
    size_t named = 0;
    for (; i < places.size() && places[i].first == shard; ++i, ++named) {
      if (!part.find_tensor(places[i].second)) {
        throw invalid(out.source_, ": weight_map puts tensor '", places[i].second, "' in '", shard,
                      "', which does not have it");
      }
    }
    if (named != part.tensors_.size()) {
      throw invalid(out.source_, ": '", shard, "' holds ", part.tensors_.size(),
                    " tensors, weight_map names ", named);
    }
    out.tensors_.insert(out.tensors_.end(), part.tensors_.begin(), part.tensors_.end());
    for (const auto& entry : part.metadata_) {
      if (seen.insert(entry).second) out.metadata_.push_back(entry);
    }
    ++out.file_count_;
  }
  out.index_tensors();
  return out;
}

const std::string* SafetensorsFile::find_metadata(std::string_view key) const {
  for (const auto& [k, v] : metadata_) {
    if (k == key) return &v;
  }
  return nullptr;
}

const TensorView* SafetensorsFile::find_tensor(std::string_view name) const {
  const auto at = index_.find(name, [&](uint32_t i) { return std::string_view(tensors_[i].name); });
  return at ? &tensors_[*at] : nullptr;
}

const TensorView& SafetensorsFile::tensor(std::string_view name) const {
  if (const TensorView* t = find_tensor(name)) return *t;
  throw missing_tensor(source_, name, tensors_);
}

void write_safetensors(const std::string& path, std::span<const TensorView> tensors, const Metadata& metadata,
                       const LoadTensor& load) {
  const std::string header = header_bytes(tensors, metadata, bool(load));
  OutputFile out(path);
  out.write(header);
  for (size_t i = 0; i < tensors.size(); ++i) out.write(bytes_to_write(tensors, i, load));
  out.finish();
}

std::string safetensors_bytes(std::span<const TensorView> tensors, const Metadata& metadata) {
  std::string out = header_bytes(tensors, metadata, false);
  for (const TensorView& t : tensors) out.append(as_text(t.bytes));
  return out;
}

}  // namespace rlx::io
