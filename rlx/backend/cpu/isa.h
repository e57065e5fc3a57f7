// Which instruction set the kernels use.
//
// Every source under kernels/isa/ is compiled once per level into a namespace of that name. The level is
// chosen once per process (isa_table.h looks the kernels up): the best the machine has, or the one RLX_ISA
// names.
#pragma once

#include <span>
#include <string_view>

namespace rlx::cpu {

enum class Isa { baseline, avx2, avx512, avx512vnni };

std::string_view isa_name(Isa);

/// The levels this binary has and this machine can run, lowest first.
std::span<const Isa> available_isas();

/// The level in use. The first call reads RLX_ISA; a name that is unknown or a level that the machine lacks
/// is an error.
Isa current_isa();

/// Changes the level for all later calls in the process; for tests and benchmarks, between kernels.
void use_isa(Isa);

}  // namespace rlx::cpu
