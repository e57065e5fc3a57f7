// Convolutions whose groups have few output channels, such as depthwise ones. Limit: bytes of x and y.
//   conv_few    a thread has kEach neighbours along the last axis but one in kOut channels: a number of x is read once for all of them. Lanes are neighbours along the last axis
//   conv_long   kernels as large as an image (the gradient in the weights of a depthwise convolution): a block has all positions of one image and channel, its threads share the terms
// After kConvPlaces; before it stand also T, Acc and the macro kRead, from T to Acc. kEach and kOut for the first; kSplits for the second, with parts as in conv_fma.h.
#pragma once

namespace rlx::cuda {

inline constexpr char kConvFew[] = R"cuda(
constexpr int kStrips = (kY1 + kEach - 1) / kEach, kChunks = (kOutputs + kOut - 1) / kOut;
// Rows of x, from the first one of a thread, that its results meet.
constexpr int least(int a, int b) { return a < b ? a : b; }
constexpr int most(int a, int b) { return a > b ? a : b; }
constexpr int kLow = least(0, (kEach - 1) * kStride1) + least(0, (kW1 - 1) * kDilation1);
constexpr int kHigh = most(0, (kEach - 1) * kStride1) + most(0, (kW1 - 1) * kDilation1);
// Neighbours beyond the last result meet rows beyond x, however far inside all real results lie.
constexpr bool kRowsInside = kInside1 && kY1 % kEach == 0;

extern "C" __global__ void __launch_bounds__(256) conv_few(const T* x, const T* w, Params y) {
  __shared__ Acc weights[kTaps * kInputs * kOut];
  const u32 group = blockIdx.y / kChunks, first = blockIdx.y % kChunks * kOut;
  for (u32 e = threadIdx.x; e < kTaps * kInputs * kOut; e += 256) {
    const u32 o = e % kOut, input = e / kOut % kInputs, tap = e / (kOut * kInputs);
    weights[e] = first + o < kOutputs ? kRead(w[int(group * kOutputs + first + o) * kWsOuter + weight_at({tap, input, true})]) : Acc(0);
  }
  __syncthreads();
  const u32 e = blockIdx.x * 256 + threadIdx.x;
  if (e >= u32(kBatch * kY0 * kStrips * kY2)) return;
  const int o2 = e % kY2, o1 = e / kY2 % kStrips * kEach, o0 = e / (kY2 * kStrips) % kY0, n = e / (kY2 * kStrips * kY0);
  const int i0 = o0 * kStride0 + kStart0, i1 = o1 * kStride1 + kStart1, i2 = o2 * kStride2 + kStart2;
  x += kXsFirst + i64(group) * kInputs * kXsChannel + i64(n) * kXsOuter + i64(i0) * kXs0 + i64(i1) * kXs1 + i64(i2) * kXs2;
  Acc sums[kEach][kOut] = {};
  #pragma unroll 1
  for (int input = 0; input < kInputs; ++input) {
    #pragma unroll 1
    for (int k0 = 0; k0 < kW0; ++k0) {
      if (!kInside0 && u32(i0 + k0 * kDilation0) >= u32(kX0)) continue;
      const T* const plane = x + i64(input) * kXsChannel + i64(k0) * kDilation0 * kXs0;
      const Acc* const taps = weights + (k0 * kW1 * kW2 * kInputs + input) * kOut;
      #pragma unroll
      for (int v = kLow; v <= kHigh; ++v) {
        const bool row = kRowsInside || u32(i1 + v) < u32(kX1);
        #pragma unroll
        for (int k2 = 0; k2 < kW2; ++k2) {
          Acc value = 0;
          if (row && (kInside2 || u32(i2 + k2 * kDilation2) < u32(kX2))) value = kRead(plane[v * kXs1 + k2 * kDilation2 * kXs2]);
          #pragma unroll
          for (int j = 0; j < kEach; ++j) {
            const int d = v - j * kStride1, k1 = d / kDilation1;
            if (d % kDilation1 != 0 || k1 < 0 || k1 >= kW1) continue;
            #pragma unroll
            for (int o = 0; o < kOut; ++o) sums[j][o] = op_fma(value, taps[(k1 * kW2 + k2) * kInputs * kOut + o], sums[j][o]);
          }
        }
      }
    }
  }
  const i64 at = kYsFirst + i64(n) * kYsOuter + i64(o0) * kYs0 + i64(o1) * kYs1 + i64(o2) * kYs2 + i64(group * kOutputs + first) * kYsChannel;
  #pragma unroll
  for (int j = 0; j < kEach; ++j) {
    #pragma unroll
    for (int o = 0; o < kOut; ++o) {
      if (o1 + j < kY1 && first + o < kOutputs) finish(y, at + j * kYs1 + o * kYsChannel, sums[j][o]);
    }
  }
}
)cuda";

inline constexpr char kConvLong[] = R"cuda(
extern "C" __global__ void __launch_bounds__(256) conv_long(const T* x, const T* w, Params y, Acc* parts) {
  constexpr u32 kImage = kY0 * kY1 * kY2, kTerms = (kDepth + kSplits - 1) / kSplits;
  __shared__ Acc found[8];
  const u32 n = blockIdx.x, channel = blockIdx.y, group = channel / kOutputs;
  const u32 first = blockIdx.z * kTerms, last = first + kTerms < kDepth ? first + kTerms : kDepth;
  x += i64(group) * kInputs * kXsChannel + i64(n) * kXsOuter;
  w += i64(channel) * kWsOuter;
  Acc sums[kImage] = {};
  for (u32 k = first + threadIdx.x; k < last; k += 256) {
    const Term term = term_of(k);
    const Place t = tap_of(term.tap);
    const Acc weight = kRead(w[weight_at(term)]);
    const T* const from = x + int(term.input) * kXsChannel + t.at;
    #pragma unroll
    for (u32 p = 0; p < kImage; ++p) {
      const Place place = place_at(p);
      if (inside(place, t)) sums[p] = op_fma(kRead(from[place.at]), weight, sums[p]);
    }
  }
  #pragma unroll
  for (u32 p = 0; p < kImage; ++p) {
    const Acc sum = over_block<Sum, 8>(sums[p], found);
    if (threadIdx.x != 0) continue;
    const u32 at = n * kImage + p;
    if (kSplits > 1) parts[i64(blockIdx.z * kGroups * kOutputs + channel) * kPositions + at] = sum;
    else finish(y, result_at(at) + i64(channel) * kYsChannel, sum);
  }
}
)cuda";

}  // namespace rlx::cuda
