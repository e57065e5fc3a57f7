#include "rlx/backend/cpu/kernels/rope.h"

#include "rlx/backend/cpu/isa_table.h"
#include "rlx/backend/cpu/kernels/grain.h"
#include "rlx/backend/cpu/kernels/sizes.h"
#include "rlx/base/error.h"

namespace rlx::cpu {

RLX_ISA_TABLE(RopeKernels, rope_kernels)

namespace {

constexpr int64_t kLine = 16;  // f32 of a cache line

bool may_stream_rows(const Rope& p) {
  return p.dtype == DType::f32 && p.x != p.y && p.rotated == p.head_dim && p.rotated % (2 * kLine) == 0 &&
         (p.y_strides.batch | p.y_strides.head | p.y_strides.row) % kLine == 0 &&
         may_stream(p.y, 8 * p.batch * p.length * p.heads * p.head_dim);
}

}  // namespace

void rope(Team team, const Rope& p) {
  RLX_CHECK(p.rotated % 2 == 0 && p.rotated <= p.head_dim, p.rotated, " rotated lanes of ", p.head_dim);
  RLX_CHECK(p.dtype == DType::f32 || p.dtype == DType::f16 || p.dtype == DType::bf16, "rope of ", p.dtype);
  const int64_t batches = p.position_stride == 0 ? 1 : p.batch;
  for (int64_t b = 0; b < batches && p.batch > 0; ++b) {
    for (int64_t i = 0; i < p.length; ++i) {
      const int64_t row = p.positions == nullptr ? i : p.positions[b * p.position_stride + i];
      if (row < 0 || row >= p.table_rows) {
        throw invalid("rope: position ", row, " is out of range; the tables have ", p.table_rows, " rows");
      }
    }
  }
  const bool streaming = may_stream_rows(p);
  const int64_t width = std::max<int64_t>(1, p.heads * p.head_dim);
  team.parallel_for(p.batch * p.length, std::max<int64_t>(1, kGrain / width),
                    [&](int64_t begin, int64_t end) { rope_kernels().rows(p, begin, end, streaming); });
}

}  // namespace rlx::cpu
