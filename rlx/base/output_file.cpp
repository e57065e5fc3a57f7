#include "rlx/base/output_file.h"

#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstring>

#include "rlx/base/error.h"
#include "rlx/base/file.h"

namespace rlx {
namespace {

// A name that a signal handler can read: entries are never freed, only used again.
struct Unfinished {
  std::atomic<bool> taken{false}, present{false};
  char name[PATH_MAX] = {};
  Unfinished* next = nullptr;
};
std::atomic<Unfinished*> unfinished_files{nullptr};

Unfinished* list_unfinished(const std::string& name) {
  Unfinished* entry = unfinished_files.load();
  while (entry != nullptr && entry->taken.exchange(true)) entry = entry->next;
  if (entry == nullptr) {
    entry = new Unfinished;
    entry->taken = true;
    entry->next = unfinished_files.load();
    while (!unfinished_files.compare_exchange_weak(entry->next, entry)) {
    }
  }
  std::strncpy(entry->name, name.c_str(), sizeof entry->name - 1);
  entry->present = true;
  return entry;
}

void unlist(void*& listed) {
  if (auto* entry = static_cast<Unfinished*>(listed)) entry->present = false, entry->taken = false;
  listed = nullptr;
}

std::string random_digits() {
  uint64_t bits = 0;
  if (::getrandom(&bits, sizeof bits, 0) != ssize_t(sizeof bits))
    throw environment_error("file: the system gives no random bits: ", std::strerror(errno));
  char digits[17];
  std::snprintf(digits, sizeof digits, "%016llx", static_cast<unsigned long long>(bits));
  return digits;
}

std::string folder_of(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, slash + 1);
}

// A name beside `path`, cut so that the digits fit what a folder allows.
std::string name_beside(const std::string& path) {
  const size_t slash = path.rfind('/');
  const size_t start = slash == std::string::npos ? 0 : slash + 1;
  return cat(path.substr(0, start), path.substr(start, 200), ".tmp-", random_digits());
}

// Some file systems cannot promise durability; that is no error of the one who writes.
bool sync(int fd) { return ::fsync(fd) == 0 || errno == EINVAL || errno == ENOTSUP || errno == EROFS; }

}  // namespace

OutputFile::OutputFile(std::string path) : path_(std::move(path)) {
  struct stat info{};
  const bool exists = ::stat(path_.c_str(), &info) == 0;
  if (exists && S_ISDIR(info.st_mode))
    throw environment_error("file: cannot write '", path_, "': it is a folder");
  if (!exists || S_ISREG(info.st_mode)) {
    create_beside(exists ? &info : nullptr);
    return;
  }
  target_ = path_;
  fd_ = ::open(path_.c_str(), O_WRONLY | O_CLOEXEC | O_NOCTTY);
  if (fd_ < 0) throw file_error(path_, "open");
}

void OutputFile::create_beside(const void* old_status) {
  const auto* old = static_cast<const struct stat*>(old_status);
  for (int attempt = 0;; ++attempt) {
    target_ = name_beside(path_);
    // Listed first, so that a signal in between leaves nothing behind; no other file has these digits.
    listed_ = list_unfinished(target_);
    // What replaces a file is unreadable to others until it has the permissions of that file.
    fd_ = ::open(target_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, old ? 0600 : 0666);
    if (fd_ >= 0) break;
    const int reason = errno;
    unlist(listed_);
    errno = reason;
    if (reason != EEXIST || attempt == 8) throw file_error(path_, "create");
  }
  if (old == nullptr) return;
  // Only the superuser can keep another owner; the group's bits would mean another group then.
  const bool same_group = ::fchown(fd_, old->st_uid, old->st_gid) == 0 || ::getegid() == old->st_gid;
  if (::fchmod(fd_, old->st_mode & (same_group ? 0777 : 0707)) != 0) {
    const Error error = file_error(path_, "set the permissions of");
    forget();
    throw error;
  }
}

// Closes and deletes what was written.
void OutputFile::forget() {
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
  if (replaces()) ::unlink(target_.c_str());
  unlist(listed_);
}

OutputFile::~OutputFile() {
  if (fd_ >= 0) forget();
}

void OutputFile::write(std::span<const std::byte> bytes) {
  const auto all = bytes;
  while (!bytes.empty()) {
    const ssize_t wrote = ::write(fd_, bytes.data(), bytes.size());
    if (wrote < 0) {
      if (errno == EINTR) continue;
      const bool lost = errno == EFAULT;
      const Error error = file_error(path_, "write");
      // Mapped bytes that are gone make the system call fail where a load would be a signal: look at them.
      if (lost) touch_mapped(bytes);
      check_mapped(all);
      throw error;
    }
    bytes = bytes.subspan(size_t(wrote));
    written_ += uint64_t(wrote);
  }
  check_mapped(all);
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
  const auto fail = [this](const char* action) {
    const Error error = file_error(path_, action);
    forget();
    return error;
  };
  if (replaces() && !sync(fd_)) throw fail("write");
  const int fd = fd_;
  fd_ = -1;
  if (::close(fd) != 0) throw fail("write");
  if (!replaces()) return;
  if (std::rename(target_.c_str(), path_.c_str()) != 0) throw fail("replace");
  target_ = path_;
  forget();
  // The new name is on the disk when its folder is.
  const int folder = ::open(folder_of(path_).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) return;
  const bool synced = sync(folder);
  const Error error = file_error(path_, "write");
  ::close(folder);
  if (!synced) throw error;
}

void remove_unfinished_files() noexcept {
  for (const Unfinished* entry = unfinished_files.load(); entry != nullptr; entry = entry->next) {
    if (entry->present) ::unlink(entry->name);
  }
}

}  // namespace rlx
