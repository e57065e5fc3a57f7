// Pieces of slices in shared memory, for f16 and bf16: rows of 128 bytes, of which piece c of 16 bytes of row r lies at piece c ^ (r % 8), so that eight rows meet all banks.
#pragma once

namespace rlx::cuda {

inline constexpr char kConvPieces[] = R"cuda(
inline u32 piece_at(u32 row, u32 piece) { return row * 128 + ((piece ^ row % 8) * 16); }

// kRun elements (2, 4 or 8), or zeros. `aligned`: `from` is a multiple of their size; then they are on their way when it returns.
template <int kRun> void copy_run(u32 to, const T* from, bool there, bool aligned) {
  if (aligned) {
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" :: "r"(to), "l"(from), "n"(2 * kRun), "r"(there ? 2 * kRun : 0) : "memory");
    return;
  }
  #pragma unroll
  for (int i = 0; i < kRun / 2; ++i) {
    const u32 two = there ? from[2 * i].bits | u32(from[2 * i + 1].bits) << 16 : 0;
    asm volatile("st.shared.b32 [%0], %1;" :: "r"(to + 4 * i), "r"(two) : "memory");
  }
}
)cuda";

}  // namespace rlx::cuda
