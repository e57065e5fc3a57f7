// What types, constants and instructions of a region are called in the text of a kernel; the names are those of kernels/prelude.h.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "rlx/region/region.h"

namespace rlx::cuda {

/// The C++ type of elements in memory.
std::string_view memory_type(DType);
std::string_view lane_type(region::Lane);
std::string_view reduction_type(region::Op);
std::string literal(region::Lane, const region::Constant&);
/// What an instruction computes; `value` names what an earlier one did.
std::string expression_text(const region::Region&, const region::Instruction&,
                            const std::function<std::string(int)>& value);

}  // namespace rlx::cuda
