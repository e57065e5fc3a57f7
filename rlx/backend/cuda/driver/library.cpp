#include "rlx/backend/cuda/driver/library.h"

#include <dlfcn.h>

#include <algorithm>

#include "rlx/base/options.h"
#include "rlx/base/text.h"

namespace rlx::cuda {
namespace {

std::vector<std::string> folders() {
  const std::string text =
      option("RLX_CUDA_PATH").value_or("/usr/local/cuda/lib64:/usr/local/cuda-13.0/lib64:/opt/cuda/lib64");
  std::vector<std::string> out = {""};
  for (size_t at = 0; at <= text.size();) {
    const size_t end = std::min(text.find(':', at), text.size());
    if (end > at) out.push_back(text.substr(at, end - at) + "/");
    at = end + 1;
  }
  return out;
}

}  // namespace

Library::Library(std::initializer_list<const char*> names) {
  for (const std::string& folder : folders()) {
    for (const char* name : names) {
      handle_ = dlopen((folder + name).c_str(), RTLD_NOW | RTLD_LOCAL);
      if (handle_) return;
      const char* said = dlerror();
      if (reason_.empty()) reason_ = said ? said : cat(name, ": not found");
    }
  }
}

void* Library::symbol(const char* name) const { return handle_ ? dlsym(handle_, name) : nullptr; }

}  // namespace rlx::cuda
