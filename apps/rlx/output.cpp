#include "apps/rlx/output.h"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <iterator>

#include "rlx/base/error.h"

namespace rlx::cli {
namespace {

Error output_error() { return environment_error("cannot write standard output: ", std::strerror(errno)); }

}  // namespace

void print(std::string_view text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size()) throw output_error();
}

void flush_output() {
  if (std::fflush(stdout) != 0) throw output_error();
  // What an earlier write could not bring out.
  if (std::ferror(stdout)) throw environment_error("cannot write standard output");
}

std::string read_input() {
  std::string out;
  char buffer[1 << 16];
  for (;;) {
    const ssize_t got = ::read(STDIN_FILENO, buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw environment_error("cannot read standard input: ", std::strerror(errno));
    if (got == 0) return out;
    out.append(buffer, size_t(got));
  }
}

std::string readable_bytes(int64_t bytes) {
  constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  double value = double(bytes);
  size_t unit = 0;
  while (value >= 1024 && unit + 1 < std::size(kUnits)) value /= 1024, ++unit;
  char text[32];
  std::snprintf(text, sizeof text, unit == 0 ? "%.0f %s" : "%.2f %s", value, kUnits[unit]);
  return text;
}

}  // namespace rlx::cli
