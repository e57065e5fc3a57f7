// What the kernels of whole loops have in common: two blocks share a row of the state, kWidth columns of which kHalf are theirs, four threads a column. Stands in
// front of kernels/scan_product.h and kernels/scan_between.h.
#pragma once

namespace rlx::cuda {

inline constexpr char kScanCluster[] = R"cuda(
constexpr int kHalf = (kWidth + 1) / 2, kDepth = (kWidth + 3) / 4;
inline void store_in_block(f32* own, u32 rank, f32 x) {
  u32 place;
  asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(place) : "r"(u32(__cvta_generic_to_shared(own))), "r"(rank));
  asm volatile("st.shared::cluster.f32 [%0], %1;" :: "r"(place), "f"(x) : "memory");
}
inline void join_cluster() {
  asm volatile("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;" ::: "memory");
}
)cuda";

}  // namespace rlx::cuda
