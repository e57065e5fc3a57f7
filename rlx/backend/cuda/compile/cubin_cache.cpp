#include "rlx/backend/cuda/compile/cubin_cache.h"

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "rlx/base/file.h"
#include "rlx/base/hash.h"
#include "rlx/base/options.h"

namespace rlx::cuda {
namespace {

Hash128 hash_of(std::string_view text) {
  Hasher h;
  h.add(text);
  return h.finish();
}

std::string hex(uint64_t v) {
  std::string out(16, '0');
  for (int i = 15; i >= 0; --i, v >>= 4) out[size_t(i)] = "0123456789abcdef"[v & 15];
  return out;
}

std::string folder() {
  const auto variable = [](const char* name) -> std::string {
    const char* v = std::getenv(name);
    return v ? v : "";
  };
  if (const auto own = option("RLX_CACHE")) return *own == "off" ? "" : *own;
  if (const std::string xdg = variable("XDG_CACHE_HOME"); !xdg.empty()) return xdg + "/rlx";
  if (const std::string home = variable("HOME"); !home.empty()) return home + "/.cache/rlx";
  return "";
}

}  // namespace

std::string cubin_path(std::string_view key) {
  const std::string base = folder();
  if (base.empty()) return "";
  const Hash128 hash = hash_of(key);
  return base + "/cuda/" + hex(hash.hi) + hex(hash.lo) + ".cubin";
}

// A file is the cubin and 8 bytes of its hash: one that was cut or changed is compiled again.
std::optional<std::string> read_cubin(const std::string& path) {
  if (path.empty()) return std::nullopt;
  try {
    if (path_kind(path) != PathKind::file) return std::nullopt;
    std::string data = read_file(path);
    uint64_t sum = 0;
    if (data.size() < sizeof sum) return std::nullopt;
    std::memcpy(&sum, data.data() + data.size() - sizeof sum, sizeof sum);
    data.resize(data.size() - sizeof sum);
    return hash_of(data).lo == sum ? std::optional(std::move(data)) : std::nullopt;
  } catch (const Error&) {
    return std::nullopt;
  }
}

void write_cubin(const std::string& path, std::string_view cubin) {
  if (path.empty()) return;
  std::error_code ignored;
  std::filesystem::create_directories(std::filesystem::path(path).parent_path(), ignored);
  const uint64_t sum = hash_of(cubin).lo;
  std::string data(cubin);
  data.append(reinterpret_cast<const char*>(&sum), sizeof sum);
  try {
    write_file(path, data);
  } catch (const Error&) {
    // The next process compiles it again.
  }
}

}  // namespace rlx::cuda
