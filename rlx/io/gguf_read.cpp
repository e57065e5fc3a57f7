// Reading GGUF. Every count and length is compared with the bytes that are left before it is used, so
// memory stays proportional to the file whatever its header claims.
#include <algorithm>
#include <bit>
#include <charconv>
#include <numeric>

#include "rlx/base/utf8.h"
#include "rlx/io/gguf.h"
#include "rlx/io/gguf_layout.h"

namespace rlx::io {
namespace detail {
namespace {

GgufType checked_type(ByteReader& in, std::string_view field) {
  const uint32_t type = in.read<uint32_t>(field);
  if (type >= kGgufTypeCount) {
    throw in.fail(field, "type number ", type, " is unknown; the format has 0 to ", kGgufTypeCount - 1);
  }
  return GgufType(type);
}

}  // namespace

std::span<const std::byte> take_gguf_value(ByteReader& in, GgufType type, bool wide, int nesting) {
  const size_t start = in.offset();
  const auto since_start = [&] {
    const size_t end = in.offset();
    in.seek(start);
    return in.take(end - start, "value");
  };
  if (type == GgufType::bool_) {
    const uint8_t value = in.read<uint8_t>("bool");
    if (value > 1) throw in.fail("bool", "value ", value, "; 0 or 1 expected");
    return since_start();
  }
  if (const size_t size = gguf_scalar_size(type)) return in.take(size, gguf_type_name(type));
  if (type == GgufType::string) {
    in.take(read_gguf_size(in, wide, "string length"), "string");
    return since_start();
  }
  if (nesting >= kGgufMaxNesting) throw in.fail("array", "nested deeper than ", kGgufMaxNesting, " levels");
  const GgufType element = checked_type(in, "array element type");
  const uint64_t count = read_gguf_size(in, wide, "array length");
  if (const size_t size = gguf_scalar_size(element); size && element != GgufType::bool_) {
    if (count > in.remaining() / size) {
      throw in.fail("array", count, " elements of ", gguf_type_name(element), " need more than the ",
                    in.remaining(), " bytes left");
    }
    in.take(count * size, "array");
    return since_start();
  }
  if (count > in.remaining())
    throw in.fail("array", count, " elements, only ", in.remaining(), " bytes are left");
  for (uint64_t i = 0; i < count; ++i) take_gguf_value(in, element, wide, nesting + 1);
  return since_start();
}

}  // namespace detail

namespace {

using detail::align_up;

std::string_view read_name(ByteReader& in, bool wide, std::string_view field) {
  const uint64_t length = detail::read_gguf_size(in, wide, field);
  if (length > detail::kGgufMaxName) {
    throw in.fail(field, "length ", length, " is above the limit of ", detail::kGgufMaxName);
  }
  const std::string_view name = as_text(in.take(length, field));
  if (name.empty()) throw in.fail(field, "is empty");
  if (!valid_utf8(name)) throw in.fail(field, "is not valid UTF-8");
  return name;
}

struct TensorPlace {
  uint64_t offset, bytes;
};

TensorView read_tensor_info(ByteReader& in, bool wide, TensorPlace& place) {
  TensorView t;
  const std::string_view name = read_name(in, wide, "tensor name");
  t.name = name;
  const auto field = [&](const char* what) { return cat("tensor '", name, "' ", what); };
  const uint32_t rank = in.read<uint32_t>(field("rank"));
  if (rank > detail::kGgufMaxRank) {
    throw in.fail(field("rank"), rank, " dimensions; at most ", detail::kGgufMaxRank);
  }
  t.dims.resize(rank);
  for (uint32_t i = 0; i < rank; ++i) {
    const uint64_t extent = detail::read_gguf_size(in, wide, field("extent"));
    if (extent > uint64_t(INT64_MAX)) throw in.fail(field("extent"), extent, " is too large");
    t.dims[rank - 1 - i] = int64_t(extent);
  }
  const uint32_t type = in.read<uint32_t>(field("type"));
  const quant::BlockFormat* format = quant::find_format(type);
  if (!format) throw in.fail(field("type"), "type number ", type, " is unknown");
  t.type = StorageType::of(*format);
  const auto bytes = checked_bytes(t.type, t.dims);
  if (!bytes) {
    throw in.fail(field("extents"), t, " has no whole size; rows must be a multiple of ", format->elements,
                  " elements and the total must fit 63 bits");
  }
  place = {in.read<uint64_t>(field("offset")), uint64_t(*bytes)};
  return t;
}

// Tensors must follow each other at aligned offsets without holes, in any order of the list, and reach the
// end of the file up to padding.
void place_tensors(std::vector<TensorView>& tensors, const std::vector<TensorPlace>& places,
                   std::span<const std::byte> data, uint64_t data_start, uint64_t alignment,
                   const std::string& source) {
  std::vector<uint32_t> order(tensors.size());
  std::iota(order.begin(), order.end(), 0u);
  std::stable_sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
    return std::pair(places[a].offset, places[a].bytes) < std::pair(places[b].offset, places[b].bytes);
  });
  uint64_t next = 0, end = 0;
  for (const uint32_t i : order) {
    const auto [offset, bytes] = places[i];
    const auto fail = [&](const auto&... what) {
      return invalid(source, ": tensor '", tensors[i].name, "' at data offset ", offset, ": ", what...);
    };
    if (offset % alignment != 0) throw fail("is not a multiple of the alignment ", alignment);
    if (offset > data.size() || bytes > data.size() - offset) {
      throw fail("its ", bytes, " bytes reach beyond the end of the file; the data section at ", data_start,
                 " has ", data.size());
    }
    if (offset < next) throw fail("overlaps the tensor before it, which ends at ", end);
    if (offset > next) throw fail("leaves a hole after the tensor before it, which ends at ", end);
    tensors[i].bytes = data.subspan(size_t(offset), size_t(bytes));
    end = offset + bytes;
    next = align_up(end, alignment);
  }
  if (data.size() > next) {
    throw invalid(source, ": ", data.size() - next,
                  " bytes follow the last tensor, which ends at file offset ", data_start + end);
  }
}

