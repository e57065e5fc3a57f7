// A file far larger than memory opens without touching its data.
#include <malloc.h>

#include <filesystem>
#include <fstream>

#include "rlx/io/gguf.h"
#include "tests/io/gguf_bytes.h"
#include "tests/support/scratch.h"

#include <gtest/gtest.h>

namespace rlx::io {
namespace {

TEST(Gguf, opening_100_gb_takes_less_than_2_mb) {
  constexpr uint64_t kCount = 1000, kBytes = 100'000'000;
  GgufBytes b(3, kCount, 0);
  for (uint64_t i = 0; i < kCount; ++i) b.tensor(cat("blk.", i, ".weight"), {5000, 5000}, 0, i * kBytes);
  b.pad();
  const test::Scratch folder;
  const std::string path = folder.path("large.gguf");
  std::ofstream(path, std::ios::binary).write(b.bytes.data(), std::streamsize(b.bytes.size()));
  std::error_code error;
  std::filesystem::resize_file(path, b.bytes.size() + kCount * kBytes, error);
  if (error) GTEST_SKIP() << "no sparse file of 100 GB here: " << error.message();

  const auto resident_pages = [] {
    long all = 0, resident = 0;
    std::ifstream("/proc/self/statm") >> all >> resident;
    return resident;
  };
  const size_t heap = mallinfo2().uordblks;
  const long pages = resident_pages();
  const GgufFile file = GgufFile::open(path);
  EXPECT_EQ(file.tensors().size(), kCount);
  EXPECT_EQ(file.tensor("blk.999.weight").bytes.size(), kBytes);
  EXPECT_LT(mallinfo2().uordblks - heap, 2u << 20);
  EXPECT_LT((resident_pages() - pages) * 4096, 2 << 20);
}

}  // namespace
}  // namespace rlx::io
