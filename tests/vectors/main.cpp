// vectors DIR [--values]: runs a folder of operator vectors through the builders and the interpreter.
#include <cstdio>
#include <filesystem>
#include <string_view>

#include "tests/vectors/case.h"

int main(int argc, char** argv) {
  const bool values_only = argc == 3 && std::string_view(argv[2]) == "--values";
  if (argc < 2 || (argc == 3 && !values_only) || argc > 3) {
    std::fprintf(stderr, "usage: vectors DIR [--values]\n");
    return 2;
  }
  if (!std::filesystem::is_directory(argv[1])) {
    std::fprintf(stderr, "vectors: there is no folder '%s'\n", argv[1]);
    return 2;
  }
  const auto outcome = rlx::vectors::run_folder(argv[1], !values_only);
  std::printf("%s%d passed, %d failed\n", outcome.failures.c_str(), outcome.passed, outcome.failed);
  return outcome.failed == 0 ? 0 : 1;
}
