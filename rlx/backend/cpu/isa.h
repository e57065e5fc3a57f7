// Which instruction set the kernels use.
//
// Every source under kernels/isa/ is compiled once per level into a namespace of that name. The level is
// chosen once per process: the best the machine has, or the one RLX_ISA names.
#pragma once

#include <span>
#include <string_view>

#include "rlx/backend/cpu/kernels/attention.h"
#include "rlx/backend/cpu/kernels/copy.h"
#include "rlx/backend/cpu/kernels/gemm.h"
#include "rlx/backend/cpu/kernels/quant_product.h"
#include "rlx/backend/cpu/kernels/rows.h"
#include "rlx/backend/cpu/kernels/unary.h"

namespace rlx::cpu {

enum class Isa { baseline, avx2, avx512, avx512vnni };

/// The serial kernels of one level.
struct KernelTable {
  UnaryKernels unary;
  GemmKernels gemm;
  RowKernels rows;
  CopyKernels copy;
  AttentionKernels attention;
  QuantProductKernels quant_product;
};

std::string_view isa_name(Isa);

/// The levels this binary has and this machine can run, lowest first.
std::span<const Isa> available_isas();

/// The level in use. The first call reads RLX_ISA; a name that is unknown or a level that the machine lacks
/// is an error.
Isa current_isa();

/// Changes the level for all later calls in the process; for tests and benchmarks, between kernels.
void use_isa(Isa);

const KernelTable& kernels();

}  // namespace rlx::cpu
