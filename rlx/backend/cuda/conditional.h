// Branches and loops inside of what a stream records: bodies that run if, or as long as, a word of the graph is not 0. Kernels set
// that word, so that the host takes no part.
#pragma once

#include <functional>

#include "rlx/backend/cuda/queue.h"

namespace rlx::cuda {

/// Whether the driver records such nodes (CUDA 12.4 and newer); RLX_CUDA_CONDITIONS=0 says no.
bool records_conditions(const Gpu&);
bool is_recording(const Stream&);

/// A word of the graph that the stream records, 0 when it begins: cudaGraphSetConditional(word, value) in a kernel.
uint64_t new_condition(const Stream&);

enum class Repeat : uint8_t { once, as_long_as_it_holds };
/// Records a body behind what the stream has recorded so far; `record` queues it on the stream that it is given.
void record_conditional(const Stream&, uint64_t condition, Repeat,
                        const std::function<void(Stream&)>& record);

}  // namespace rlx::cuda
