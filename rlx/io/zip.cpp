#include "rlx/io/zip.h"

#include <zlib.h>

#include <algorithm>
#include <limits>

#include "rlx/base/file.h"
#include "rlx/base/utf8.h"
#include "rlx/io/byte_reader.h"

namespace rlx::io {
namespace {

constexpr uint32_t kLocal = 0x04034b50, kCentral = 0x02014b50, kEnd = 0x06054b50, kEnd64 = 0x06064b50,
                   kLocator64 = 0x07064b50;
constexpr size_t kEndSize = 22, kLocator64Size = 20, kEnd64Size = 56, kCentralLeast = 46;
constexpr uint16_t kStored = 0, kDeflated = 8, kZip64Field = 1;
constexpr uint16_t kEncrypted = 1, kUtf8Names = 1 << 11;
constexpr uint16_t kDate1980 = 1 << 5 | 1;  // 1 January 1980, the first date there is
constexpr uint32_t kMax32 = std::numeric_limits<uint32_t>::max();
// Deflate cannot shrink more than 1032 to 1: a match of 258 bytes takes two bits at least.
constexpr uint64_t kMaxRatio = 1032;

struct Directory {
  uint64_t count, size, offset;
};

Directory find_directory(std::span<const std::byte> bytes, const std::string& source) {
  ByteReader in(bytes, source);
  // The end record is last; only its own comment, at most 65535 bytes, may follow it.
  const size_t first = bytes.size() > kEndSize + 65535 ? bytes.size() - kEndSize - 65535 : 0;
  for (size_t at = bytes.size() >= kEndSize ? bytes.size() - kEndSize + 1 : 0; at-- > first;) {
    in.seek(at);
    if (in.read<uint32_t>("end record") != kEnd) continue;
    in.take(16, "end record");
    if (in.read<uint16_t>("end record") != in.remaining()) continue;
    in.seek(at + 4);
    const uint16_t disk = in.read<uint16_t>("disk"), first_disk = in.read<uint16_t>("disk");
    const uint16_t here = in.read<uint16_t>("entries"), count = in.read<uint16_t>("entries");
    Directory d{count, 0, 0};
    d.size = in.read<uint32_t>("directory size");
    d.offset = in.read<uint32_t>("directory offset");
    const bool zip64 = count == 0xffff || d.size == kMax32 || d.offset == kMax32;
    if (zip64 && at >= kLocator64Size) {
      in.seek(at - kLocator64Size);
      if (in.read<uint32_t>("zip64 locator") == kLocator64) {
        in.take(4, "zip64 locator");
        const uint64_t end64 = in.read<uint64_t>("zip64 locator");
        if (end64 > at - kLocator64Size || at - kLocator64Size - end64 < kEnd64Size) {
          throw in.fail("zip64 locator", "points to offset ", end64, ", where no zip64 end record fits");
        }
        in.seek(size_t(end64));
        if (in.read<uint32_t>("zip64 end record") != kEnd64)
          throw in.fail("zip64 end record", "signature missing");
        in.take(20, "zip64 end record");
        in.take(8, "zip64 end record");
        d.count = in.read<uint64_t>("zip64 entries");
        d.size = in.read<uint64_t>("zip64 directory size");
        d.offset = in.read<uint64_t>("zip64 directory offset");
      }
    } else if (disk != 0 || first_disk != 0 || here != count) {
      throw in.fail("end record", "is of an archive on several disks, which is not read");
    }
    if (d.offset > at || d.size > at - d.offset) {
      throw in.fail("central directory", d.size, " bytes at ", d.offset, " reach beyond the end record at ",
                    at);
    }
    if (d.count > d.size / kCentralLeast) {
      throw in.fail("central directory", d.count, " entries do not fit its ", d.size, " bytes");
    }
    return d;
  }
  throw invalid(source, ": has no zip end record; not an .npz file, or cut short");
}

// Replaces the fields that are at their 32-bit maximum by their 64-bit values.
void read_zip64_field(std::span<const std::byte> extra, const std::string& source, uint64_t& size,
                      uint64_t& packed, uint64_t& offset) {
  ByteReader in(extra, source);
  while (in.remaining() >= 4) {
    const uint16_t id = in.read<uint16_t>("extra field"), length = in.read<uint16_t>("extra field");
    ByteReader field(in.take(length, "extra field"), source);
    if (id != kZip64Field) continue;
    for (uint64_t* value : {&size, &packed, &offset}) {
      if (*value == kMax32) *value = field.read<uint64_t>("zip64 extra field");
    }
    return;
  }
}

std::span<const std::byte> locate(std::span<const std::byte> bytes, const std::string& source,
                                  const ZipEntry& entry, uint64_t offset, uint64_t packed, uint64_t limit) {
  if (offset > limit)
    throw invalid(source, ": entry '", entry.name, "' at offset ", offset, " lies beyond the data");
  ByteReader in(bytes.first(size_t(limit)), source);
  in.seek(size_t(offset));
  const std::string field = cat("local header of '", entry.name, "'");
  if (in.read<uint32_t>(field) != kLocal) throw in.fail(field, "signature missing");
  in.take(22, field);
  const uint16_t name_length = in.read<uint16_t>(field), extra_length = in.read<uint16_t>(field);
  if (as_text(in.take(name_length, field)) != entry.name) {
    throw in.fail(field, "gives another name than the central directory");
  }
  in.take(extra_length, field);
  return in.take(packed, cat("content of '", entry.name, "'"));
}

template <class T>
void put(std::string& out, T value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof(T));
}

uint32_t checksum(std::span<const std::byte> bytes, uint32_t crc = 0) {
  return uint32_t(crc32_z(crc, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

}  // namespace

std::vector<ZipEntry> read_zip(std::span<const std::byte> bytes, const std::string& source) {
  const Directory directory = find_directory(bytes, source);
  ByteReader in(bytes.first(size_t(directory.offset + directory.size)), source);
  in.seek(size_t(directory.offset));
  std::vector<ZipEntry> entries;
  entries.reserve(size_t(directory.count));
  std::vector<std::pair<uint64_t, uint64_t>> ranges;
  for (uint64_t i = 0; i < directory.count; ++i) {
    if (in.read<uint32_t>("central record") != kCentral) throw in.fail("central record", "signature missing");
    in.take(4, "central record");
    const uint16_t flags = in.read<uint16_t>("flags"), method = in.read<uint16_t>("method");
    in.take(4, "date");
    ZipEntry entry;
    entry.crc = in.read<uint32_t>("checksum");
    uint64_t packed = in.read<uint32_t>("compressed size");
    entry.size = in.read<uint32_t>("size");
    const uint16_t name_length = in.read<uint16_t>("name length"),
                   extra_length = in.read<uint16_t>("extra length"),
                   comment_length = in.read<uint16_t>("comment length");
    in.take(8, "attributes");
    uint64_t offset = in.read<uint32_t>("local offset");
    entry.name = as_text(in.take(name_length, "entry name"));
    if (!valid_utf8(entry.name)) throw in.fail("entry name", "is not valid UTF-8");
    read_zip64_field(in.take(extra_length, "extra field"), source, entry.size, packed, offset);
    in.take(comment_length, "comment");
    if (flags & kEncrypted) throw invalid(source, ": entry '", entry.name, "' is encrypted");
    if (method != kStored && method != kDeflated) {
      throw invalid(source, ": entry '", entry.name, "' uses compression method ", method,
                    "; stored or deflated expected");
    }
    entry.deflated = method == kDeflated;
    entry.content = locate(bytes, source, entry, offset, packed, directory.offset);
    if (!entry.deflated && packed != entry.size) {
      throw invalid(source, ": entry '", entry.name, "' is stored, but has sizes ", packed, " and ",
                    entry.size);
    }
    if (entry.deflated && entry.size / kMaxRatio > packed) {
      throw invalid(source, ": entry '", entry.name, "' claims ", entry.size, " bytes from ", packed,
                    ", more than deflate can give");
    }
    ranges.emplace_back(offset, uint64_t(entry.content.data() + entry.content.size() - bytes.data()));
    entries.push_back(std::move(entry));
  }
  if (in.remaining() != 0) throw in.fail("central directory", in.remaining(), " bytes are left over");
  // Entries that share bytes are how a small archive becomes a huge one.
  std::sort(ranges.begin(), ranges.end());
  for (size_t i = 1; i < ranges.size(); ++i) {
    if (ranges[i].first < ranges[i - 1].second) {
      throw invalid(source, ": the entries at offsets ", ranges[i - 1].first, " and ", ranges[i].first,
                    " overlap");
    }
  }
  return entries;
}

uint64_t inflation_budget(uint64_t archive_bytes) {
  constexpr uint64_t kAlways = uint64_t(1) << 30, kRatio = 32;
  return std::max(kAlways, archive_bytes > UINT64_MAX / kRatio ? UINT64_MAX : archive_bytes * kRatio);
}

namespace {

struct Inflated {
  uint64_t consumed = 0, produced = 0;
  int status = Z_OK;
};

// Inflates until the stream or the room ends. zlib counts in 32 bits: feed and drain in steps.
Inflated inflate_into(std::span<const std::byte> packed, std::span<std::byte> room) {
  z_stream stream{};
  if (inflateInit2(&stream, -MAX_WBITS) != Z_OK) throw environment_error("zip: zlib could not start");
  Inflated done;
  while (done.status == Z_OK && done.produced < room.size()) {
    const uint64_t in_step = std::min<uint64_t>(packed.size() - done.consumed, 1u << 30);
    const uint64_t out_step = std::min<uint64_t>(room.size() - done.produced, 1u << 30);
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(packed.data() + done.consumed));
    stream.avail_in = uInt(in_step);
    stream.next_out = reinterpret_cast<Bytef*>(room.data() + done.produced);
    stream.avail_out = uInt(out_step);
    done.status = inflate(&stream, Z_NO_FLUSH);
    done.consumed += in_step - stream.avail_in;
    done.produced += out_step - stream.avail_out;
  }
  inflateEnd(&stream);
  return done;
}

}  // namespace

OwnedBytes unzip(const ZipEntry& entry, const std::shared_ptr<const void>& file_owner,
                 const std::string& source) {
  OwnedBytes out{entry.content, file_owner};
  if (entry.deflated) {
    // One byte of room more than claimed shows an entry that is longer than it says.
    const auto buffer = std::make_shared_for_overwrite<std::byte[]>(size_t(entry.size) + 1);
    const Inflated done = inflate_into(entry.content, {buffer.get(), size_t(entry.size) + 1});
    if (done.status != Z_STREAM_END || done.produced != entry.size || done.consumed != entry.content.size()) {
      throw invalid(source, ": entry '", entry.name, "' does not inflate to its ", entry.size, " bytes");
    }
    out = {std::span<const std::byte>(buffer.get(), size_t(entry.size)), buffer};
  }
  if (checksum(out.bytes) != entry.crc)
    throw invalid(source, ": entry '", entry.name, "' fails its checksum");
  return out;
}

OwnedBytes unzip_start(const ZipEntry& entry, uint64_t limit, const std::shared_ptr<const void>& file_owner,
                       const std::string& source) {
  const size_t size = size_t(std::min(limit, entry.size));
  if (!entry.deflated) return {entry.content.first(size), file_owner};
  const auto buffer = std::make_shared_for_overwrite<std::byte[]>(std::max<size_t>(size, 1));
  const Inflated done = inflate_into(entry.content, {buffer.get(), size});
  if (done.produced != size)
    throw invalid(source, ": entry '", entry.name, "' does not inflate to its ", entry.size, " bytes");
  return {std::span<const std::byte>(buffer.get(), size), buffer};
}

namespace {

std::string deflated(std::span<const std::byte> head, std::span<const std::byte> body) {
  z_stream stream{};
  if (deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY) != Z_OK)
    throw environment_error("zip: zlib could not start");
  std::string out;
  char chunk[1 << 15];
  const auto feed = [&](std::span<const std::byte> piece, bool last) {
    do {
      const size_t step = std::min<size_t>(piece.size(), 1u << 30);
      stream.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(piece.data()));
      stream.avail_in = uInt(step);
      piece = piece.subspan(step);
      do {
        stream.next_out = reinterpret_cast<Bytef*>(chunk);
        stream.avail_out = sizeof chunk;
        deflate(&stream, last && piece.empty() ? Z_FINISH : Z_NO_FLUSH);
        out.append(chunk, sizeof chunk - stream.avail_out);
      } while (stream.avail_out == 0);
    } while (!piece.empty());
  };
  feed(head, false);
  feed(body, true);
  deflateEnd(&stream);
  check_mapped(body);
  return out;
}

}  // namespace

