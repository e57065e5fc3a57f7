// The message of the error a call throws, for tests of refusals.
#pragma once

#include <string>

#include "rlx/base/error.h"

namespace rlx::test {

/// "no error" when nothing was thrown. Other exceptions pass through: only rlx::Error may leave the library.
template <class Call>
std::string message_of(Call&& call) {
  try {
    call();
  } catch (const Error& e) {
    return e.kind() == ErrorKind::internal ? "internal: " + e.message() : e.message();
  }
  return "no error";
}

}  // namespace rlx::test