uint64_t read_alignment(const GgufFile& file, const std::string& source) {
  const GgufValue* value = file.find("general.alignment");
  if (!value) return 32;
  if (value->type() != GgufType::u32) {
    throw invalid(source, ": general.alignment has type ", gguf_type_name(value->type()), "; u32 expected");
  }
  const int64_t alignment = value->integer();
  if (!std::has_single_bit(uint64_t(alignment))) {
    throw invalid(source, ": general.alignment is ", alignment, "; a power of two expected");
  }
  return uint64_t(alignment);
}

int64_t split_number(const GgufFile& file, std::string_view key, int64_t otherwise) {
  const GgufValue* value = file.find(key);
  return value ? value->integer() : otherwise;
}

}  // namespace

GgufFile GgufFile::parse(std::span<const std::byte> bytes, std::shared_ptr<const void> owner,
                         std::string_view name) {
  GgufFile file;
  file.source_ = cat("gguf '", name, "'");
  ByteReader in(bytes, file.source_);
  if (as_text(in.take(4, "magic")) != detail::kGgufMagic) {
    throw invalid(file.source_, ": does not begin with 'GGUF'");
  }
  file.version_ = in.read<uint32_t>("version");
  if (file.version_ == 0 || file.version_ > 3) {
    const bool swapped = (file.version_ & 0xffff) == 0 && file.version_ != 0;
    throw invalid(file.source_, ": version ", file.version_, " at offset 4",
                  swapped ? " belongs to a big-endian file; only little-endian files are read"
                          : " is unknown; versions 1 to 3 are read");
  }
  const bool wide = file.version_ >= 2;
  const uint64_t tensor_count = detail::read_gguf_size(in, wide, "tensor count");
  const uint64_t entry_count = detail::read_gguf_size(in, wide, "metadata count");
  // The smallest tensor description and the smallest entry, each with a name of one byte.
  const uint64_t tensor_least = wide ? 8 + 1 + 4 + 4 + 8 : 4 + 1 + 4 + 4 + 8,
                 entry_least = (wide ? 8 : 4) + 1 + 4 + 1;
  if (tensor_count > in.remaining() / tensor_least) {
    throw in.fail("tensor count", tensor_count, " tensors do not fit the ", in.remaining(), " bytes left");
  }
  if (entry_count > in.remaining() / entry_least) {
    throw in.fail("metadata count", entry_count, " entries do not fit the ", in.remaining(), " bytes left");
  }

  file.entries_.reserve(size_t(entry_count));
  for (uint64_t i = 0; i < entry_count; ++i) {
    const std::string_view key = read_name(in, wide, "metadata key");
    const GgufType type = detail::checked_type(in, cat("type of '", key, "'"));
    file.entries_.push_back({key, GgufValue(type, detail::take_gguf_value(in, type, wide, 0), wide)});
  }
  const auto key_of = [&](uint32_t i) { return file.entries_[i].key; };
  if (const auto key = file.entry_index_.build(file.entries_.size(), key_of)) {
    throw invalid(file.source_, ": metadata key '", *key, "' occurs twice");
  }
  file.alignment_ = read_alignment(file, file.source_);

  file.tensors_.reserve(size_t(tensor_count));
  std::vector<TensorPlace> places(static_cast<size_t>(tensor_count));
  for (uint64_t i = 0; i < tensor_count; ++i) {
    file.tensors_.push_back(read_tensor_info(in, wide, places[i]));
    file.tensors_.back().owner = owner;
  }
  // A file without tensors may end before the padding.
  const uint64_t data_start = std::min<uint64_t>(align_up(in.offset(), file.alignment_), bytes.size());
  place_tensors(file.tensors_, places, bytes.subspan(size_t(data_start)), data_start, file.alignment_,
                file.source_);
  file.owners_.push_back(std::move(owner));
  file.index_tensors();
  return file;
}