void ZipWriter::add(std::string_view name, std::span<const std::byte> head, std::span<const std::byte> body,
                    bool deflate_it) {
  if (name.empty() || name.size() > 65535)
    throw invalid("zip: entry name of ", name.size(), " bytes; 1 to 65535");
  if (!valid_utf8(name)) throw invalid("zip: an entry name is not valid UTF-8");
  const uint64_t size = head.size() + body.size();
  const uint32_t crc = checksum(body, checksum(head));
  const std::string packed = deflate_it ? deflated(head, body) : std::string();
  const uint64_t packed_size = deflate_it ? packed.size() : size, offset = out_.written();
  const bool wide_sizes = size >= kMax32 || packed_size >= kMax32, wide = wide_sizes || offset >= kMax32;

  // The fields a local header and a central record have in common.
  const auto common = [&](std::string& to, uint16_t extra_length) {
    put(to, uint16_t(wide ? 45 : 20));
    put(to, kUtf8Names);
    put(to, deflate_it ? kDeflated : kStored);
    put(to, uint16_t(0));
    put(to, kDate1980);
    put(to, crc);
    put(to, wide_sizes ? kMax32 : uint32_t(packed_size));
    put(to, wide_sizes ? kMax32 : uint32_t(size));
    put(to, uint16_t(name.size()));
    put(to, extra_length);
  };
  std::string local;
  put(local, kLocal);
  common(local, wide_sizes ? 20 : 0);
  local.append(name);
  if (wide_sizes)
    put(local, kZip64Field), put(local, uint16_t(16)), put(local, size), put(local, packed_size);
  out_.write(local);
  if (deflate_it) {
    out_.write(packed);
  } else {
    out_.write(head), out_.write(body);
  }

  std::string extra;
  if (wide_sizes) put(extra, size), put(extra, packed_size);
  if (offset >= kMax32) put(extra, offset);
  put(directory_, kCentral);
  put(directory_, uint16_t(wide ? 45 : 20));
  common(directory_, uint16_t(extra.empty() ? 0 : extra.size() + 4));
  put(directory_, uint16_t(0)), put(directory_, uint16_t(0)), put(directory_, uint16_t(0));
  put(directory_, uint32_t(0));
  put(directory_, offset >= kMax32 ? kMax32 : uint32_t(offset));
  directory_.append(name);
  if (!extra.empty())
    put(directory_, kZip64Field), put(directory_, uint16_t(extra.size())), directory_ += extra;
  ++count_;
}

void ZipWriter::finish() {
  const uint64_t offset = out_.written();
  out_.write(directory_);
  std::string end;
  const bool wide = count_ >= 0xffff || offset >= kMax32 || directory_.size() >= kMax32;
  if (wide) {
    const uint64_t end64 = out_.written();
    put(end, kEnd64), put(end, uint64_t(kEnd64Size - 12)), put(end, uint16_t(45)), put(end, uint16_t(45));
    put(end, uint32_t(0)), put(end, uint32_t(0)), put(end, count_), put(end, count_);
    put(end, uint64_t(directory_.size())), put(end, offset);
    put(end, kLocator64), put(end, uint32_t(0)), put(end, end64), put(end, uint32_t(1));
  }
  put(end, kEnd), put(end, uint16_t(0)), put(end, uint16_t(0));
  put(end, uint16_t(wide ? 0xffff : count_)), put(end, uint16_t(wide ? 0xffff : count_));
  put(end, wide ? kMax32 : uint32_t(directory_.size())), put(end, wide ? kMax32 : uint32_t(offset));
  put(end, uint16_t(0));
  out_.write(end);
  out_.finish();
}

}  // namespace rlx::io
