// Sources of other rooms as texts of kernels: what the host computes and a kernel must compute bit by bit the same way stands in one place.
//
// They are plain C++ of numbers and arrays; kernels/host_words.h is what they need of the standard library. The build puts them in (cmake/rlx_texts.cmake).
#pragma once

#include <string_view>

namespace rlx::cuda {

/// The text of a source, "rlx/quant/fit.h", without its directives.
std::string_view room_source(std::string_view path);

}  // namespace rlx::cuda