GgufFile GgufFile::open(const Input& input) {
  GgufFile file = parse(input.bytes(), input.owner(), input.path());
  file.merge_splits(input.path());
  return file;
}

void GgufFile::index_tensors() {
  const auto name_of = [&](uint32_t i) { return std::string_view(tensors_[i].name); };
  if (const auto name = tensor_index_.build(tensors_.size(), name_of)) {
    throw invalid(source_, ": tensor '", *name, "' occurs twice");
  }
}

void GgufFile::merge_splits(const std::string& path) {
  const int64_t count = split_number(*this, "split.count", 1), number = split_number(*this, "split.no", 0);
  if (count <= 1) return;
  if (count > 99999) throw invalid(source_, ": split.count is ", count, "; at most 99999");
  if (number != 0) {
    throw invalid(source_, ": is part ", number + 1, " of ", count, " of a split model; open part 1");
  }
  const auto five = [](int64_t n) {
    std::string digits = std::to_string(n);
    return std::string(5 - digits.size(), '0') + digits;
  };
  const std::string suffix = cat("-00001-of-", five(count), ".gguf");
  if (!path.ends_with(suffix)) {
    throw invalid(source_, ": is part 1 of ", count, "; its name must end in ", suffix,
                  " to find the others");
  }
  const std::string stem = path.substr(0, path.size() - suffix.size());
  for (int64_t part = 2; part <= count; ++part) {
    const std::string name = cat(stem, "-", five(part), "-of-", five(count), ".gguf");
    const MappedFile mapped = MappedFile::open(name);
    GgufFile other = parse(mapped.bytes(), mapped.owner(), name);
    if (split_number(other, "split.no", -1) != part - 1 || split_number(other, "split.count", -1) != count) {
      throw invalid(other.source_, ": split.no and split.count do not say part ", part, " of ", count);
    }
    for (TensorView& t : other.tensors_) tensors_.push_back(std::move(t));
    owners_.push_back(mapped.owner());
  }
  const int64_t expected = split_number(*this, "split.tensors.count", int64_t(tensors_.size()));
  if (expected != int64_t(tensors_.size())) {
    throw invalid(source_, ": split.tensors.count is ", expected, ", the parts hold ", tensors_.size());
  }
  index_tensors();
}

const GgufValue* GgufFile::find(std::string_view key) const {
  const auto at = entry_index_.find(key, [&](uint32_t i) { return entries_[i].key; });
  return at ? &entries_[*at].value : nullptr;
}

const TensorView* GgufFile::find_tensor(std::string_view name) const {
  const auto at = tensor_index_.find(name, [&](uint32_t i) { return std::string_view(tensors_[i].name); });
  return at ? &tensors_[*at] : nullptr;
}

const GgufValue& GgufFile::at(std::string_view key) const {
  if (const GgufValue* value = find(key)) return *value;
  throw invalid(source_, ": has no metadata key '", key, "'");
}

const TensorView& GgufFile::tensor(std::string_view name) const {
  if (const TensorView* t = find_tensor(name)) return *t;
  std::vector<std::string> names;
  for (const TensorView& t : tensors_) names.push_back(t.name);
  const std::string near = nearest_name(name, names);
  throw invalid(source_, ": has no tensor '", name, "'",
                near.empty() ? "" : cat("; did you mean '", near, "'"));
}

}  // namespace rlx::io
