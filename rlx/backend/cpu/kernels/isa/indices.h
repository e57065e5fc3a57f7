#pragma once

namespace rlx::cpu::RLX_ISA {

/// 0 ... n-1 as template arguments. Not std::index_sequence: nothing from outside this namespace may be
/// instantiated here.
template <int... i>
struct Indices {};
template <int n>
using MakeIndices = Indices<__integer_pack(n)...>;

}  // namespace rlx::cpu::RLX_ISA
