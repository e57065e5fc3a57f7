// Where the test data lies, and skipping with a clear message where it does not; the device of models.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "rlx/base/options.h"

namespace rlx::test {

/// Path of a file or folder in the test data; tests run from the root of the tree.
inline std::string data_path(const std::string& name) {
  return option("RLX_DATA").value_or("../shared/data") + "/" + name;
}

/// Where tests of models run them.
inline std::string test_device() { return option("RLX_TEST_DEVICE").value_or("cpu"); }

}  // namespace rlx::test

#define RLX_REQUIRE_DATA(name)                                \
  if (!std::filesystem::exists(::rlx::test::data_path(name))) \
  GTEST_SKIP() << "test data not found at " << ::rlx::test::data_path(name) << "; set RLX_DATA"
