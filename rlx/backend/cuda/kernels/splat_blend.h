// Splats blended front to back: a block for each tile, a thread for each of its pixels, which walks along the list of the tile until no light is left. All threads of a
// block read the same splat at about the same time. In f64: D = |o|^2 - (o.d)^2 / |d|^2 is a small difference of large numbers where a splat is small and far.
//
// Before it stand T (numbers), Index (of lists), kSplats, kEntries, kWidth, kHeight, kTileSize, kMostSteps, kCutoff and kDark.
#pragma once

namespace rlx::cuda {

inline constexpr char kSplatBlend[] = R"cuda(
constexpr i64 kAcross = (kWidth + kTileSize - 1) / kTileSize;

extern "C" __global__ void __launch_bounds__(256)
splat_blend(const T* color, const T* opacity, const T* origin, const T* transform, const T* rays, const Index* ids, const Index* ranges,
            const T* background, T* rgba, i32* stopped, u64* fault, u64 wrong_range, u64 wrong_id) {
  const i64 tile = blockIdx.x, first = i64(ranges[2 * tile]), last = i64(ranges[2 * tile + 1]);
  if (first < 0 || first > kEntries || last < 0 || last > kEntries) {
    *fault = (wrong_range << 40) + u64(2 * tile + (first < 0 || first > kEntries ? 0 : 1));
    return;
  }
  for (int p = threadIdx.x; p < kTileSize * kTileSize; p += 256) {
    const i64 y = tile / kAcross * kTileSize + p / kTileSize, x = tile % kAcross * kTileSize + p % kTileSize;
    if (y >= kHeight || x >= kWidth) continue;
    const T* const ray = rays + 3 * (y * kWidth + x);
    const f64 r0 = as_f64(ray[0]), r1 = as_f64(ray[1]), r2 = as_f64(ray[2]);
    f64 sum[3] = {}, light = 1;
    int steps = 0;
    for (i64 entry = first; entry < last && light >= kDark; ++entry) {
      const i64 id = i64(ids[entry]);
      if (id < 0 || id >= kSplats) {
        *fault = (wrong_id << 40) + u64(entry);
        break;
      }
      const T *const o = origin + 3 * id, *const m = transform + 9 * id;
      f64 oo = 0, od = 0, dd = 0;
      #pragma unroll
      for (int i = 0; i < 3; ++i) {
        const f64 d = as_f64(m[3 * i]) * r0 + as_f64(m[3 * i + 1]) * r1 + as_f64(m[3 * i + 2]) * r2, at = as_f64(o[i]);
        oo += at * at, od += at * d, dd += d * d;
      }
      const f64 alpha = as_f64(opacity[id]) * exp(-0.5 * (oo - od * od / dd));
      if (!(od < 0) || !(alpha >= kCutoff)) continue;
      if (steps++ == kMostSteps) {
        atomicAdd(stopped, 1);
        break;
      }
      #pragma unroll
      for (int i = 0; i < 3; ++i) sum[i] += light * alpha * as_f64(color[3 * id + i]);
      light *= 1 - alpha;
    }
    T* const to = rgba + 4 * (y * kWidth + x);
    #pragma unroll
    for (int i = 0; i < 3; ++i) {
      const f64 c = sum[i] + light * as_f64(background[i]);
      put_cast(to[i], c < 0 ? 0.0 : c);
    }
    put_cast(to[3], 1 - light);
  }
}
)cuda";

}  // namespace rlx::cuda
