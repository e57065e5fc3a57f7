// Determinants of batches of row-major matrices by elimination with partial pivoting, in f64. A batch is
// split over threads.
#pragma once

#include <cstddef>
#include <cstdint>

#include "rlx/base/dtype.h"
#include "rlx/base/pool.h"

namespace rlx::cpu {

/// det a = sign exp(logarithm) for a [batch, n, n]; a singular matrix has sign 0 and logarithm -inf, an empty
/// one sign 1.
struct Determinant {
  DType dtype = DType::f32;  // f32 or f64
  int64_t batch = 1, n = 0;
  const void* a = nullptr;
  void* value = nullptr;      // [batch], null to drop it
  void* sign = nullptr;       // [batch], null to drop it
  void* logarithm = nullptr;  // [batch], null to drop it
};
size_t determinant_workspace(const Determinant&, int threads);
void determinant(Team, const Determinant&, std::byte* workspace);

}  // namespace rlx::cpu
