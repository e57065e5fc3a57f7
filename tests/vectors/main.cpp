// vectors DIR [--device NAME] [--values]: runs a folder of operator vectors through the builders on a device.
#include <cstdio>
#include <filesystem>
#include <string_view>

#include "tests/vectors/case.h"

int main(int argc, char** argv) {
  std::string folder, device = "ref";
  bool gradients = true, wrong = argc < 2;
  for (int i = 1; i < argc; ++i) {
    const std::string_view arg = argv[i];
    if (arg == "--values") {
      gradients = false;
    } else if (arg == "--device" && i + 1 < argc) {
      device = argv[++i];
    } else if (folder.empty() && !arg.starts_with("--")) {
      folder = arg;
    } else {
      wrong = true;
    }
  }
  if (wrong || folder.empty()) {
    std::fprintf(stderr, "usage: vectors DIR [--device NAME] [--values]\n");
    return 2;
  }
  if (!std::filesystem::is_directory(folder)) {
    std::fprintf(stderr, "vectors: there is no folder '%s'\n", folder.c_str());
    return 2;
  }
  const auto outcome = rlx::vectors::run_folder(folder, device, gradients);
  std::printf("%s%d passed, %d failed\n", outcome.failures.c_str(), outcome.passed, outcome.failed);
  return outcome.failed == 0 ? 0 : 1;
}
