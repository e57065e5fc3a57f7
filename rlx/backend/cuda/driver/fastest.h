// The fastest of several ways to do the same work.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "rlx/backend/cuda/driver/gpu.h"

namespace rlx::cuda {

/// How ways are measured: with operands in the caches, with caches that hold nothing of them, or as one recording of all that is queued, after another such.
enum class Trials : uint8_t { warm, cold, recorded };

/// Which of `count` ways to queue a work is the fastest. Measured once for each key, then known to the process and kept
/// beside the compiled kernels, so that a program does not change from run to run; without a place to keep it the first way is
/// taken. A way that fails is not taken.
int fastest(const Gpu&, const std::string& key, int count, Trials,
            const std::function<void(Stream_*, int way)>& queue);

}  // namespace rlx::cuda
