// A folder of its own for a test that writes files; gone when the test ends.
#pragma once

#include <stdlib.h>

#include <filesystem>
#include <string>

namespace rlx::test {

class Scratch {
 public:
  Scratch() {
    std::string name = (std::filesystem::temp_directory_path() / "rlx-test-XXXXXX").string();
    root_ = ::mkdtemp(name.data());
  }
  ~Scratch() {
    std::error_code ignored;
    std::filesystem::remove_all(root_, ignored);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  std::string path(const std::string& name = {}) const { return name.empty() ? root_ : root_ + "/" + name; }

 private:
  std::string root_;
};

}  // namespace rlx::test
