#include "rlx/backend/cpu/kernels/random.h"

#include <cmath>

#include "rlx/backend/cpu/isa_table.h"
#include "rlx/backend/cpu/kernels/grain.h"
#include "rlx/base/error.h"

namespace rlx::cpu {

RLX_ISA_TABLE(RandomKernels, random_kernels)

static_assert(kHeavyGrain % kRandomGrain == 0);  // parts of a stream begin at whole blocks of words

void random_fill(Team team, const RandomFill& p) {
  const bool words = p.kind == RandomKind::bits;
  if (words ? p.dtype != DType::u32 : !is_float(p.dtype) || is_storage_only(p.dtype)) {
    throw invalid("random_fill: dtype is ", p.dtype, "; it must be ", words ? "u32 for bits" : "a float");
  }
  const auto run = random_kernels().fill;
  const int64_t size = int64_t(dtype_size(p.dtype));
  const auto stream = [&](int64_t s, int64_t begin, int64_t end) {
    run(p, p.keys[s], p.counters[s], begin, end, static_cast<std::byte*>(p.y) + s * p.count * size);
  };
  if (p.streams >= 2 * team.threads()) {
    const int64_t grain = rows_worth(kHeavyGrain, p.count);
    team.parallel_for(p.streams, grain, [&](int64_t b, int64_t e) {
      for (int64_t s = b; s < e; ++s) stream(s, 0, p.count);
    });
    return;
  }
  for (int64_t s = 0; s < p.streams; ++s) {
    team.parallel_for(p.count, kHeavyGrain, [&](int64_t b, int64_t e) { stream(s, b, e); });
  }
}

void dropout(Team team, const Dropout& p) {
  RLX_CHECK(p.rate >= 0 && p.rate < 1, "dropout with rate ", p.rate);
  const auto threshold = uint32_t(std::min(std::nearbyint(p.rate * 0x1p32), 0x1p32 - 1));
  const auto scale = float(1 / (1 - p.rate));
  const auto run = random_kernels().dropout;
  team.parallel_for(p.count, kHeavyGrain, [&](int64_t b, int64_t e) { run(p, threshold, scale, b, e); });
}

}  // namespace rlx::cpu
