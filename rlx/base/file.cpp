#include "rlx/base/file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "rlx/base/error.h"

namespace rlx {
namespace {

struct Descriptor {
  int fd;
  ~Descriptor() {
    if (fd >= 0) ::close(fd);
  }
};

Error file_error(const std::string& path, const char* action) {
  return environment_error("file: cannot ", action, " '", path, "': ", std::strerror(errno));
}

}  // namespace

MappedFile MappedFile::open(const std::string& path) {
  const Descriptor d{::open(path.c_str(), O_RDONLY | O_CLOEXEC)};
  if (d.fd < 0) throw file_error(path, "open");
  struct stat info{};
  if (::fstat(d.fd, &info) != 0) throw file_error(path, "examine");
  if (!S_ISREG(info.st_mode)) throw environment_error("file: '", path, "' is not a regular file");
  MappedFile file;
  file.path_ = path;
  const size_t size = size_t(info.st_size);
  if (size == 0) return file;
  void* address = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, d.fd, 0);
  if (address == MAP_FAILED) throw file_error(path, "map");
  file.owner_ =
      std::shared_ptr<const void>(address, [size](const void* p) { ::munmap(const_cast<void*>(p), size); });
  file.bytes_ = {static_cast<const std::byte*>(address), size};
  return file;
}

std::string read_file(const std::string& path, uint64_t limit) {
  const Descriptor d{::open(path.c_str(), O_RDONLY | O_CLOEXEC)};
  if (d.fd < 0) throw file_error(path, "open");
  std::string out;
  char buffer[1 << 16];
  for (;;) {
    const ssize_t got = ::read(d.fd, buffer, sizeof buffer);
    if (got < 0) {
      if (errno == EINTR) continue;
      throw file_error(path, "read");
    }
    if (got == 0) return out;
    if (out.size() + size_t(got) > limit)
      throw invalid("file: '", path, "' is larger than ", limit, " bytes");
    out.append(buffer, size_t(got));
  }
}

void write_file(const std::string& path, std::span<const std::byte> data) {
  // A pipe or device cannot be replaced by rename; write to it directly.
  struct stat info{};
  const bool special = ::stat(path.c_str(), &info) == 0 && !S_ISREG(info.st_mode);
  const std::string target = special ? path : path + ".tmp" + std::to_string(::getpid());
  Descriptor d{::open(target.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644)};
  if (d.fd < 0) throw file_error(target, "create");
  size_t done = 0;
  while (done < data.size()) {
    const ssize_t wrote = ::write(d.fd, data.data() + done, data.size() - done);
    if (wrote < 0) {
      if (errno == EINTR) continue;
      const Error error = file_error(target, "write");
      if (!special) ::unlink(target.c_str());
      throw error;
    }
    done += size_t(wrote);
  }
  if (!special && std::rename(target.c_str(), path.c_str()) != 0) throw file_error(path, "replace");
}

void write_file(const std::string& path, std::string_view data) {
  write_file(path, std::as_bytes(std::span(data.data(), data.size())));
}

}  // namespace rlx
