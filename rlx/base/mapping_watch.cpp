#include "rlx/base/mapping_watch.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <mutex>

#include "rlx/base/error.h"
#include "rlx/base/file.h"
#include "rlx/base/mapped_pages.h"

namespace rlx {
namespace {

// Entries are never freed, only used again: the handler may read the list at any time.
struct Mapping {
  std::atomic<uintptr_t> begin{0}, end{0};  // begin is 0 when the entry is free
  std::atomic<bool> cut{false};
  Mapping* next = nullptr;
  std::string path;  // under the mutex
};

std::atomic<Mapping*> mappings{nullptr};
std::atomic<int> cut_mappings{0};  // live ones
std::mutex list_mutex;             // for changes of the list
uintptr_t page_size = 4096;
struct sigaction previous_action{};

// Zeros from the page at `address` to the end of its mapping. Only system calls and atomics: runs in a handler.
bool replace_lost_pages(uintptr_t address) {
  for (Mapping* m = mappings.load(); m != nullptr; m = m->next) {
    const uintptr_t begin = m->begin, end = m->end;
    if (begin == 0 || address < begin || address >= end) continue;
    const uintptr_t page = address & ~(page_size - 1);
    void* const place = reinterpret_cast<void*>(page);
    if (::mmap(place, end - page, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != place)
      return false;
    if (!m->cut.exchange(true)) ++cut_mappings;
    return true;
  }
  return false;
}

void on_bus_error(int number, siginfo_t* info, void* context) {
  const int saved = errno;
  const bool handled = replace_lost_pages(reinterpret_cast<uintptr_t>(info->si_addr));
  errno = saved;
  if (handled) return;
  if (previous_action.sa_flags & SA_SIGINFO) return previous_action.sa_sigaction(number, info, context);
  if (previous_action.sa_handler != SIG_DFL && previous_action.sa_handler != SIG_IGN)
    return previous_action.sa_handler(number);
  // Ends the process when the handler returns, also when another process sent the signal.
  ::signal(SIGBUS, SIG_DFL);
  ::raise(SIGBUS);
}

void install_handler() {
  page_size = uintptr_t(::sysconf(_SC_PAGESIZE));
  struct sigaction action{};
  action.sa_sigaction = on_bus_error;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  ::sigemptyset(&action.sa_mask);
  if (::sigaction(SIGBUS, &action, &previous_action) != 0)
    throw environment_error("file: SIGBUS cannot be handled");
}

[[noreturn]] void tell(const Mapping& m) {
  struct stat info{};
  const uint64_t mapped = m.end - m.begin;
  if (::stat(m.path.c_str(), &info) == 0 && uint64_t(info.st_size) < mapped) {
    throw environment_error("file: '", m.path, "' became shorter while it was read: it had ", mapped,
                            " bytes and has ", info.st_size, " now");
  }
  throw environment_error("file: '", m.path, "' could not be read any more: it was cut, or its disk failed");
}

}  // namespace

namespace detail {

void watch_mapping(std::span<const std::byte> mapping, const std::string& path) {
  const std::lock_guard lock(list_mutex);
  if (mappings.load() == nullptr) install_handler();
  Mapping* m = mappings.load();
  while (m != nullptr && m->begin != 0) m = m->next;
  if (m == nullptr) {
    m = new Mapping;
    m->next = mappings.load();
    mappings.store(m);
  }
  m->path = path;
  m->cut = false;
  const auto begin = reinterpret_cast<uintptr_t>(mapping.data());
  m->end = begin + mapping.size();
  m->begin = begin;
}

void unwatch_mapping(std::span<const std::byte> mapping) noexcept {
  const std::lock_guard lock(list_mutex);
  for (Mapping* m = mappings.load(); m != nullptr; m = m->next) {
    if (m->begin != reinterpret_cast<uintptr_t>(mapping.data())) continue;
    m->begin = 0;
    if (m->cut.exchange(false)) --cut_mappings;
    return;
  }
}

}  // namespace detail

void check_mapped(std::span<const std::byte> bytes) {
  if (cut_mappings == 0 || bytes.empty()) return;
  const auto begin = reinterpret_cast<uintptr_t>(bytes.data());
  const std::lock_guard lock(list_mutex);
  for (const Mapping* m = mappings.load(); m != nullptr; m = m->next) {
    if (m->begin != 0 && m->cut && begin < m->end && begin + bytes.size() > m->begin) tell(*m);
  }
}

void check_mapped_files() {
  if (cut_mappings == 0) return;
  const std::lock_guard lock(list_mutex);
  for (const Mapping* m = mappings.load(); m != nullptr; m = m->next) {
    if (m->begin != 0 && m->cut) tell(*m);
  }
}

void release_mapped(std::span<const std::byte> bytes) noexcept {
  const auto first = reinterpret_cast<uintptr_t>(bytes.data());
  const uintptr_t begin = (first + page_size - 1) & ~(page_size - 1),
                  end = (first + bytes.size()) & ~(page_size - 1);
  if (begin >= end) return;
  const std::lock_guard lock(list_mutex);
  for (const Mapping* m = mappings.load(); m != nullptr; m = m->next) {
    // Zeros in place of lost pages come back as zeros. Anything but a mapping of a file would lose what it holds.
    if (m->begin == 0 || begin < m->begin || end > m->end) continue;
    ::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
    return;
  }
}

void touch_mapped(std::span<const std::byte> bytes) {
  if (bytes.empty()) return;
  const volatile std::byte* p = bytes.data();
  for (size_t i = 0; i < bytes.size(); i += page_size) (void)p[i];
  (void)p[bytes.size() - 1];
}

}  // namespace rlx
