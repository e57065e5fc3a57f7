// What products of fp8 add to those of groups of warps (product_turns.h): slices of 128 along k are scaled where scales change along k, else the sums at their end.
// Before it stand, beside what that kernel needs, Params with of_x and of_w[kSides], kScaledRows and kScaledColumns (whether they are there), kGroup (128, or 0: scales do not change along k), and the
// steps of scales in elements: kRowStep and kRowGroup of x along rows and groups, kColumnGroup and kColumnStep of w along groups and blocks of kColumnBlock columns. Where there are groups a block is
// a multiple of 64 columns.
#pragma once

namespace rlx::cuda {

inline constexpr char kProductScales[] = R"cuda(
constexpr int kRuns = (kWide + 63) / 64;  // of columns that share a scale
inline int within(int x, int count) { return x < count ? x : count - 1; }

// Of the lane's rows, `row` and 8 more of each half, and of each run of columns.
struct SliceFactors {
  f32 row[kHalves][2], column[kSides][kRuns];
  SliceFactors(const Params& p, int slice, int row0, int rows, int column0) {
    if (kGroup == 0) return;
    #pragma unroll
    for (int h = 0; h < kHalves * 2; ++h)
      row[h / 2][h % 2] = kScaledRows ? p.of_x[i64(within(row0 + h / 2 * 64 + h % 2 * 8, rows)) * kRowStep + slice * kRowGroup] : 1.0f;
    #pragma unroll
    for (int i = 0; i < kSides * kRuns; ++i)
      column[i / kRuns][i % kRuns] =
          kScaledColumns ? p.of_w[i / kRuns][i64(slice) * kColumnGroup + i64(within(column0 + i % kRuns * 64, kColumns) / kColumnBlock) * kColumnStep] : 1.0f;
  }
};
template <int N> void add_slice(f32 (&sums)[N][4], const f32 (&part)[N][4], const SliceFactors& f, int half, bool more) {
  #pragma unroll
  for (int n = 0; n < N; ++n) {
    constexpr int kEach = kWide / 8;  // products of a side
    #pragma unroll
    for (int e = 0; e < 4; ++e) {
      const f32 sum = more ? sums[n][e] : 0.0f;
      sums[n][e] = kGroup > 0 ? fmaf(part[n][e], f.row[half][e / 2] * f.column[n / kEach][n % kEach / 8], sum) : sum + part[n][e];
    }
  }
}
template <int N> void scale_sums(const Params& p, f32 (&sums)[N][4], int row0, int rows, int column0) {
  if (kGroup > 0 || (!kScaledRows && !kScaledColumns)) return;
  f32 row[2];
  #pragma unroll
  for (int r = 0; r < 2; ++r) row[r] = kScaledRows ? p.of_x[i64(within(row0 + 8 * r, rows)) * kRowStep] : 1.0f;
  #pragma unroll
  for (int n = 0; n < N; ++n) {
    constexpr int kEach = kWide / 8;
    #pragma unroll
    for (int e = 0; e < 4; ++e) {
      const int column = within(column0 + n % kEach * 8 + e % 2, kColumns);
      sums[n][e] *= row[e / 2] * (kScaledColumns ? p.of_w[n / kEach][i64(column / kColumnBlock) * kColumnStep] : 1.0f);
    }
  }
}
)cuda";

}  // namespace rlx::cuda
