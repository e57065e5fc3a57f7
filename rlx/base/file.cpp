#include "rlx/base/file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "rlx/base/mapping_watch.h"
#include "rlx/base/output_file.h"

namespace rlx {
namespace {

struct Descriptor {
  int fd;
  ~Descriptor() {
    if (fd >= 0) ::close(fd);
  }
};

std::string_view kind_name(mode_t mode) {
  if (S_ISDIR(mode)) return "a folder";
  if (S_ISFIFO(mode)) return "a pipe";
  if (S_ISSOCK(mode)) return "a socket";
  return "a device";
}

// O_NONBLOCK: a pipe without a writer opens at once, and is refused.
int open_regular(const std::string& path, struct stat& info) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (fd < 0) throw file_error(path, "open");
  const bool known = ::fstat(fd, &info) == 0;
  if (known && S_ISREG(info.st_mode)) return fd;
  const Error error =
      known ? environment_error("file: '", path, "' is not a regular file; it is ", kind_name(info.st_mode))
            : file_error(path, "examine");
  ::close(fd);
  throw error;
}

}  // namespace

Error file_error(const std::string& path, std::string_view action) {
  return environment_error("file: cannot ", action, " '", path, "': ", std::strerror(errno));
}

PathKind path_kind(const std::string& path) {
  struct stat info{};
  if (::stat(path.c_str(), &info) != 0) {
    if (errno == ENOENT || errno == ENOTDIR) return PathKind::missing;
    throw file_error(path, "look at");
  }
  if (S_ISREG(info.st_mode)) return PathKind::file;
  return S_ISDIR(info.st_mode) ? PathKind::folder : PathKind::other;
}

MappedFile MappedFile::open(const std::string& path) {
  struct stat info{};
  const Descriptor d{open_regular(path, info)};
  MappedFile file;
  file.path_ = path;
  const size_t size = size_t(info.st_size);
  if (size == 0) return file;
  void* address = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, d.fd, 0);
  if (address == MAP_FAILED) throw file_error(path, "map");
  file.bytes_ = {static_cast<const std::byte*>(address), size};
  detail::watch_mapping(file.bytes_, path);
  file.owner_ = std::shared_ptr<const void>(address, [bytes = file.bytes_](const void* p) {
    detail::unwatch_mapping(bytes);
    ::munmap(const_cast<void*>(p), bytes.size());
  });
  return file;
}

std::string read_file(const std::string& path, uint64_t limit) {
  struct stat info{};
  const Descriptor d{open_regular(path, info)};
  if (uint64_t(info.st_size) > limit) throw invalid("file: '", path, "' is larger than ", limit, " bytes");
  // One byte more than the file has, to see its end; a file of no stated size (as in /proc) grows the buffer.
  std::string out(size_t(info.st_size) + 1, '\0');
  size_t size = 0;
  for (;;) {
    if (size == out.size()) out.resize(size * 2 + (size_t(1) << 12));
    const ssize_t got = ::read(d.fd, out.data() + size, out.size() - size);
    if (got < 0) {
      if (errno == EINTR) continue;
      throw file_error(path, "read");
    }
    size += size_t(got);
    if (size > limit) throw invalid("file: '", path, "' is larger than ", limit, " bytes");
    if (got > 0) continue;
    out.resize(size);
    return out;
  }
}

void write_file(const std::string& path, std::span<const std::byte> data) {
  OutputFile out(path);
  out.write(data);
  out.finish();
}

void write_file(const std::string& path, std::string_view data) {
  write_file(path, std::as_bytes(std::span(data.data(), data.size())));
}

void make_folders(const std::string& path) {
  std::error_code why;
  std::filesystem::create_directories(path, why);
  if (why) throw environment_error("file: cannot make the folder '", path, "': ", why.message());
}

}  // namespace rlx
