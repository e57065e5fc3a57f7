// The families of kernels that graphs may use. A family is one source here: for each operator it says which nodes it
// takes and turns one into the parameters of a kernel. To add one, write its source and list it in device.cpp.
#pragma once

#include "rlx/backend/backend.h"

namespace rlx::cpu {

using backend::Arg;
using backend::Kernel;
using backend::KernelTable;
using backend::Launch;
using backend::make_step;
using backend::Packing;
using backend::Request;
using backend::Step;
using backend::Support;

void add_attention(KernelTable&);
void add_fused_products(KernelTable&);
void add_index(KernelTable&);
void add_matmul(KernelTable&);
void add_reduce(KernelTable&);
void add_regions(KernelTable&);
void add_rows(KernelTable&);

/// A copy between any two layouts of one type.
std::unique_ptr<Step> prepare_copy(const Arg& from, const Arg& to);

/// No, unless every operand is row-major.
Support all_row_major(const Request&);
/// No, unless all operands and results have this dtype.
Support all_of(const Request&, DType);

}  // namespace rlx::cpu
