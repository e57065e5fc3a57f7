// libnvrtc, as far as rlx/backend/cuda asks for it: g++ compiles the text for the host. A "cubin" is a shared library behind a head of 16
// bytes. Whether a text that was compiled before is compiled again is the business of the caller's cache, for which the version says
// what this compiler is made of.
#include <stdlib.h>
#include <sys/wait.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "text.h"

namespace {

namespace fs = std::filesystem;

constexpr int kCompilationError = 6;  // NVRTC_ERROR_COMPILATION

struct Program {
  std::string text, name, log, cubin;
};

std::string read(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}
void write(const fs::path& path, const std::string& text) { std::ofstream(path, std::ios::binary) << text; }

std::string setting(const char* name, const char* otherwise) {
  const char* const value = std::getenv(name);
  return value ? value : otherwise;
}
std::string compiler() { return setting("EMULATED_CXX", EMULATED_CXX); }
std::string flags() {
  // Floats as on the GPU: nothing is contracted. Kernels read memory as other types, and their integers wrap.
  std::string out =
      " -std=c++17 -O1 -shared -fPIC -w -fpermissive -ffp-contract=off -fno-strict-aliasing -fwrapv -fno-exceptions -fno-rtti -fvisibility=hidden"
      " -fno-threadsafe-statics -fno-stack-protector -fno-asynchronous-unwind-tables";
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) out += " -mavx2 -mfma";
  return out + " " + setting("EMULATED_FLAGS", "");
}

/// A folder that goes with all that is in it.
struct Folder {
  fs::path path;
  Folder() {
    std::string form = (fs::temp_directory_path() / "emulated-XXXXXX").string();
    if (mkdtemp(form.data())) path = form;
  }
  ~Folder() {
    std::error_code ignored;
    if (!path.empty() && setting("EMULATED_KEEP", "0") == "0") fs::remove_all(path, ignored);
  }
};

bool run(const std::string& command, const fs::path& said, std::string& log) {
  constexpr int kNotFound = 127;  // of the shell
  const int status = std::system((command + " 2> " + said.string()).c_str());
  if (status == 0) return true;
  const bool none = status == -1 || (WIFEXITED(status) && WEXITSTATUS(status) == kNotFound);
  log += none ? "emulated: no compiler: " + command : read(said);
  return false;
}

bool compile(Program& p, const std::string& architecture) {
  const Folder folder;
  if (folder.path.empty()) {
    p.log = "emulated: no folder for temporary files";
    return false;
  }
  const fs::path given = folder.path / "given.cpp", plain = folder.path / "plain.cpp",
                 module = folder.path / "module.cpp", made = folder.path / "module.so",
                 said = folder.path / "said";
  write(given, p.text);
  if (!run(compiler() + " -E -P -xc++ -D__CUDACC__ -D__CUDA_ARCH__=" + architecture + "0 " + given.string() +
               " -o " + plain.string(),
           said, p.log))
    return false;
  try {
    write(module, emulated::as_module(read(plain)));
  } catch (const emulated::NotEmulated& e) {
    p.log = std::string("emulated: ") + e.what();
    return false;
  }
  if (!run(compiler() + flags() + " -I" EMULATED_HEADERS " " + module.string() + " -o " + made.string(), said,
           p.log))
    return false;
  const std::string library = read(made);
  if (library.empty()) {
    p.log = "emulated: " + made.string() + " is gone";
    return false;
  }
  const unsigned long long size = library.size();
  p.cubin = "EMULATED" + std::string(reinterpret_cast<const char*>(&size), sizeof size) + library;
  return true;
}

// The same for the same headers, compiler and options.
int made_of() {
  static const int value = [] {
    std::string all = compiler() + flags();
    const fs::path headers = EMULATED_HEADERS, sources = headers.parent_path();
    for (const fs::path& path :
         {headers / "machine.h", headers / "prelude.h", headers / "ptx.h", headers / "matrix.h",
          headers / "hopper.h", sources / "ptx.cpp", sources / "module.cpp", sources / "scan.h"})
      all += read(path);
    unsigned hash = 2166136261u;
    for (const char c : all) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619u;
    return int(hash >> 1);
  }();
  return value;
}

}  // namespace

extern "C" {

int nvrtcVersion(int* major, int* minor) { return *major = 0, *minor = made_of(), 0; }
int nvrtcCreateProgram(Program** out, const char* text, const char* name, int, const char* const*,
                       const char* const*) {
  return *out = new Program{text, name, "", ""}, 0;
}
int nvrtcDestroyProgram(Program** p) { return delete *p, *p = nullptr, 0; }
int nvrtcCompileProgram(Program* p, int count, const char* const* options) {
  std::string architecture = "90";
  for (int i = 0; i < count; ++i) {
    const char* const found = std::strstr(options[i], "=sm_");
    if (!found) continue;
    architecture.clear();
    for (const char* c = found + 4; *c >= '0' && *c <= '9'; ++c) architecture += *c;
  }
  return compile(*p, architecture) ? 0 : kCompilationError;
}
int nvrtcGetProgramLogSize(Program* p, size_t* size) { return *size = p->log.size() + 1, 0; }
int nvrtcGetProgramLog(Program* p, char* to) { return std::memcpy(to, p->log.c_str(), p->log.size() + 1), 0; }
int nvrtcGetCUBINSize(Program* p, size_t* size) { return *size = p->cubin.size(), 0; }
int nvrtcGetCUBIN(Program* p, char* to) { return std::memcpy(to, p->cubin.data(), p->cubin.size()), 0; }
const char* nvrtcGetErrorString(int r) { return r == 0 ? "success" : "the text does not compile"; }
}
