// Attention of few queries over many keys; see AttentionKernels for what each does.
#pragma once

#include "rlx/backend/cpu/kernels/attention.h"
#include "rlx/backend/cpu/simd/vec.h"

namespace rlx::cpu::RLX_ISA {

size_t decode_scratch_bytes(const Attention&);
void decode_split(const Attention&, int64_t batch, int64_t kv_head, int64_t begin, int64_t end, float* out,
                  std::byte* scratch);
void join_splits(const Attention&, int64_t batch, int64_t kv_head, int64_t splits, const float* parts);

}  // namespace rlx::cpu::RLX_ISA
