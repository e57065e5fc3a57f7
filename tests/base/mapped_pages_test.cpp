// Pages of mapped files that are given back, and memory that must not be.
#include "rlx/base/mapped_pages.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <vector>

#include "rlx/base/file.h"
#include "tests/support/scratch.h"

namespace rlx {
namespace {

constexpr size_t kSize = size_t(16) << 20;

// Pages of files in the memory of this process.
size_t file_bytes() {
  std::ifstream in("/proc/self/statm");
  size_t size = 0, resident = 0, shared = 0;
  in >> size >> resident >> shared;
  return shared * size_t(::sysconf(_SC_PAGESIZE));
}

std::string numbers() {
  std::string text(kSize, 0);
  for (size_t i = 0; i < kSize; ++i) text[i] = char(i * 31 + i / 4096);
  return text;
}

TEST(MappedPages, LeaveTheProcessAndComeBack) {
  const test::Scratch scratch;
  const std::string text = numbers();
  write_file(scratch.path("numbers"), text);
  const MappedFile file = MappedFile::open(scratch.path("numbers"));
  touch_mapped(file.bytes());
  const size_t before = file_bytes();
  release_mapped(file.bytes().subspan(100, kSize - 200));
  EXPECT_LT(file_bytes(), before - kSize * 3 / 4);
  EXPECT_EQ(file.text(), text);
}

TEST(MappedPages, OtherMemoryKeepsWhatItHolds) {
  const std::string text = numbers(), copy = text;
  release_mapped(std::as_bytes(std::span(text.data(), text.size())));
  EXPECT_EQ(text, copy);
  release_mapped({});
}

}  // namespace
}  // namespace rlx
