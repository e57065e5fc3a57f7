// Kernels with a thread for each element of a result, as text: the indices i0, i1, .. of the element are
// given, the rest is said by the caller.
#pragma once

#include "rlx/backend/cuda/nodes/families.h"
#include "rlx/backend/cuda/region/printer.h"
#include "rlx/backend/cuda/rounding.h"

namespace rlx::cuda {

/// An unsigned type of so many bytes, for elements that are moved and not read.
inline std::string_view word_type(size_t bytes) {
  return bytes == 1 ? "u8" : bytes == 2 ? "u16" : bytes == 4 ? "u32" : "u64";
}

/// A parameter: the address of an operand, or of a result.
inline std::string typed(const Arg& x, std::string_view name, bool result = false) {
  return cat(result ? "" : "const ", memory_type(x.dtype()), "* ", name);
}

/// `parameters` without parentheses; `body` runs for element e at i0, i1, .. of `dims`.
Source element_kernel(const std::string& name, const std::vector<int64_t>& dims,
                      const std::string& parameters, const std::string& body);

inline std::vector<int64_t> sizes_of(const Shape& s) {
  std::vector<int64_t> out;
  for (const Dim d : s.dims()) out.push_back(d.value());
  return out;
}

inline Grid blocks_for(int64_t count, int64_t each = 256) { return {ceil_div(count, each)}; }

/// The offset of indices `prefix`0, `prefix`1, .. with these strides: "i0 * 12 + i1".
std::string offset_text(const std::vector<int64_t>& strides, std::string_view prefix = "i");

/// A step that launches one element kernel with the addresses of operands and results.
std::unique_ptr<Step> element_step(const Device&, const Source&, size_t operands, size_t results,
                                   int64_t count, std::string note);

}  // namespace rlx::cuda
