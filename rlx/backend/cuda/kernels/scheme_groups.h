// Products of very many rows with weights whose scales lie beside their codes, on the matrix units of Hopper: 256 columns of the weights and 128 rows of x for a block of two groups of four
// warps. Both operands are tiles of 64 k in shared memory, laid out as matrix_groups.h says. Weights go from memory into registers and from there, decoded, into one of two tiles
// [256][64], while the products of the other run; x comes through a ring of kStages tiles [128][64].
// A warp decodes 32 columns. Column 4 g + j of them, which lane (g, t) has, is row 8 j + g of its tile: lanes then write to different banks.
// After kSchemeShared, kSchemeFragments and kMatrixGroups, with kLane = 4, kWide and kWideX.
#pragma once

namespace rlx::cuda {

inline constexpr char kSchemeGroups[] = R"cuda(
constexpr int kStages = 4, kDeep = 64, kSteps = kDeep / 16, kStageCount = (kFeatures + kDeep - 1) / kDeep;
constexpr int kRowsBytes = 128 * 128, kWeightBytes = 256 * 128;

extern "C" __global__ void __launch_bounds__(256, 1) scheme_groups(Params p) {
  extern __shared__ uint4 shared[];
  const u32 weights = (place_of(shared) + 1023) & ~1023u, ring = weights + 2 * kWeightBytes;
  const int lane = threadIdx.x % 32, warp = __shfl_sync(~0u, threadIdx.x / 32, 0), g = lane / 4, t = lane % 4;
  const int row0 = blockIdx.y * 128, block0 = blockIdx.x * 256, c = lane_column(block0 + warp * 32, g);
  const auto ask = [&](int stage) {
    if (stage < kStageCount) {
      #pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int e = i * 256 + threadIdx.x, row = e / 8, piece = e % 8, k = stage * kDeep + piece * 8;
        const bool there = row0 + row < kRows && k < kFeatures;
        const T* const from = p.x + (there ? i64(row0 + row) * kFeatures + k : 0);
        asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;"
                     :: "r"(ring + stage % kStages * kRowsBytes + row * 128 + (piece ^ row % 8) * 16), "l"(from), "r"(there ? 16 : 0) : "memory");
      }
    }
    asm volatile("cp.async.commit_group;" ::: "memory");
  };
  Codes w[kSteps];
  Factors f[kSteps];
  const auto fetch = [&](int stage, int s) {
    if (stage >= kStageCount) return;
    const int k = stage * kDeep + s * 16 + 4 * t;
    w[s].fetch(p.w.codes, k, c);
    if (kRun > 1) f[s].fetch(p.w, k, c);
  };
  // The weights of a stage into their tile; those of the next are on their way then.
  const auto decode = [&](int stage) {
    const u32 tile = weights + stage % 2 * kWeightBytes + (warp * 32 + g) * 128;
    #pragma unroll
    for (int s = 0; s < kSteps; ++s) {
      u32 a[2][4];
      #pragma unroll
      for (int i = 0; i < 2; ++i) scaled_rows(a[i], w[s], f[s], p.w, stage * kDeep + s * 16 + 4 * t, c, i);
      fetch(stage + 1, s);
      #pragma unroll
      for (int j = 0; j < 4; ++j)
        asm volatile("st.shared.v2.b32 [%0], {%1,%2};" :: "r"(tile + j * 1024 + ((2 * s + t / 2) ^ g) * 16 + t % 2 * 8), "r"(a[j / 2][j % 2]), "r"(a[j / 2][2 + j % 2]) : "memory");
    }
  };
  const auto fetch_first = [&] {
    #pragma unroll
    for (int s = 0; s < kSteps; ++s) fetch(0, s);
  };
  if (kEarly) fetch_first();
  begin_alone();
  if (!kEarly) fetch_first();
  #pragma unroll
  for (int i = 0; i < kStages - 1; ++i) ask(i);
  decode(0);
  f32 acc[2][16][4] = {};
  hold(acc[0]);
  hold(acc[1]);
  for (int stage = 0; stage < kStageCount; ++stage) {
    asm volatile("cp.async.wait_group %0;\nfence.proxy.async;" :: "n"(kStages - 2) : "memory");
    __syncthreads();  // both tiles are there, and nobody reads those before them any more
    ask(stage + kStages - 1);
    const u32 left = weights + stage % 2 * kWeightBytes + warp / 4 * 16384, right = ring + stage % kStages * kRowsBytes;
    products_begin();
    #pragma unroll
    for (int s = 0; s < kSteps; ++s) {
      #pragma unroll
      for (int i = 0; i < 2; ++i) multiply128(acc[i], tile_at(left + i * 8192 + s * 32), tile_at(right + s * 32), 1, T{});
    }
    products_commit();
    if (stage + 1 < kStageCount) decode(stage + 1);
    products_wait<0>();
    hold(acc[0]);
    hold(acc[1]);
  }
  // Row r of product i of a group: column 4 (r % 8) + r % 32 / 8 of warp 2 i + r / 32 of it; a thread has rows 16 v + g and 16 v + g + 8 of warp v.
  #pragma unroll
  for (int i = 0; i < 2; ++i) {
    const int column = block0 + (warp / 4 * 4 + 2 * i + warp % 4 / 2) * 32 + 4 * g + warp % 2 * 2;
    if (column >= kColumns) continue;
    #pragma unroll
    for (int n = 0; n < 16; ++n) {
      #pragma unroll
      for (int e = 0; e < 2; ++e) {
        const int row = row0 + n * 8 + t * 2 + e;
        if (row >= kRows) continue;
        Pack<T, 2> two;
        put(two.v[0], finished(p, acc[i][n][e], column));
        put(two.v[1], finished(p, acc[i][n][2 + e], column + 1));
        store(p.y + i64(row) * kColumns + column, two);
      }
    }
  }
}
)cuda";

}  // namespace rlx::cuda
