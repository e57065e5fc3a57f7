// The memory of the emulated GPU: pages of the host, each allocation with a page behind it that nobody may touch.
#pragma once

#include <cstddef>
#include <string>

namespace emulated {

/// Bytes of 0xff, so that what is read before it was written is NaN. Null where EMULATED_MEMORY bytes do not suffice.
enum class Side : bool { device, host };  // whose memory it is; the device reaches both
char* allocate(size_t bytes, Side);
/// While one lives, the process is a device at work. Without one it cannot touch memory of the device where EMULATED_APART is 1: it ends as it
/// would beside a GPU.
class AtWork {
 public:
  AtWork();
  ~AtWork();
  AtWork(const AtWork&) = delete;
  AtWork& operator=(const AtWork&) = delete;
};
/// False where `p` is no allocation. What was written behind it ends the process with a word.
bool release(char* p);
size_t memory_used();
size_t memory_total();
/// An address that was touched and is not there: which allocation it is behind.
std::string describe(const void* address);

}  // namespace emulated
