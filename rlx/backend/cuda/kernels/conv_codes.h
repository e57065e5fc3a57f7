// A convolution of 8-bit codes as a product of matrices that are never written down, on integer matrix units: kM output channels x kN positions for a block, summed over
// slices of 32 input channels of one tap. Words of four channels are put together in registers, from bytes that lie side by side for neighbouring positions, while
// the slice before is multiplied.
//
//   sum of (x - x0)(w - w0) = sum of x w - w0 sum of x - x0 sum of w + terms x0 w0
//
// with x0 in the place of x outside of the image, so that such terms are 0; codes of u8 and x0 are 128 less. Channels that fill the last slice are 0 in both.
// The first three sums are whole numbers of 32 bits (kInputs taps 2^14 < 2^31).
//
// Before it stand X (type of x and y), finish(to, sum, channel), kUnsigned, kInputs and kOutputs of a group, kGroups, kPositions, kOutH, kOutW, kHeight, kWidth, kTapsH,
// kTapsW, kStrideH, kStrideW, kPadH, kPadW, kStepH, kStepW, strides of x kXs0 .. kXs3, kXZero, kWZero.
#pragma once

namespace rlx::cuda {

inline constexpr char kConvCodes[] = R"cuda(
constexpr int kM = 64, kN = 128, kRow = 12;  // words of a row in shared memory: eight, and four so that lanes meet different banks
constexpr int kTaps = kTapsH * kTapsW, kChunks = (kInputs + 31) / 32, kSlices = kTaps * kChunks;
constexpr int kX0 = kXZero - (kUnsigned ? 128 : 0);
constexpr u32 kFlip = kUnsigned ? 0x80808080u : 0u, kNothing = kUnsigned ? 128u : 0u, kOutside = u32(kXZero) & 255u;

inline void multiply_codes(i32 (&c)[4], const u32 (&a)[4], u32 b0, u32 b1) {
  asm("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
inline i32 sum_of_row(const u32* row, i32 sum) {
  #pragma unroll
  for (int i = 0; i < 8; ++i) sum = __dp4a(i32(row[i]), 0x01010101, sum);
  return sum;
}

extern "C" __global__ void __launch_bounds__(256) conv_codes(const u8* x, const u8* w, const i32* bias, X* y) {
  __shared__ alignas(16) u32 ws[kM * kRow], xs[kN * kRow];
  __shared__ i32 w_sums[kM], x_sums[kN];
  const int tid = threadIdx.x, lane = tid % 32, warp = tid / 32, g = lane / 4, t = lane % 4;
  const int wm = warp % 2 * 32, wn = warp / 2 * 32, group = blockIdx.z, m0 = blockIdx.y * kM;
  const i64 p0 = i64(blockIdx.x) * kN;
  // A thread brings four words of one position and two of one channel.
  const int px = tid % kN, qx = tid / kN * 4, mw = tid / 4, qw = tid % 4 * 2;
  const bool there = p0 + px < kPositions, row_there = m0 + mw < kOutputs;
  const u32 p = there ? u32(p0 + px) : 0u, place = p % (kOutH * kOutW);
  const int top = int(place / kOutW) * kStrideH - kPadH, left = int(place % kOutW) * kStrideW - kPadW;
  const u8* const image = x + i64(p / (kOutH * kOutW)) * kXs0 + i64(group) * kInputs * kXs1;
  const u8* const row = w + i64(group * kOutputs + (row_there ? m0 + mw : 0)) * kInputs * kTaps;

  u32 next_x[4], next_w[2];
  const auto ask = [&](int slice) {
    const int tap = slice / kChunks, c0 = slice % kChunks * 32;
    const int iy = top + tap / kTapsW * kStepH, ix = left + tap % kTapsW * kStepW;
    const bool inside = there && iy >= 0 && iy < kHeight && ix >= 0 && ix < kWidth;
    const u8* const from = inside ? image + i64(iy) * kXs2 + i64(ix) * kXs3 : image;
    #pragma unroll
    for (int q = 0; q < 4; ++q) {
      u32 word = 0;
      #pragma unroll
      for (int b = 0; b < 4; ++b) {
        const int c = c0 + (qx + q) * 4 + b;
        const u32 code = c >= kInputs ? kNothing : inside ? u32(from[i64(c) * kXs1]) : kOutside;
        word |= code << (8 * b);
      }
      next_x[q] = word ^ kFlip;
    }
    #pragma unroll
    for (int q = 0; q < 2; ++q) {
      u32 word = 0;
      #pragma unroll
      for (int b = 0; b < 4; ++b) {
        const int c = c0 + (qw + q) * 4 + b;
        word |= (row_there && c < kInputs ? u32(row[c * kTaps + tap]) : 0u) << (8 * b);
      }
      next_w[q] = word;
    }
  };

  i32 sums[2][4][4] = {};
  i32 row_sum = 0;
  ask(0);
  #pragma unroll 1
  for (int slice = 0; slice < kSlices; ++slice) {
    __syncthreads();  // nobody reads the slice before any more
    Pack<u32, 4> four;
    #pragma unroll
    for (int q = 0; q < 4; ++q) four.v[q] = next_x[q];
    store(xs + px * kRow + qx, four);
    #pragma unroll
    for (int q = 0; q < 2; ++q) ws[mw * kRow + qw + q] = next_w[q];
    __syncthreads();
    if (slice + 1 < kSlices) ask(slice + 1);
    u32 a[2][4];
    #pragma unroll
    for (int i = 0; i < 2; ++i) {
      #pragma unroll
      for (int e = 0; e < 4; ++e) a[i][e] = ws[(wm + 16 * i + g + e % 2 * 8) * kRow + t + e / 2 * 4];
    }
    #pragma unroll
    for (int j = 0; j < 4; ++j) {
      const u32* const b = xs + (wn + 8 * j + g) * kRow + t;
      #pragma unroll
      for (int i = 0; i < 2; ++i) multiply_codes(sums[i][j], a[i], b[0], b[4]);
    }
    if (kX0 != 0 && tid < kM) row_sum = sum_of_row(ws + tid * kRow, row_sum);
    if (kWZero != 0 && tid >= kN) row_sum = sum_of_row(xs + (tid - kN) * kRow, row_sum);
  }
  if (kX0 != 0 && tid < kM) w_sums[tid] = row_sum;
  if (kWZero != 0 && tid >= kN) x_sums[tid - kN] = row_sum;
  __syncthreads();

  #pragma unroll
  for (int i = 0; i < 2; ++i) {
    #pragma unroll
    for (int j = 0; j < 4; ++j) {
      #pragma unroll
      for (int e = 0; e < 4; ++e) {
        const int m = wm + 16 * i + g + e / 2 * 8, n = wn + 8 * j + 2 * t + e % 2;
        if (m0 + m >= kOutputs || p0 + n >= kPositions) continue;
        i64 sum = i64(sums[i][j][e]) + i64(kInputs) * kTaps * kX0 * kWZero;
        if (kX0 != 0) sum -= i64(kX0) * w_sums[m];
        if (kWZero != 0) sum -= i64(kWZero) * x_sums[n];
        const u32 at = u32(p0 + n), channel = group * kOutputs + m0 + m;
        finish(y[(i64(at / (kOutH * kOutW)) * kGroups * kOutputs + channel) * (kOutH * kOutW) + at % (kOutH * kOutW)],
               sum + bias[channel], channel);
      }
    }
  }
}
)cuda";

}  // namespace rlx::cuda
