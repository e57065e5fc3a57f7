// Blocks of a cluster: who a block is, where all of them wait for each other, and the shared memory of another one, told by the place in the own. Cards
// before compute capability 9.0 have clusters of one block.
#pragma once

namespace rlx::cuda {

inline constexpr char kClusterBlocks[] = R"cuda(
#if __CUDA_ARCH__ >= 900
inline u32 rank_in_cluster() { u32 x; asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(x)); return x; }
inline void arrive_in_cluster() { asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory"); }
inline void wait_for_cluster() { asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory"); }
inline void join_cluster() {
  arrive_in_cluster();
  wait_for_cluster();
}
inline f32 in_block(const f32* own, u32 rank) {
  u32 place;
  asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(place) : "r"(u32(__cvta_generic_to_shared(own))), "r"(rank));
  f32 x;
  asm volatile("ld.shared::cluster.f32 %0, [%1];" : "=f"(x) : "r"(place));
  return x;
}
inline void store_in_block(f32* own, u32 rank, f32 x) {
  u32 place;
  asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(place) : "r"(u32(__cvta_generic_to_shared(own))), "r"(rank));
  asm volatile("st.shared::cluster.f32 [%0], %1;" :: "r"(place), "f"(x) : "memory");
}
#else
inline u32 rank_in_cluster() { return 0; }
inline void arrive_in_cluster() {}
inline void wait_for_cluster() {}
inline void join_cluster() {}
inline f32 in_block(const f32* own, u32) { return *own; }
inline void store_in_block(f32* own, u32, f32 x) { *own = x; }
#endif
)cuda";

}  // namespace rlx::cuda
