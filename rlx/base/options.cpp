#include "rlx/base/options.h"

#include <charconv>
#include <cstdlib>

#include "rlx/base/error.h"

namespace rlx {
namespace {

constexpr OptionInfo kOptions[] = {
    {"RLX_THREADS", "all cores", "threads of the pool, the calling one included"},
    {"RLX_ISA", "best available", "highest instruction set to use: baseline, avx2, avx512, avx512vnni"},
    {"RLX_CACHE", "~/.cache/rlx", "folder of compiled kernels of a GPU; off: none are kept"},
    {"RLX_CUDA_PATH", "/usr/local/cuda/lib64:/usr/local/cuda-13.0/lib64:/opt/cuda/lib64",
     "folders of NVIDIA's libraries, separated by ':'"},
    {"RLX_CUDA_OVERLAP", "1",
     "0: a kernel of a GPU begins when the one before it has ended, not while it ends"},
    {"RLX_CUDA_CONDITIONS", "1", "0: the host decides branches and loops on a GPU, not what is recorded"},
    {"RLX_CUDA_JOIN", "1",
     "0: regions that do the same over other memory are launches of their own on a GPU"},
    {"RLX_CUDA_TF32", "0", "1: products of f32 on a GPU round their operands to 11 bits (tf32)"},
    {"RLX_CUDA_CHAIN", "where it gains", "1: all steps that may be recorded as one kernel are; 0: none is"},
    {"RLX_CUDA_MOVES", "1",
     "0: rotations and rows of caches behind products of few rows are kernels of their own on a GPU"},
    {"RLX_CUDA_TURNS", "where it gains",
     "1, 2, ..: products of many rows and the elements behind them are one kernel, cut in the best, second best .. way; 0: they are not"},
    {"RLX_CUDA_RUNS", "1",
     "0: products of 5 to 64 rows with large weights are cut into clusters alone; 2: into equal runs of blocks that stay alone; 1: whichever was measured to be faster"},
    {"RLX_CUDA_PANELS", "1",
     "0: systems of equations are eliminated panel by panel in the memory of a GPU, whatever their size"},
    {"RLX_CUDA_WAIT", "0", "1: every step is waited for, so that an error of a GPU names its step"},
    {"RLX_CUDA_UNTRIED", "none",
     "kernels of a GPU that may be chosen though no GPU has run them, by name; all: every one"},
    {"RLX_DATA", "../shared/data", "folder of the test data; used by tests only"},
    {"RLX_TEST_DEVICE", "cpu", "where the tests of models run them; used by tests only"},
};

}  // namespace

std::span<const OptionInfo> option_table() { return kOptions; }

std::optional<std::string> option(std::string_view name) {
  bool listed = false;
  for (const OptionInfo& row : kOptions) listed = listed || row.name == name;
  RLX_CHECK(listed, "option ", name, " is not in the table");
  const char* value = std::getenv(std::string(name).c_str());
  if (value == nullptr || *value == '\0') return std::nullopt;
  return std::string(value);
}

std::optional<int64_t> option_int(std::string_view name) {
  const auto text = option(name);
  if (!text) return std::nullopt;
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), value);
  if (error != std::errc() || end != text->data() + text->size()) {
    throw invalid("options: ", name, " is '", *text, "'; it must be a whole number");
  }
  return value;
}

}  // namespace rlx
