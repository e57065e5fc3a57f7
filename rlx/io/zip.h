// The part of ZIP that .npz files use: stored and deflated entries, also beyond 4 GiB (ZIP64).
//
//   local header | data | ... | central directory: one record an entry | end record
//
// The central directory is what counts; local headers must agree with it about name and place.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "rlx/base/output_file.h"

namespace rlx::io {

struct ZipEntry {
  std::string name;
  bool deflated = false;
  uint32_t crc = 0;
  uint64_t size = 0;                   // uncompressed
  std::span<const std::byte> content;  // as it lies in the file
};

/// Lists the entries; everything is checked against the file, nothing is decompressed.
std::vector<ZipEntry> read_zip(std::span<const std::byte> bytes, const std::string& source);

struct ZipContent {
  std::span<const std::byte> bytes;
  std::shared_ptr<const void> owner;
};
/// The bytes of an entry: a view of the file when stored, decompressed otherwise; the checksum is verified.
ZipContent unzip(const ZipEntry&, const std::shared_ptr<const void>& file_owner, const std::string& source);

/// Writes entries one after the other with a fixed date, so that equal content gives equal bytes.
class ZipWriter {
 public:
  explicit ZipWriter(const std::string& path) : out_(path) {}

  /// The content is given in two pieces so that a header need not be glued to a tensor.
  void add(std::string_view name, std::span<const std::byte> head, std::span<const std::byte> body,
           bool deflate);
  void finish();

 private:
  OutputFile out_;
  std::string directory_;
  uint64_t count_ = 0;
};

}  // namespace rlx::io
