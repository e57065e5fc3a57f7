// Arithmetic of sizes that come from outside: a result that does not fit is an error, not a wrap.
#pragma once

#include <cstdint>

namespace rlx {

int64_t checked_add(int64_t a, int64_t b);
int64_t checked_mul(int64_t a, int64_t b);

}  // namespace rlx
