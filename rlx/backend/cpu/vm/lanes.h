// Single elements of memory as lanes and back, for row values and for joining reductions.
#pragma once

#include <cstddef>
#include <cstdint>

#include "rlx/backend/cpu/vm/micro.h"
#include "rlx/base/dtype.h"
#include "rlx/region/region.h"

namespace rlx::cpu::vm {

/// lanes[i] = the element of `from` at offsets[i], for i < n; lanes of `width` bytes.
void gather_lanes(DType, Lane, int width, const std::byte* from, const int64_t* offsets, int64_t n,
                  std::byte* lanes);
/// The element of `to` at offsets[i] = lanes[i].
void scatter_lanes(DType, Lane, int width, const std::byte* lanes, const int64_t* offsets, int64_t n,
                   std::byte* to);

/// A reduction of n lanes side by side: set to its start, and joined with as many others.
void start_lanes(Lane, const region::Constant& start, int64_t n, std::byte* lanes);
void join_lanes(Lane, Op reduction, const std::byte* others, int64_t n, std::byte* lanes);

}  // namespace rlx::cpu::vm
