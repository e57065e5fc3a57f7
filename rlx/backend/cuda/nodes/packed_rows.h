// Packed weights with few rows, for kernels that read them in ways of their own.
#pragma once

#include "rlx/backend/cuda/nodes/few_rows.h"
#include "rlx/ops/quant/dequant_matmul.h"

namespace rlx::cuda {

/// Why there is none for so many rows of this length, or nothing.
std::string packed_rows_problem(const ops::DequantMatmul::Attrs&, DType, int64_t rows, int64_t depth);
/// Threads of the blocks that packed_rows will have.
int packed_block_threads(const Device&, const ops::DequantMatmul::Attrs&, const FewRows& sizes, int sides,
                         bool wide);
/// Of `sizes` the type and the sizes count; weights_of gives rows of blocks. For run_packed_rows.
ColumnProducts packed_rows(const Device&, const ops::DequantMatmul::Attrs&, const FewRows& sizes,
                           const ColumnHooks&);
/// The same as a phase of a chain, or null where it is none.
PhaseRef packed_phase(const Device&, const ops::DequantMatmul::Attrs&, const FewRows& sizes,
                      const ColumnHooks&);
/// One launch; `params` points to Params.
void run_packed_rows(const ColumnProducts&, const Stream&, int64_t rows, void* params);
/// The step of a product with nothing to multiply: no result, or sums over no `depth`. Nothing for all others.
std::unique_ptr<Step> prepare_empty_sum(const Shape& result, int64_t depth);

}  // namespace rlx::cuda
