// What becomes of the sums of a tile of kM channels x kN columns on matrix units: parts of sums go out as they lie, results go through shared memory, so that neighbours are written together.
// A warp has 16 channels; its sums lie as those of the units (matrix_fragments.h). After kConvPlaces; before it stand also T, kM, kN, kSplits and kWriters (threads that write: 0, 1, ..).
#pragma once

namespace rlx::cuda {

inline constexpr char kConvResults[] = R"cuda(
constexpr u32 kLine = kN + 8;  // rows of 8 meet different banks
// How many neighbours are neighbours in y: images are runs that so many divide.
constexpr bool kImageRuns = !kAcross && (kY2 == 1 || kYs2 == 1) && (kY1 == 1 || kYs1 == kY2) && (kY0 == 1 || kYs0 == kY1 * kY2);
constexpr u32 together(u32 n) {
  return n == 1 || (kImageRuns && (kY0 * kY1 * kY2) % n == 0 && kYsFirst % int(n) == 0 && kYsChannel % int(n) == 0 && (kBatch == 1 || kYsOuter % int(n) == 0) && kN % n == 0)
             ? n : together(n / 2);
}
constexpr u32 kTogether = together(8);

// Of channels from m and columns from c on, parts [kSplits][group][kOutputs][kColumns].
template <int Wide> void write_parts(const f32 (&sums)[Wide][4], u32 m, u32 c, u32 group, f32* parts) {
  const u32 lane = threadIdx.x % 32;
  #pragma unroll
  for (u32 h = 0; h < 2; ++h) {
    const u32 channel = m + h * 8 + lane / 4;
    if (channel >= kOutputs) continue;
    f32* const row = parts + (i64(blockIdx.z * kGroups + group) * kOutputs + channel) * kColumns;
    #pragma unroll
    for (u32 j = 0; j < 2 * Wide; ++j) {
      const u32 column = c + j / 2 * 8 + lane % 4 * 2 + j % 2;
      if (column < kColumns) row[column] = sums[j / 2][h * 2 + j % 2];
    }
  }
}

// Sums that are rounded here once are the results of the convolution, whatever is done to them.
template <int Wide> void keep_results(const f32 (&sums)[Wide][4], u32 row, u32 column, T* tile) {
  const u32 lane = threadIdx.x % 32;
  #pragma unroll
  for (u32 j = 0; j < Wide; ++j) {
    #pragma unroll
    for (u32 h = 0; h < 2; ++h) {
      Pack<T, 2> two;
      put(two.v[0], sums[j][2 * h]), put(two.v[1], sums[j][2 * h + 1]);
      store(tile + (row + h * 8 + lane / 4) * kLine + column + j * 8 + lane % 4 * 2, two);
    }
  }
}

// By kWriters threads, when the tile is whole.
inline void write_results(const T* tile, u32 m0, u32 c0, u32 group, const Params& y) {
  if (kPlain && kTogether > 1 && reinterpret_cast<u64>(plain_results(y)) % (2 * kTogether) == 0) {
    constexpr u32 kPieces = kN / kTogether;
    #pragma unroll 4
    for (u32 e = threadIdx.x; e < kM * kPieces; e += kWriters) {
      const u32 row = e / kPieces, column = e % kPieces * kTogether;
      if (m0 + row >= kOutputs || c0 + column >= kColumns) continue;
      store(plain_results(y) + result_at(c0 + column) + i64(group * kOutputs + m0 + row) * kYsChannel, load<int(kTogether)>(tile + row * kLine + column));
    }
    return;
  }
  #pragma unroll 2
  for (u32 e = threadIdx.x; e < kM * kN; e += kWriters) {
    const u32 row = e / kN, column = e % kN;
    if (m0 + row >= kOutputs || !is_column(c0 + column)) continue;
    finish(y, result_at(position_of(c0 + column)) + i64(group * kOutputs + m0 + row) * kYsChannel, as_f32(tile[row * kLine + column]));
  }
}
)cuda";

}  // namespace rlx::cuda
