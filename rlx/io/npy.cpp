#include "rlx/io/npy.h"

#include <algorithm>
#include <charconv>
#include <filesystem>

#include "rlx/base/file.h"
#include "rlx/base/output_file.h"
#include "rlx/io/byte_reader.h"
#include "rlx/io/name_index.h"
#include "rlx/io/zip.h"

namespace rlx::io {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr uint64_t kMaxHeader = 1 << 16;
constexpr size_t kMaxRank = 64;  // NumPy's own limit
constexpr size_t kDataAlignment = 64;

struct TypeCode {
  std::string_view code;  // after the byte-order sign
  StorageType type;
};

const TypeCode kCodes[] = {
    {"b1", StorageType::of(DType::bool_)},
    {"u1", StorageType::of(DType::u8)},
    {"i1", StorageType::of(DType::i8)},
    {"i2", StorageType::of(DType::i16)},
    {"i4", StorageType::of(DType::i32)},
    {"i8", StorageType::of(DType::i64)},
    {"u4", StorageType::of(DType::u32)},
    {"f2", StorageType::of(DType::f16)},
    {"f4", StorageType::of(DType::f32)},
    {"f8", StorageType::of(DType::f64)},
    {"c8", StorageType::of(DType::c64)},
    {"V2", StorageType::of(DType::bf16)},
    {"u2", {"u16", 1, 2}},
    {"u8", {"u64", 1, 8}},
    {"c16", {"c128", 1, 16}},
};

// Written as a structure of one field called like the dtype.
constexpr DType kNamedOnly[] = {DType::bf16, DType::f8e4m3, DType::f8e5m2};

struct Header {
  StorageType type;
  bool swapped = false, fortran = false;
  std::vector<int64_t> dims;
};

// Reads the Python literal of the header: only the forms NumPy writes.
class HeaderParser {
 public:
  HeaderParser(std::string_view text, const std::string& source) : text_(text), source_(source) {}

  Header parse() {
    Header h;
    bool descr = false, order = false, shape = false;
    expect('{');
    while (!accept('}')) {
      const std::string_view key = string();
      expect(':');
      if (key == "descr" && !descr) {
        parse_descr(h), descr = true;
      } else if (key == "fortran_order" && !order) {
        h.fortran = boolean(), order = true;
      } else if (key == "shape" && !shape) {
        h.dims = tuple(), shape = true;
      } else {
        throw fail("the key '", key, "' is unknown or repeated");
      }
      if (!accept(',')) {
        expect('}');
        break;
      }
    }
    skip_space();
    if (at_ != text_.size()) throw fail("text follows the dictionary");
    if (!descr || !order || !shape) throw fail("descr, fortran_order and shape are needed");
    return h;
  }

 private:
  template <class... Args>
  Error fail(const Args&... what) const {
    return invalid(source_, ": header character ", at_, ": ", what...);
  }
  void skip_space() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t')) ++at_;
  }
  bool accept(char c) {
    skip_space();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  void expect(char c) {
    if (!accept(c)) throw fail("expected '", c, "'");
  }
  std::string_view string() {
    skip_space();
    const char quote = at_ < text_.size() ? text_[at_] : '\0';
    if (quote != '\'' && quote != '"') throw fail("expected a string");
    const size_t end = text_.find(quote, at_ + 1);
    if (end == text_.npos) throw fail("the string has no end");
    const std::string_view out = text_.substr(at_ + 1, end - at_ - 1);
    if (out.find('\\') != out.npos) throw fail("escapes are not expected");
    at_ = end + 1;
    return out;
  }
  bool boolean() {
    skip_space();
    for (const std::string_view word : {"True", "False"}) {
      if (!text_.substr(at_).starts_with(word)) continue;
      at_ += word.size();
      return word == "True";
    }
    throw fail("expected True or False");
  }
  std::vector<int64_t> tuple() {
    std::vector<int64_t> out;
    expect('(');
    while (!accept(')')) {
      skip_space();
      int64_t value = 0;
      const auto [end, error] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), value);
      if (error != std::errc() || value < 0) throw fail("expected an extent, a whole number below 2^63");
      at_ = size_t(end - text_.data());
      if (at_ < text_.size() && text_[at_] == 'L') ++at_;  // written by Python 2
      out.push_back(value);
      if (out.size() > kMaxRank) throw fail("more than ", kMaxRank, " dimensions");
      if (!accept(',')) {
        expect(')');
        break;
      }
    }
    return out;
  }
  void parse_code(std::string_view code, Header& h) {
    const size_t start = at_;
    const char order = code.empty() ? '\0' : code[0];
    if (order == '<' || order == '>' || order == '|' || order == '=') {
      for (const TypeCode& row : kCodes) {
        if (row.code != code.substr(1)) continue;
        h.type = row.type;
        h.swapped = order == '>';
        return;
      }
    }
    at_ = start;
    throw fail("dtype '", code, "' is not read; bool, integers, f2, f4, f8, c8 and c16 are");
  }
  void parse_descr(Header& h) {
    if (!accept('[')) return parse_code(string(), h);
    expect('(');
    const std::string_view name = string();
    expect(',');
    parse_code(string(), h);
    expect(')');
    accept(',');
    expect(']');
    for (const DType dtype : kNamedOnly) {
      if (dtype_name(dtype) != name || int(dtype_size(dtype)) != h.type.bytes) continue;
      h.type = StorageType::of(dtype);
      return;
    }
    throw fail("the structure with field '", name,
               "' is not read; one field called bf16, f8e4m3 or f8e5m2 is");
  }

  std::string_view text_;
  const std::string& source_;
  size_t at_ = 0;
};

