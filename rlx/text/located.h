// Errors that say which file, line or field they are about.
#pragma once

#include <string_view>

#include "rlx/base/error.h"

namespace rlx::text {

/// What `make` returns; its errors begin with `where`.
template <class Make>
auto located(std::string_view where, Make make) {
  try {
    return make();
  } catch (Error& e) {
    e.set_message(cat(where, ": ", e.message()));
    throw;
  }
}

}  // namespace rlx::text
