#pragma once

namespace rlx::cpu::RLX_ISA {

/// 0 ... n-1 as template arguments. Not std::index_sequence: nothing from outside this namespace may be
/// instantiated here.
template <int... i>
struct Indices {};
#if defined(__clang__)
template <class Int, Int... i>
using IndicesOf = Indices<i...>;
template <int n>
using MakeIndices = __make_integer_seq<IndicesOf, int, n>;
#else
template <int n>
using MakeIndices = Indices<__integer_pack(n)...>;
#endif

}  // namespace rlx::cpu::RLX_ISA