// Elements from first-index-fastest to last-index-fastest.
void to_row_major(std::span<const std::byte> in, std::byte* out, const std::vector<int64_t>& dims,
                  size_t item) {
  std::vector<int64_t> index(dims.size(), 0), stride(dims.size(), 1);
  for (size_t i = 1; i < dims.size(); ++i) stride[i] = stride[i - 1] * dims[i - 1];
  const size_t count = in.size() / item;
  int64_t from = 0;
  for (size_t n = 0; n < count; ++n) {
    std::memcpy(out + n * item, in.data() + size_t(from) * item, item);
    for (size_t d = dims.size(); d-- > 0;) {
      from += stride[d];
      if (++index[d] < dims[d]) break;
      from -= stride[d] * dims[d];
      index[d] = 0;
    }
  }
}

std::string header_bytes(const TensorView& t, bool loaded_later = false) {
  const auto refuse = [&](const auto&... what) {
    return invalid("npy write: tensor '", t.name, "' ", what...);
  };
  std::string descr;
  if (t.type.dtype &&
      std::find(std::begin(kNamedOnly), std::end(kNamedOnly), *t.type.dtype) != std::end(kNamedOnly)) {
    descr = cat("[('", t.type.name, "', '", t.type.bytes == 2 ? "<u2" : "|u1", "')]");
  } else {
    for (const TypeCode& row : kCodes) {
      if (row.type == t.type) descr = cat("'", t.type.bytes == 1 ? "|" : "<", row.code, "'");
    }
  }
  if (descr.empty()) throw refuse("has type ", t.type.name, ", which .npy cannot hold; decode it first");
  written_bytes(t, loaded_later, "npy write");
  if (t.dims.size() > kMaxRank) throw refuse("has ", t.dims.size(), " dimensions; at most ", kMaxRank);

  std::string text = cat("{'descr': ", descr, ", 'fortran_order': False, 'shape': (", join(t.dims),
                         t.dims.size() == 1 ? ",), }" : "), }");
  const size_t prefix = kMagic.size() + 4,
               whole = (prefix + text.size() + kDataAlignment) / kDataAlignment * kDataAlignment;
  text.resize(whole - prefix - 1, ' ');
  text += '\n';
  std::string out(kMagic);
  out += '\x01';
  out += '\x00';
  out += char(text.size() & 255);
  out += char(text.size() >> 8);
  return out + text;
}

}  // namespace

bool npy_can_hold(const StorageType& type) {
  return type.dtype.has_value() || type.name == "u16" || type.name == "u64" || type.name == "c128";
}

namespace {

// The header, and `in` after it. `size` is that of the whole file, of which `in` may have the start only.
Header read_header(ByteReader& in, uint64_t size) {
  const std::string source(in.source());
  if (as_text(in.take(kMagic.size(), "magic")) != kMagic)
    throw invalid(source, ": does not begin with \\x93NUMPY");
  const uint8_t major = in.read<uint8_t>("version"), minor = in.read<uint8_t>("version");
  if (major < 1 || major > 3 || minor != 0) {
    throw invalid(source, ": version ", major, ".", minor, " at offset 6 is unknown; 1.0 to 3.0 are read");
  }
  const uint64_t length =
      major == 1 ? in.read<uint16_t>("header length") : in.read<uint32_t>("header length");
  if (length > kMaxHeader) throw in.fail("header length", length, " is above the limit of ", kMaxHeader);
  const Header header = HeaderParser(as_text(in.take(length, "header")), source).parse();
  const auto bytes = checked_bytes(header.type, header.dims);
  if (!bytes || uint64_t(*bytes) != size - in.offset()) {
    throw in.fail("data", TensorView{"", header.type, header.dims, {}, {}, {}}, " takes ",
                  bytes ? cat(*bytes) : "too many", " bytes, the file has ", size - in.offset());
  }
  return header;
}

}  // namespace

TensorView parse_npy(std::span<const std::byte> bytes, std::shared_ptr<const void> owner,
                     std::string_view name) {
  ByteReader in(bytes, cat("npy '", name, "'"));
  const Header header = read_header(in, bytes.size());
  TensorView t{std::string(name), header.type, header.dims, {}, std::move(owner), {}};
  t.bytes = in.take(in.remaining(), "data");
  const size_t item = size_t(header.type.bytes);
  const bool reorder = header.fortran && header.dims.size() > 1;
  if (!(header.swapped && item > 1) && !reorder) return t;

  const auto buffer = std::make_shared_for_overwrite<std::byte[]>(std::max<size_t>(t.bytes.size(), 1));
  if (reorder) {
    to_row_major(t.bytes, buffer.get(), header.dims, item);
  } else {
    std::copy(t.bytes.begin(), t.bytes.end(), buffer.get());
  }
  if (header.swapped) {
    const size_t part =
        is_complex(header.type.dtype.value_or(DType::u8)) || header.type.name == "c128" ? item / 2 : item;
    for (size_t i = 0; i < t.bytes.size(); i += part) std::reverse(buffer.get() + i, buffer.get() + i + part);
  }
  t.bytes = {buffer.get(), t.bytes.size()};
  t.owner = buffer;
  return t;
}

