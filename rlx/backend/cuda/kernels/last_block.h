// Blocks that share a result and wait for nobody: each writes its part and counts itself, and the last one to come adds all parts in their order, so that the result does not depend on who that was. The words that count are zero before a kernel and behind it.
#pragma once

namespace rlx::cuda {

inline constexpr char kLastBlock[] = R"cuda(
// Whether this block is the last of `count` that come here; then it sees what all of them wrote before, by loads that go around the first cache. All threads come.
inline bool is_last_block(u32* word, u32 count) {
  __shared__ u32 before;
  __syncthreads();  // the part is written, and nobody reads `before` of the time before
  if (threadIdx.x == 0) {
    __threadfence();
    before = atomicAdd(word, 1u);
    if (before + 1 == count) atomicExch(word, 0u);
    __threadfence();
  }
  __syncthreads();
  return before + 1 == count;
}
)cuda";

}  // namespace rlx::cuda
