// onnx_runner DIR [--device NAME] [--passed]: runs a folder of ONNX models with their data; each failure with its class.
// onnx_runner --samples DIR: writes the samples of all operators as such a folder.
#include <cstdio>
#include <filesystem>
#include <string_view>

#include "rlx/base/error.h"
#include "tests/onnx/runner/case.h"

int main(int argc, char** argv) {
  using namespace rlx::onnx_cases;
  std::string folder, device = "cpu";
  bool show_passed = false, samples = false, wrong = argc < 2;
  int seconds = 120;
  for (int i = 1; i < argc; ++i) {
    const std::string_view arg = argv[i];
    if (arg == "--passed") {
      show_passed = true;
    } else if (arg == "--samples") {
      samples = true;
    } else if (arg == "--device" && i + 1 < argc) {
      device = argv[++i];
    } else if (folder.empty() && !arg.starts_with("--")) {
      folder = arg;
    } else {
      wrong = true;
    }
  }
  if (wrong || folder.empty()) {
    std::fprintf(stderr, "usage: onnx_runner DIR [--device NAME] [--passed] | --samples DIR\n");
    return 2;
  }
  if (!std::filesystem::is_directory(folder)) {
    std::fprintf(stderr, "onnx_runner: there is no folder '%s'\n", folder.c_str());
    return 2;
  }
  if (samples) return write_samples(folder), 0;
  int passed = 0, failed = 0;
  for (const std::string& path : find_cases(folder)) {
    const Result r = run_apart(path, device, seconds);
    const std::string name = std::filesystem::path(path).filename().string();
    if (r.outcome == Outcome::passed) {
      ++passed;
      if (show_passed) std::printf("%s: passed\n", name.c_str());
    } else {
      ++failed;
      std::printf("%s: %s: %s\n", name.c_str(), std::string(outcome_name(r.outcome)).c_str(),
                  r.message.c_str());
    }
    std::fflush(stdout);
  }
  std::printf("%d passed, %d failed\n", passed, failed);
  return failed == 0 ? 0 : 1;
}
