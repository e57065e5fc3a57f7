// What the kernels of convolutions share: a convolution as a product of matrices that are never written down,
//   y[co, p] = sum over k of w[co, k] x[p, k],   p = (n, o0, o1, o2) a position, k = (tap, ci) or (ci, tap) a term,
// for each group. The element of x at (p, k) lies at the sum of an offset of p and one of k, and is there when on each axis the sum of two
// coordinates lies inside. Before it stand the constants of nodes/conv_geometry.cpp and
//   kAlong   terms are (ci, tap) and neighbouring lanes take neighbouring terms: kernels as large as an image, the gradient in the weights.
//            Otherwise terms are (tap, ci) and neighbouring lanes take neighbouring positions
//   kSub     so many terms that begin at a multiple of it have one tap (1, 2, 4 or 8): the channels of a tap are filled up to a multiple
//   kChunk   0, or (terms are not along) terms are (kChunk channels, tap, one of them): neighbouring slices meet nearly the same elements of x
//   kSlice   terms that are in shared memory together
//   kAcross  columns of the product are (o, n), n filled up to a multiple of 8, instead of positions (n, o)
// All sizes are constants, so that quotients are products and shifts. What happens to a result is said by nodes/conv_steps.cpp:
//   Params                       where results go, and what the operators behind the convolution read
//   kPlain, T* plain_results(p)  results are stored as they are, there
//   void finish(p, at, sum)      one result, whose place in y is `at`
#pragma once

namespace rlx::cuda {

inline constexpr char kConvPlaces[] = R"cuda(
constexpr u32 kTaps = kW0 * kW1 * kW2, kPositions = kBatch * kY0 * kY1 * kY2;
constexpr u32 kPadded = kAlong ? kInputs : (kInputs + kSub - 1) / kSub * kSub;
constexpr u32 kDepth = kTaps * kPadded, kSlices = (kDepth + kSlice - 1) / kSlice;
constexpr u32 kOfImage = kY0 * kY1 * kY2, kImages = (kBatch + 7) / 8 * 8, kColumns = kAcross ? kOfImage * kImages : kPositions;
inline bool is_column(u32 c) { return c < kColumns && (!kAcross || c % kImages < kBatch); }
inline u32 position_of(u32 c) { return kAcross ? c % kImages * kOfImage + c / kImages : c; }

// Of a position: where its term of tap 0 and channel 0 lies in x, and the coordinates of that; of a tap: what it adds to them.
struct alignas(16) Place { i32 at, i0, i1, i2; };

inline Place place_at(u32 p) {
  const int o2 = p % kY2, o1 = p / kY2 % kY1, o0 = p / (kY2 * kY1) % kY0, n = p / (kY2 * kY1 * kY0);
  const int i0 = o0 * kStride0 + kStart0, i1 = o1 * kStride1 + kStart1, i2 = o2 * kStride2 + kStart2;
  return {kXsFirst + n * kXsOuter + i0 * kXs0 + i1 * kXs1 + i2 * kXs2, i0, i1, i2};
}
inline Place tap_of(u32 tap) {
  const int i2 = int(tap % kW2) * kDilation2, i1 = int(tap / kW2 % kW1) * kDilation1, i0 = int(tap / (kW2 * kW1)) * kDilation0;
  return {i0 * kXs0 + i1 * kXs1 + i2 * kXs2, i0, i1, i2};
}
inline bool inside(const Place& p, const Place& t) {
  return (kInside0 || u32(p.i0 + t.i0) < u32(kX0)) && (kInside1 || u32(p.i1 + t.i1) < u32(kX1)) && (kInside2 || u32(p.i2 + t.i2) < u32(kX2));
}

struct Term { u32 tap, input; bool there; };
inline Term term_of(u32 k) {
  if (kAlong) return {k % kTaps, k / kTaps, k < kDepth};
  constexpr u32 kEachChunk = kChunk > 0 ? kChunk : 1;
  if (kChunk > 0) return {k / kEachChunk % kTaps, k / (kEachChunk * kTaps) * kEachChunk + k % kEachChunk, k < kDepth};
  return {k / kPadded, k % kPadded, k < kDepth && (kPadded == kInputs || k % kPadded < kInputs)};
}
inline int weight_at(const Term& t) {
  const int k2 = t.tap % kW2, k1 = t.tap / kW2 % kW1, k0 = t.tap / (kW2 * kW1);
  return kWsFirst + int(t.input) * kWsChannel + k0 * kWs0 + k1 * kWs1 + k2 * kWs2;
}
// Where the results of a position lie in y.
inline int result_at(u32 p) {
  const int o2 = p % kY2, o1 = p / kY2 % kY1, o0 = p / (kY2 * kY1) % kY0, n = p / (kY2 * kY1 * kY0);
  return kYsFirst + n * kYsOuter + o0 * kYs0 + o1 * kYs1 + o2 * kYs2;
}
)cuda";

}  // namespace rlx::cuda
