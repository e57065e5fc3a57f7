#include "rlx/io/output_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "rlx/base/error.h"

namespace rlx::io {
namespace {

Error file_error(const std::string& path, const char* action) {
  return environment_error("file: cannot ", action, " '", path, "': ", std::strerror(errno));
}

}  // namespace

OutputFile::OutputFile(std::string path) : path_(std::move(path)) {
  struct stat info{};
  const bool special = ::stat(path_.c_str(), &info) == 0 && !S_ISREG(info.st_mode);
  target_ = special ? path_ : cat(path_, ".tmp", ::getpid());
  fd_ = ::open(target_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (fd_ < 0) throw file_error(target_, "create");
}

OutputFile::~OutputFile() {
  if (fd_ < 0) return;
  ::close(fd_);
  if (target_ != path_) ::unlink(target_.c_str());
}

void OutputFile::write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t wrote = ::write(fd_, bytes.data(), bytes.size());
    if (wrote < 0) {
      if (errno == EINTR) continue;
      throw file_error(target_, "write");
    }
    bytes = bytes.subspan(size_t(wrote));
    written_ += uint64_t(wrote);
  }
}

void OutputFile::write_zeros(uint64_t count) {
  static constexpr std::byte kZeros[4096] = {};
  while (count > 0) {
    const size_t step = size_t(std::min<uint64_t>(count, sizeof kZeros));
    write(std::span(kZeros, step));
    count -= step;
  }
}

void OutputFile::finish() {
  const int fd = fd_;
  fd_ = -1;
  if (::close(fd) != 0) throw file_error(target_, "close");
  if (target_ != path_ && std::rename(target_.c_str(), path_.c_str()) != 0)
    throw file_error(path_, "replace");
}

}  // namespace rlx::io
