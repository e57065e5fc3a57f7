// What a queue may offer beside order: to wait for a part of what it holds.
#pragma once

#include <cstdint>

namespace rlx::backend {

/// A queue that is also this goes on with later work while a caller takes the results of earlier work.
class Marks {
 public:
  virtual ~Marks() = default;
  /// A place behind all that was queued so far. Only the last few are known.
  virtual uint64_t mark() = 0;
  /// Returns when all before that place is done; an error of queued work is thrown here.
  virtual void wait_for(uint64_t mark) = 0;
};

}  // namespace rlx::backend
