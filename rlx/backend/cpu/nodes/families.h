// The families of kernels that graphs may use. A family is one source here: for each operator it says which nodes it
// takes and turns one into the parameters of a kernel. To add one, write its source and list it in device.cpp.
#pragma once

#include <algorithm>

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
void add_cast(KernelTable&);
void add_complex(KernelTable&);
void add_conv(KernelTable&);
void add_conv_gathered(KernelTable&);
void add_cumulative(KernelTable&);
void add_dequantize(KernelTable&);
void add_dot_general(KernelTable&);
void add_factorize(KernelTable&);
void add_fft(KernelTable&);
void add_fused_products(KernelTable&);
void add_group_norm(KernelTable&);
void add_grouped(KernelTable&);
void add_index(KernelTable&);
void add_integer_products(KernelTable&);
void add_loss(KernelTable&);
void add_matmul(KernelTable&);
void add_norm_gradients(KernelTable&);
void add_order(KernelTable&);
void add_pool(KernelTable&);
void add_quant(KernelTable&);
void add_quant_conv(KernelTable&);
void add_random(KernelTable&);
void add_reduce(KernelTable&);
void add_regions(KernelTable&);
void add_resize(KernelTable&);
void add_rope(KernelTable&);
void add_rows(KernelTable&);
void add_sequence(KernelTable&);
void add_shape(KernelTable&);
void add_solve(KernelTable&);
void add_splat(KernelTable&);
void add_windows(KernelTable&);

/// A copy between any two layouts of one type.
std::unique_ptr<Step> prepare_copy(const Arg& from, const Arg& to);

/// No, unless every operand is row-major.
Support all_row_major(const Request&);
/// No, unless all operands and results have this dtype.
Support all_of(const Request&, DType);
/// No, if an operand or a result has no elements.
Support none_empty(const Request&);
/// All three: f32, row-major operands, and elements everywhere.
Support plain_f32(const Request&);

/// Operand i of a launch, which is f32.
inline const float* f32(const Launch& l, size_t i) { return reinterpret_cast<const float*>(l.in[i]); }

}  // namespace rlx::cpu
