// What each source under isa/ offers at its level; table.cpp collects them.
#pragma once

#include "rlx/backend/cpu/kernels/attention.h"
#include "rlx/backend/cpu/kernels/copy.h"
#include "rlx/backend/cpu/kernels/gemm.h"
#include "rlx/backend/cpu/kernels/quant_product.h"
#include "rlx/backend/cpu/kernels/rows.h"
#include "rlx/backend/cpu/kernels/unary.h"

namespace rlx::cpu::RLX_ISA {

/// 0 ... n-1 as template arguments. Not std::index_sequence: nothing from outside this namespace may be
/// instantiated here.
template <int... i>
struct Indices {};
template <int n>
using MakeIndices = Indices<__integer_pack(n)...>;

UnaryKernels unary_kernels();
GemmKernels gemm_kernels();
RowKernels row_kernels();
CopyKernels copy_kernels();
AttentionKernels attention_kernels();
QuantProductKernels quant_product_kernels();

}  // namespace rlx::cpu::RLX_ISA