TensorView read_npy(const std::string& path) {
  const MappedFile file = MappedFile::open(path);
  TensorView t = parse_npy(file.bytes(), file.owner(), path);
  t.name = std::filesystem::path(path).stem().string();
  return t;
}

void write_npy(const std::string& path, const TensorView& t) {
  const std::string header = header_bytes(t);
  OutputFile out(path);
  out.write(header);
  out.write(t.bytes);
  out.finish();
}

namespace {

Error over_budget(const std::string& source, const ZipEntry& entry, uint64_t before, uint64_t budget) {
  return invalid(source, ": entry '", entry.name, "' inflates to ", entry.size, " bytes",
                 before > 0 ? cat(" after ", before, " of others") : "", "; at most ", budget,
                 " are allowed for this file (1 GiB, or 32 times its size)");
}

// The array of an entry by its header alone; its bytes are made when somebody asks for them.
TensorView list_array(const ZipEntry& entry, const std::shared_ptr<const void>& owner,
                      const std::string& source, const std::string& name, uint64_t budget) {
  const OwnedBytes start = unzip_start(entry, kMagic.size() + 6 + kMaxHeader, owner, source);
  ByteReader in(start.bytes, cat("npy '", name, "'"));
  const Header header = read_header(in, entry.size);
  TensorView t{name, header.type, header.dims, {}, nullptr, {}};
  t.unpack = [entry, owner, source, name, budget] {
    if (entry.size > budget) throw over_budget(source, entry, 0, budget);
    OwnedBytes content = unzip(entry, owner, source);
    TensorView array = parse_npy(content.bytes, std::move(content.owner), name);
    return OwnedBytes{array.bytes, std::move(array.owner)};
  };
  return t;
}

std::vector<TensorView> read_arrays(std::span<const std::byte> bytes,
                                    const std::shared_ptr<const void>& owner, std::string_view name,
                                    bool keep_packed) {
  const std::string source = cat("npz '", name, "'");
  const uint64_t budget = inflation_budget(bytes.size());
  std::vector<TensorView> out;
  uint64_t inflated = 0;
  for (const ZipEntry& entry : read_zip(bytes, source)) {
    if (!entry.name.ends_with(".npy") || entry.name.size() == 4) {
      throw invalid(source, ": entry '", entry.name, "' is not called NAME.npy");
    }
    const std::string full = cat(name, "/", entry.name);
    if (entry.deflated && keep_packed) {
      out.push_back(list_array(entry, owner, source, full, budget));
    } else {
      if (entry.deflated && entry.size > budget - inflated)
        throw over_budget(source, entry, inflated, budget);
      inflated += entry.deflated ? entry.size : 0;
      OwnedBytes content = unzip(entry, owner, source);
      out.push_back(parse_npy(content.bytes, std::move(content.owner), full));
    }
    out.back().name = entry.name.substr(0, entry.name.size() - 4);
  }
  NameIndex names;
  if (const auto twice = names.build(out.size(), [&](uint32_t i) { return std::string_view(out[i].name); })) {
    throw invalid(source, ": array '", *twice, "' occurs twice");
  }
  return out;
}

}  // namespace

std::vector<TensorView> parse_npz(std::span<const std::byte> bytes, std::shared_ptr<const void> owner,
                                  std::string_view name) {
  return read_arrays(bytes, owner, name, false);
}

std::vector<TensorView> list_npz(std::span<const std::byte> bytes, std::shared_ptr<const void> owner,
                                 std::string_view name) {
  return read_arrays(bytes, owner, name, true);
}

std::vector<TensorView> read_npz(const std::string& path) {
  const MappedFile file = MappedFile::open(path);
  return parse_npz(file.bytes(), file.owner(), path);
}

void write_npz(const std::string& path, std::span<const TensorView> tensors, bool deflate,
               const LoadTensor& load) {
  NameIndex names;
  if (const auto twice =
          names.build(tensors.size(), [&](uint32_t i) { return std::string_view(tensors[i].name); })) {
    throw invalid("npz write: tensor '", *twice, "' was given twice");
  }
  std::vector<std::string> headers;
  for (const TensorView& t : tensors) {
    if (t.name.empty()) throw invalid("npz write: a tensor has no name");
    headers.push_back(header_bytes(t, bool(load)));
  }
  ZipWriter zip(path);
  for (size_t i = 0; i < tensors.size(); ++i) {
    zip.add(tensors[i].name + ".npy", std::as_bytes(std::span(headers[i])), bytes_to_write(tensors, i, load),
            deflate);
  }
  zip.finish();
}

}  // namespace rlx::io
