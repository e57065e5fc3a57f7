#include "memory.h"

#include <sys/mman.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>

namespace emulated {
namespace {

constexpr size_t kPage = 4096, kAlignment = 256;  // of addresses, as the driver gives them
constexpr unsigned char kCanary = 0xa5;

struct Piece {
  size_t bytes, mapped;
  char* begin;  // of its pages
  Side side;
};
struct Pieces {
  std::mutex mutex;
  std::map<char*, Piece> held;
  size_t used = 0;
  int at_work = 0;
};
Pieces& pieces() {
  static Pieces* const p = new Pieces;
  return *p;
}
size_t rounded(size_t n, size_t to) { return (n + to - 1) / to * to; }
bool is_apart() {
  static const bool apart = [] {
    const char* const given = std::getenv("EMULATED_APART");
    return given && *given == '1';
  }();
  return apart;
}
void allow(const Piece& p, bool touched) {
  if (p.side == Side::device)
    mprotect(p.begin, p.mapped - kPage, touched ? PROT_READ | PROT_WRITE : PROT_NONE);
}
void allow_all(bool touched) {
  for (const auto& [at, piece] : pieces().held) allow(piece, touched);
}

}  // namespace

size_t memory_total() {
  const char* const given = std::getenv("EMULATED_MEMORY");
  return given ? std::strtoull(given, nullptr, 10) : size_t(4) << 30;
}
size_t memory_used() {
  const std::lock_guard lock(pieces().mutex);
  return pieces().used;
}

AtWork::AtWork() {
  if (!is_apart()) return;
  const std::lock_guard lock(pieces().mutex);
  if (pieces().at_work++ == 0) allow_all(true);
}
AtWork::~AtWork() {
  if (!is_apart()) return;
  const std::lock_guard lock(pieces().mutex);
  if (--pieces().at_work == 0) allow_all(false);
}

char* allocate(size_t bytes, Side side) {
  Pieces& p = pieces();
  const std::lock_guard lock(p.mutex);
  if (p.used + bytes > memory_total()) return nullptr;
  const size_t inside = rounded(std::max<size_t>(bytes, 1), kAlignment),
               mapped = rounded(inside, kPage) + kPage;
  void* const pages =
      mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (pages == MAP_FAILED) return nullptr;
  char* const begin = static_cast<char*>(pages);
  char* const at = begin + mapped - kPage - inside;
  mprotect(begin + mapped - kPage, kPage, PROT_NONE);
  std::memset(at, 0xff, bytes);
  std::memset(at + bytes, kCanary, inside - bytes);
  const Piece& piece = p.held[at] = {bytes, mapped, begin, side};
  if (is_apart() && p.at_work == 0) allow(piece, false);
  p.used += bytes;
  return at;
}

bool release(char* at) {
  Pieces& p = pieces();
  const std::lock_guard lock(p.mutex);
  const auto it = p.held.find(at);
  if (it == p.held.end()) return false;
  const Piece piece = it->second;
  allow(piece, true);
  for (size_t i = piece.bytes; i < rounded(std::max<size_t>(piece.bytes, 1), kAlignment); ++i) {
    if (static_cast<unsigned char>(at[i]) == kCanary) continue;
    std::fprintf(stderr, "emulated: byte %zu behind an allocation of %zu bytes was written\n",
                 i - piece.bytes, piece.bytes);
    std::abort();
  }
  p.used -= piece.bytes;
  p.held.erase(it);
  munmap(piece.begin, piece.mapped);
  return true;
}

std::string describe(const void* address) {
  const char* const given = static_cast<const char*>(address);
  const Piece* nearest = nullptr;
  const char* begin = nullptr;
  for (const auto& [at, piece] : pieces().held) {
    if (at > given) break;
    nearest = &piece, begin = at;
  }
  char text[160];
  if (nearest && given < begin + nearest->mapped) {
    std::snprintf(text, sizeof text, "%zu bytes behind an allocation of %zu",
                  size_t(given - begin) - nearest->bytes, nearest->bytes);
  } else {
    std::snprintf(text, sizeof text, "%p, which is no memory of the device", address);
  }
  return text;
}

}  // namespace emulated
