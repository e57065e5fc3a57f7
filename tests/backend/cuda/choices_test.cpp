// On a GPU: steps that are done in the fastest of several ways. What a program needs is compiled together, then ways are measured. What the
// cache on disk keeps.
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>

#include "rlx/backend/cuda/compile/cubin_cache.h"
#include "rlx/backend/cuda/compile/timings.h"
#include "rlx/backend/cuda/driver/fastest.h"
#include "tests/backend/cuda/on_device.h"
#include "tests/support/scratch.h"

namespace rlx::cuda {
namespace {

/// A work that nobody has measured yet, in two ways.
class Work {
 public:
  explicit Work(const char* name)
      : key_(cat(name, " ", std::chrono::steady_clock::now().time_since_epoch().count())) {}

  int choose() {
    const auto ask = [&] {
      for (int way = 0; way < 2; ++way)
        kernels_[way] = device().functions().get(
            {"way", cat("// ", key_, "\nextern \"C\" __global__ void way(int* x) { *x = ", way, "; }")});
    };
    return fastest(*device().gpu(), key_, 2, Trials::warm, ask, [&](Stream_* stream, int way) {
      if (!kernels_[way]) ask();
      ++measured;
      backend::Block x(device().memory(), sizeof(int));
      (*kernels_[way])(stream, Grid{}, Grid{1}, 0, static_cast<void*>(x.get()));
      check(device().gpu()->use().StreamSynchronize(stream), "a way");
    });
  }

  int measured = 0;

 private:
  std::string key_;
  FunctionRef kernels_[2];
};

size_t compilations_of(size_t kernels) {
  size_t out = 0;
  for (const Timing& t : take_timings()) out += t.what == cat("all of ", kernels, " kernels");
  return out;
}

using ChoicesOnDevice = test::OnDevice;

TEST_F(ChoicesOnDevice, kernels_of_all_ways_are_compiled_together) {
  Work first("first"), second("second");
  device().functions().compile_waiting();
  take_timings();
  int made = 0;
  const auto make = [&]() -> std::shared_ptr<const backend::Executable> {
    ++made;
    first.choose();
    // The body of a loop, which is a program of its own.
    device().with_choices([&]() -> std::shared_ptr<const backend::Executable> {
      second.choose();
      return nullptr;
    });
    return nullptr;
  };
  device().with_choices(make);
  EXPECT_EQ(made, 2);
  EXPECT_EQ(compilations_of(4), 1u);
  EXPECT_GT(first.measured, 2);
  EXPECT_GT(second.measured, 2);
  device().with_choices(make);
  EXPECT_EQ(made, 3) << "all is known";
}

TEST_F(ChoicesOnDevice, work_outside_of_programs_is_measured_at_once) {
  Work work("alone");
  work.choose();
  EXPECT_GT(work.measured, 2);
}

// Whole, with the right hash, and no machine code of this GPU: it is compiled again, and that is kept.
using CacheOnDevice = test::OnDevice;
TEST_F(CacheOnDevice, what_the_driver_refuses_is_compiled_again) {
  const test::Scratch scratch;
  const char* const before = std::getenv("RLX_CACHE");
  const std::string kept = before ? before : "";
  setenv("RLX_CACHE", scratch.path().c_str(), 1);
  const Source source{"seven", "extern \"C\" __global__ void seven(int* x) { *x = 7; }"};
  const std::string& architecture = device().functions().architecture();
  const std::string good = compile(source, architecture);
  const auto files = std::filesystem::directory_iterator(scratch.path("cuda"));
  const std::string path = files->path().string();
  ASSERT_EQ(read_cubin(path), good);
  write_cubin(path, "whole, and no machine code");
  Functions functions(architecture, device().gpu());
  backend::Block x(device().memory(), sizeof(int));
  (*functions.get(source))(nullptr, Grid{}, Grid{1}, 0, static_cast<void*>(x.get()));
  int value = 0;
  device().memory().download(reinterpret_cast<std::byte*>(&value), x.get(), sizeof value);
  EXPECT_EQ(value, 7);
  EXPECT_EQ(read_cubin(path), good);
  before ? setenv("RLX_CACHE", kept.c_str(), 1) : unsetenv("RLX_CACHE");
}

}  // namespace
}  // namespace rlx::cuda
