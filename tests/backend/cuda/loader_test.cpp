// What a machine without a GPU says, and the cache on disk.
#include <gtest/gtest.h>

#include <filesystem>

#include "rlx/backend/cuda/compile/cubin_cache.h"
#include "rlx/backend/cuda/device.h"
#include "rlx/backend/cuda/driver/library.h"
#include "rlx/backend/cuda/fault.h"
#include "rlx/base/file.h"
#include "rlx/runtime/devices.h"
#include "tests/support/scratch.h"

namespace rlx::cuda {
namespace {

TEST(Loader, names_the_library_that_is_missing) {
  const Library library({"libno_such_library_of_rlx.so.7", "libnor_this.so"});
  EXPECT_FALSE(library.found());
  EXPECT_NE(library.reason().find("libno_such_library_of_rlx.so.7"), std::string::npos);
  EXPECT_EQ(library.symbol("anything"), nullptr);
}

TEST(Loader, says_that_there_is_no_device_and_why) {
  const std::string why = device_problem();
  if (why.empty()) GTEST_SKIP() << "there is a device";
  EXPECT_TRUE(why.starts_with("cuda: no CUDA device: ")) << why;
  try {
    device_named("cuda");
    FAIL() << "no error";
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::environment);
    EXPECT_EQ(e.message(), why);
  }
}

TEST(Cache, keeps_what_was_written_and_nothing_that_was_changed) {
  const std::string folder = (std::filesystem::temp_directory_path() / "rlx_cubin_cache_test").string();
  std::filesystem::remove_all(folder);
  const std::string path = folder + "/a.cubin";
  EXPECT_FALSE(read_cubin(path));
  write_cubin(path, "machine code");
  EXPECT_EQ(read_cubin(path), "machine code");
  std::string data = read_file(path);
  data[3] ^= 1;
  write_file(path, data);
  EXPECT_FALSE(read_cubin(path));
  write_file(path, "cut");
  EXPECT_FALSE(read_cubin(path));
  std::filesystem::remove_all(folder);
}

TEST(Cache, a_folder_that_refuses_keeps_nothing) {
  const test::Scratch scratch;
  write_file(scratch.path("file"), "no folder");
  const std::string path = scratch.path("file") + "/cuda/a.cubin";
  write_cubin(path, "machine code");
  EXPECT_FALSE(read_cubin(path));
}

TEST(Cache, tells_keys_apart) { EXPECT_NE(cubin_path("sm_80 text"), cubin_path("sm_90 text")); }

TEST(Fault, is_told_with_its_element) {
  const uint64_t number = new_fault("gather: element % of indices is out of range");
  EXPECT_EQ(fault_text((number << 40) + 17), "gather: element 17 of indices is out of range");
  EXPECT_EQ(new_fault("gather: element % of indices is out of range"), number);
}

}  // namespace
}  // namespace rlx::cuda
