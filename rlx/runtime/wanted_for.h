// What memory was wanted for, told where there is too little.
#pragma once

#include "rlx/base/error.h"

namespace rlx::runtime {

/// What `make` gives. An error of the environment gets the purpose behind its message, which `purpose` tells.
template <class Purpose, class Make>
auto wanted_for(const Purpose& purpose, const Make& make) {
  try {
    return make();
  } catch (Error& e) {
    if (e.kind() == ErrorKind::environment) e.set_message(cat(e.message(), "; wanted for ", purpose()));
    throw;
  }
}

}  // namespace rlx::runtime
