#include "rlx/backend/cuda/compile/compiler.h"

#include <vector>

#include "rlx/backend/cuda/compile/cubin_cache.h"
#include "rlx/backend/cuda/compile/timings.h"
#include "rlx/backend/cuda/driver/library.h"
#include "rlx/backend/cuda/kernels/prelude.h"
#include "rlx/base/error.h"

namespace rlx::cuda {
namespace {

struct Program_;

/// As in nvrtc.h; 0 is success.
struct Nvrtc {
  int (*Version)(int* major, int* minor);
  int (*CreateProgram)(Program_**, const char* text, const char* name, int headers, const char* const*,
                       const char* const*);
  int (*CompileProgram)(Program_*, int options, const char* const*);
  int (*DestroyProgram)(Program_**);
  int (*GetProgramLogSize)(Program_*, size_t*);
  int (*GetProgramLog)(Program_*, char*);
  int (*GetCUBINSize)(Program_*, size_t*);
  int (*GetCUBIN)(Program_*, char*);
  const char* (*GetErrorString)(int);
};

struct Opened {
  Nvrtc functions{};
  std::string problem, version;
  int major = 0;
};

const Opened& opened() {
  static const Opened o = [] {
    const Timed timed("opening libnvrtc");
    Opened made;
    Nvrtc& f = made.functions;
    const Library library({"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so.11.2"});
    if (!library.found()) {
      made.problem = cat("no CUDA compiler: ", library.reason(),
                         "; the CUDA toolkit has it, RLX_CUDA_PATH names its folder");
      return made;
    }
    std::vector<std::string> missing;
    library.load(f.Version, "nvrtcVersion", missing);
    library.load(f.CreateProgram, "nvrtcCreateProgram", missing);
    library.load(f.CompileProgram, "nvrtcCompileProgram", missing);
    library.load(f.DestroyProgram, "nvrtcDestroyProgram", missing);
    library.load(f.GetProgramLogSize, "nvrtcGetProgramLogSize", missing);
    library.load(f.GetProgramLog, "nvrtcGetProgramLog", missing);
    library.load(f.GetCUBINSize, "nvrtcGetCUBINSize", missing);
    library.load(f.GetCUBIN, "nvrtcGetCUBIN", missing);
    library.load(f.GetErrorString, "nvrtcGetErrorString", missing);
    if (!missing.empty()) {
      made.problem = cat("the CUDA compiler is too old: libnvrtc has no ", join(missing));
      return made;
    }
    int minor = 0;
    f.Version(&made.major, &minor);
    made.version = cat(made.major, ".", minor);
    return made;
  }();
  return o;
}

const Nvrtc& nvrtc() {
  if (!opened().problem.empty()) throw environment_error("cuda: ", opened().problem);
  return opened().functions;
}

// Products and sums are not contracted: the bits of an element do not depend on what was fused with it.
// Kernels that want a fused product and sum say fma.
constexpr const char* kOptions[] = {"--std=c++17", "--fmad=false", "--device-as-default-execution-space"};
// What no kernel uses, such as textures, is not read: a tenth of the time of a short text.
constexpr const char* kMinimal = "--minimal";
constexpr int kFirstMinimal = 13;

std::vector<const char*> options_of(const std::string& architecture_option) {
  std::vector<const char*> out(std::begin(kOptions), std::end(kOptions));
  if (opened().major >= kFirstMinimal) out.push_back(kMinimal);
  out.push_back(architecture_option.c_str());
  return out;
}

// A kernel that says nothing of its beginning waits at once for the kernels before it.
std::string with_beginning(const Source& source) {
  for (const char* said : {"begin();", "begin_alone();"}) {
    if (source.text.find(said) != std::string::npos) return source.text;
  }
  const size_t kernel = source.text.find("__global__");
  const size_t name = kernel == std::string::npos ? kernel : source.text.find(source.entry + "(", kernel);
  const size_t body = name == std::string::npos ? name : source.text.find(") {", name);
  if (body == std::string::npos) return source.text;  // the compiler will say what is wrong
  std::string out = source.text;
  return out.insert(body + 3, "\n  begin();");
}

struct Compiled {
  std::string cubin, log;
};

Compiled run(const Source& source, const std::string& architecture, bool verbose) {
  const Nvrtc& n = nvrtc();
  const std::string text = std::string(kPrelude) + with_beginning(source);
  const std::string arch = "--gpu-architecture=" + architecture;
  std::vector<const char*> options = options_of(arch);
  if (verbose) options.push_back("--ptxas-options=-v");
  Program_* program = nullptr;
  if (const int r =
          n.CreateProgram(&program, text.c_str(), (source.entry + ".cu").c_str(), 0, nullptr, nullptr);
      r != 0)
    throw environment_error("cuda: the compiler failed: ", n.GetErrorString(r));
  const int result = n.CompileProgram(program, int(options.size()), options.data());
  Compiled out;
  size_t size = 0;
  n.GetProgramLogSize(program, &size);
  out.log.resize(size);
  if (size > 0) n.GetProgramLog(program, out.log.data());
  if (result == 0) {
    n.GetCUBINSize(program, &size);
    out.cubin.resize(size);
    n.GetCUBIN(program, out.cubin.data());
  }
  n.DestroyProgram(&program);
  if (result != 0)
    throw Error(ErrorKind::internal, cat("cuda: kernel '", source.entry, "' does not compile for ",
                                         architecture, ": ", out.log, "\n", source.text));
  return out;
}

}  // namespace

std::string compiler_problem() { return opened().problem; }
std::string compiler_version() { return opened().version; }

std::string compile(const Source& source, const std::string& architecture, Kept kept_one) {
  std::string key = cat(compiler_version(), "\n");
  for (const char* option : options_of(architecture)) key += cat(option, "\n");
  const std::string path = cubin_path(key + kPrelude + with_beginning(source));
  if (kept_one == Kept::is_good) {
    if (auto kept = read_cubin(path)) return std::move(*kept);
  }
  const Timed timed(cat("compiling ", source.entry, ", ", source.text.size(), " bytes"));
  Compiled made = run(source, architecture, false);
  write_cubin(path, made.cubin);
  return std::move(made.cubin);
}

std::string resource_report(const Source& source, const std::string& architecture) {
  return run(source, architecture, true).log;
}

}  // namespace rlx::cuda
