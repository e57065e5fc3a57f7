// Which splats each tile sees, nearest first. Splats are sorted by distance; entry g of all lists, in the order in which they are made, belongs to the splat in whose
// run of tiles g falls; entries are then sorted by tile, stably, so that each list keeps the order of distances.
//
// kSplatSizes stands before each; before that kSplats, kEntries, kWidth, kHeight, kTileSize.
#pragma once

namespace rlx::cuda {

inline constexpr char kSplatSizes[] = R"cuda(
constexpr int kThreads = 256;
constexpr i64 kAcross = (kWidth + kTileSize - 1) / kTileSize, kTiles = kAcross * ((kHeight + kTileSize - 1) / kTileSize);
struct Box { i32 left, top, columns, count; };
)cuda";

// Before it stand also the words of the host, rlx/math/splat_view, T (type of the operands), kRadiusScale and kCutoff.
inline constexpr char kSplatBoxes[] = R"cuda(
using namespace rlx::splat;
// The distance of each splat and the tiles that it may touch. NaN is never listed, but it must have a place.
extern "C" __global__ void __launch_bounds__(kThreads)
splat_boxes(const T* positions, const T* scales, const T* rotations, const T* logits, const T* meta, f64* distances, Box* boxes) {
  const i64 i = i64(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= kSplats) return;
  f64 m[15], p[3], q[4];
  for (int k = 0; k < 15; ++k) m[k] = as_f64(meta[k]);
  for (int k = 0; k < 3; ++k) p[k] = as_f64(positions[3 * i + k]);
  for (int k = 0; k < 4; ++k) q[k] = as_f64(rotations[4 * i + k]);
  const Camera camera(m, kHeight);
  const Screen screen{kWidth, kHeight, kTileSize};
  const Vec v = minus(read(p), camera.position);
  const f64 square = dot(v, v);
  distances[i] = square == square ? square : from_bits(0x7ff0000000000000ull);
  Splat s;
  s.position = read(p);
  s.axes = Quaternion(q).axes();
  s.opacity = sigmoid(as_f64(logits[i]));
  for (int k = 0; k < 3; ++k) s.radii[k] = exp(as_f64(scales[3 * i + k])) * kRadiusScale;
  const TileBox box = tile_box(s, kCutoff, camera, screen);
  const i64 columns = box.right - box.left, rows = box.bottom - box.top;
  boxes[i] = {i32(box.left), i32(box.top), i32(columns), columns > 0 && rows > 0 ? i32(columns * rows) : 0};
}
)cuda";

inline constexpr char kSplatSums[] = R"cuda(
// Entries of kThreads splats together, in the order of distances.
extern "C" __global__ void __launch_bounds__(kThreads) splat_sums(const i32* order, const Box* boxes, i64* sums) {
  __shared__ i64 parts[kThreads / 32];
  const i64 i = i64(blockIdx.x) * kThreads + threadIdx.x;
  const i64 all = over_block<Sum, kThreads / 32>(i < kSplats ? i64(boxes[order[i]].count) : i64(0), parts);
  if (threadIdx.x == 0) sums[blockIdx.x] = all;
}
)cuda";

inline constexpr char kSplatStarts[] = R"cuda(
// Where the entries of each splat begin; one more for the end of the last. What found no room is counted.
extern "C" __global__ void __launch_bounds__(kThreads)
splat_starts(const i32* order, const Box* boxes, const i64* sums, i64* starts, i32* dropped) {
  __shared__ i64 parts[kThreads / 32], warps[kThreads / 32];
  i64 before = 0;
  for (u32 b = threadIdx.x; b < blockIdx.x; b += kThreads) before += sums[b];
  before = over_block<Sum, kThreads / 32>(before, parts);
  const i64 i = i64(blockIdx.x) * kThreads + threadIdx.x;
  const i64 own = i < kSplats ? i64(boxes[order[i]].count) : i64(0);
  const int lane = threadIdx.x % 32;
  i64 sum = own;
  for (int o = 1; o < 32; o *= 2) {
    const i64 left = __shfl_up_sync(~0u, sum, o);
    sum += lane >= o ? left : 0;
  }
  if (lane == 31) warps[threadIdx.x / 32] = sum;
  __syncthreads();
  for (u32 w = 0; w < threadIdx.x / 32; ++w) before += warps[w];
  if (i < kSplats) starts[i] = before + sum - own;
  if (i == kSplats - 1) {
    starts[kSplats] = before + sum;
    *dropped = i32(before + sum > kEntries ? before + sum - kEntries : 0);
  }
}
)cuda";

inline constexpr char kSplatEntries[] = R"cuda(
// The tile and the splat of each entry; those that nobody has come last.
extern "C" __global__ void __launch_bounds__(kThreads)
splat_entries(const i32* order, const Box* boxes, const i64* starts, i32* tiles, i32* splats) {
  const i64 g = i64(blockIdx.x) * kThreads + threadIdx.x;
  if (g >= kEntries) return;
  if (g >= starts[kSplats]) {
    tiles[g] = i32(kTiles), splats[g] = i32(kSplats);
    return;
  }
  i64 low = 0, high = kSplats;  // the last splat that begins at g or before: its neighbours without entries begin there too
  while (high - low > 1) {
    const i64 middle = (low + high) / 2;
    if (starts[middle] <= g) low = middle; else high = middle;
  }
  const Box b = boxes[order[low]];
  const i64 at = g - starts[low];
  tiles[g] = i32((b.top + at / b.columns) * kAcross + b.left + at % b.columns);
  splats[g] = order[low];
}
)cuda";

inline constexpr char kSplatLists[] = R"cuda(
// Lists from sorted entries, and where the list of each tile begins and ends.
extern "C" __global__ void __launch_bounds__(kThreads)
splat_lists(const i32* sorted, const i32* places, const i32* splats, i32* ids, i32* ranges) {
  const i64 e = i64(blockIdx.x) * kThreads + threadIdx.x;
  if (e < kEntries) ids[e] = splats[places[e]];
  if (e >= 2 * kTiles) return;
  const i64 tile = e / 2 + e % 2;
  i64 low = 0, high = kEntries;
  while (low < high) {
    const i64 middle = (low + high) / 2;
    if (sorted[middle] < tile) low = middle + 1; else high = middle;
  }
  ranges[e] = i32(low);
}
)cuda";

}  // namespace rlx::cuda
