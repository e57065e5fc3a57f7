// Memory that will be read soon, for threads that wait meanwhile: a worker without a part, or a caller whose workers are still at
// theirs, asks for it instead of doing nothing. One range for the process, the last that was announced; whatever it is, and even when
// it has been freed since, results do not depend on it.
#pragma once

#include <cstddef>

namespace rlx {

/// Replaces what was announced before; no bytes: nothing is to be read.
void announce_read(const void* at, size_t bytes) noexcept;

/// Asks memory for the next lines of the announced range; false when there are none.
bool read_announced() noexcept;

}  // namespace rlx
