// What every fuzz target demands of the library: it returns or throws rlx::Error, and an internal error is a
// bug.
#pragma once

#include <cstdlib>
#include <span>

#include "rlx/base/error.h"

namespace rlx::fuzz {

template <class Call>
int only_errors(Call&& call) {
  try {
    call();
  } catch (const Error& e) {
    if (e.kind() == ErrorKind::internal) std::abort();
  }
  return 0;
}

/// A property that must hold for accepted input.
inline void require(bool holds) {
  if (!holds) std::abort();
}

inline std::span<const std::byte> bytes_of(const uint8_t* data, size_t size) {
  return {reinterpret_cast<const std::byte*>(data), size};
}

}  // namespace rlx::fuzz
