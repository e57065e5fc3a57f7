#include "rlx/base/checked.h"

#include "rlx/base/error.h"

namespace rlx {

int64_t checked_add(int64_t a, int64_t b) {
  int64_t r;
  if (__builtin_add_overflow(a, b, &r)) throw invalid("dim: ", a, " + ", b, " does not fit 64 bits");
  return r;
}

int64_t checked_mul(int64_t a, int64_t b) {
  int64_t r;
  if (__builtin_mul_overflow(a, b, &r)) throw invalid("dim: ", a, " * ", b, " does not fit 64 bits");
  return r;
}

}  // namespace rlx
