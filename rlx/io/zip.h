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
#include "rlx/io/tensor_view.h"

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

/// What entries of an archive of `archive_bytes` may inflate to, one at a time or, where all are kept, together:
/// 1 GiB, or 32 times the archive if that is more. Weights hardly shrink; what shrinks a thousand times is a
/// bomb or mostly zeros. Stored entries are views and count nothing.
uint64_t inflation_budget(uint64_t archive_bytes);

/// The bytes of an entry: a view of the file when stored, decompressed otherwise; the checksum is verified.
OwnedBytes unzip(const ZipEntry&, const std::shared_ptr<const void>& file_owner, const std::string& source);
/// Its first bytes, at most `limit` of them; no checksum.
OwnedBytes unzip_start(const ZipEntry&, uint64_t limit, const std::shared_ptr<const void>& file_owner,
                       const std::string& source);

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
