// Operand values for the conformance run, written as text: a type, then how to fill it.
//
//   f32[2,3]            normal floats and complex numbers, small integers, random booleans
//   f32[4] positive     0.5 .. 2.5
//   f32[4] unit         0 .. 1
//   f32[4] in -3..7     uniform
//   i32[5] <9           whole numbers 0 .. 8; also for floats that carry indices
//   f32[3] near 1 0 -2  these values, each moved by less than 0.01
//   f32[6] distinct     a shuffled ladder with steps of about one: no ties, far from each other
//   f32[4,4] spd        symmetric positive definite in the last two axes
//   f32[4,4] lower      lower triangular, diagonal away from zero
//   f32[4,4] solvable   diagonally dominant
//   u8[64] bytes        0 .. 255
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "rlx/ir/literal.h"

namespace rlx::ir {

/// The same (spec, seed) gives the same values everywhere. `floats` replaces the dtype of real floats, so
/// that the derivative checks can run a sample in f64.
Literal sample_literal(std::string_view spec, uint64_t seed, std::optional<DType> floats = std::nullopt);

}  // namespace rlx::ir
