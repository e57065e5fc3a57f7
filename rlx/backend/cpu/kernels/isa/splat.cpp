// Plan: a tile at a time, splats in the outer loop and the pixels of the tile in vectors in the inner one, so
// that a splat's numbers are broadcast once for the tile and the state of its pixels (light, sums, steps: 7
// KiB for 16 x 16) stays in L1. A vector of pixels that the splat cannot reach is left after 21
// multiply-adds, before the division and the exponential. Backward, the 16 sums of a splat over the tile stay
// in vectors and are folded once. Bound: arithmetic.
#include "rlx/backend/cpu/kernels/splat.h"

#include "rlx/backend/cpu/simd/math.h"

namespace rlx::cpu::RLX_ISA {
namespace {

RLX_INLINE F32 dot(const float* c, const F32 (&v)[3]) {
  return fma(set1(c[2]), v[2], fma(set1(c[1]), v[1], set1(c[0]) * v[0]));
}

struct Meeting {
  F32 d[3], od, dd, alpha;
  I32 hit;
};

/// The splat seen along the rays of a vector of pixels, for those in `mask`.
RLX_INLINE Meeting meet(const SplatTerms& t, const F32 (&ray)[3], I32 mask, float cutoff) {
  Meeting x;
  F32 k[3];
#pragma GCC unroll 3
  for (int i = 0; i < 3; ++i) {
    x.d[i] = dot(t.m + 3 * i, ray);
    k[i] = dot(t.k + 3 * i, ray);
  }
  x.od = dot(t.q, ray);
  x.dd = fma(x.d[2], x.d[2], fma(x.d[1], x.d[1], x.d[0] * x.d[0]));
  const F32 kk = fma(k[2], k[2], fma(k[1], k[1], k[0] * k[0]));
  x.hit = mask & (x.od < 0.0f) & (kk <= x.dd * t.reach);
  if (!any(x.hit)) return x;
  x.alpha = exp(kk / x.dd * -0.5f) * t.opacity;
  x.hit &= x.alpha >= cutoff;
  return x;
}

RLX_INLINE I32 load_mask(const int32_t* p) { return load(p); }

int64_t blend(const SplatTile& tile) {
  int64_t stopped = 0;
  for (int64_t e = 0; e < tile.length; ++e) {
    const SplatTerms& t = tile.terms[tile.ids[e]];
    bool alive = false;
    for (int64_t i = 0; i < tile.pixels; i += kLanes) {
      I32 active = load_mask(tile.active + i);
      F32 light = load(tile.light + i);
      active &= ~(light < tile.threshold);
      if (!any(active)) continue;
      alive = true;
      const F32 ray[3] = {load(tile.ray[0] + i), load(tile.ray[1] + i), load(tile.ray[2] + i)};
      const Meeting x = meet(t, ray, active, tile.cutoff);
      if (!any(x.hit)) continue;
      const I32 steps = load(tile.steps + i);
      const I32 full = x.hit & (steps == tile.max_steps);
      if (any(full)) {
        stopped += __builtin_popcount(mask_bits(full));
        store(tile.active + i, active & ~full);
      }
      const I32 used = x.hit & ~full;
      const F32 alpha = used ? x.alpha : F32{};
      store(tile.steps + i, steps - used);
#pragma GCC unroll 3
      for (int c = 0; c < 3; ++c) {
        store(tile.sum[c] + i, fma(light * alpha, set1(t.color[c]), load(tile.sum[c] + i)));
      }
      const I32 counts = used & (light > 0.0f);
      store(tile.last + i, counts ? set1(int32_t(e + 1)) : load(tile.last + i));
      store(tile.before + i, counts ? light : load(tile.before + i));
      store(tile.light + i, light * (1.0f - alpha));
    }
    if (!alive) break;
  }
  return stopped;
}

// Let T be the light before a splat, g the gradient of the colour, S the loss from everything behind it
// (sum of T' a' g.color' plus T at the end times its gradient). Then
//   dL/da = T g.color - S / (1 - a),
// and the light and S of the splat in front of it are T / (1 - a') and S + T a g.color. At the last splat of
// a pixel T is known, which also serves a = 1, where nothing could be divided back.
//   dL/dD = -a/2 dL/da;  dD/do = 2 r, dD/dd = -2 s r, with s = o.d / |d|^2 and r = o - s d.
void blend_backward(const SplatTile& tile) {
  int32_t longest = 0;
  for (int64_t i = 0; i < tile.pixels; ++i) longest = tile.last[i] > longest ? tile.last[i] : longest;
  for (int64_t e = tile.length - 1; e >= 0; --e) {
    float* out = tile.entries + e * kSplatGradients;
    F32 total[kSplatGradients] = {};
    if (e < longest) {
      const SplatTerms& t = tile.terms[tile.ids[e]];
      for (int64_t i = 0; i < tile.pixels; i += kLanes) {
        const I32 last = load(tile.last + i), on = last > int32_t(e);
        if (!any(on)) continue;
        const F32 ray[3] = {load(tile.ray[0] + i), load(tile.ray[1] + i), load(tile.ray[2] + i)};
        const Meeting x = meet(t, ray, on, tile.cutoff);
        if (!any(x.hit)) continue;
        const I32 at_end = last == int32_t(e + 1);
        const F32 pass = 1.0f - x.alpha, dlight = load(tile.dlight + i), before = load(tile.before + i);
        const F32 light = at_end ? before : load(tile.light + i) / pass;
        const F32 behind = at_end ? before * pass * dlight : load(tile.behind + i);
        const F32 shaded = at_end ? before * dlight : behind / pass;  // S / (1 - a)
        F32 weight = {};
        const F32 share = x.hit ? light * x.alpha : F32{};
#pragma GCC unroll 3
        for (int c = 0; c < 3; ++c) {
          const F32 g = load(tile.gradient[c] + i);
          weight = fma(g, set1(t.color[c]), weight);
          total[c] = fma(share, g, total[c]);
        }
        store(tile.light + i, x.hit ? light : load(tile.light + i));
        store(tile.behind + i, x.hit ? fma(share, weight, behind) : load(tile.behind + i));
        const F32 dalpha = x.hit ? fma(light, weight, -shaded) : F32{};
        const F32 product = x.hit ? dalpha * x.alpha : F32{};
        total[3] = total[3] + product;  // divided by the opacity at the end
        const F32 s = x.hit ? x.od / x.dd : F32{}, turn = product * s;
#pragma GCC unroll 3
        for (int a = 0; a < 3; ++a) {
          const F32 r = fnma(s, x.d[a], set1(t.o[a]));
          total[4 + a] = fnma(product, r, total[4 + a]);  // 2 dL/dD = -product
          const F32 gd = turn * r;                        // -2 s r dL/dD
#pragma GCC unroll 3
          for (int b = 0; b < 3; ++b) {
            total[7 + 3 * a + b] = fma(gd, ray[b], total[7 + 3 * a + b]);
            store(tile.dray[b] + i, fma(gd, set1(t.m[3 * a + b]), load(tile.dray[b] + i)));
          }
        }
      }
      total[3] = t.opacity > 0 ? total[3] / set1(t.opacity) : F32{};
    }
    for (int c = 0; c < kSplatGradients; ++c) out[c] = reduce_add(total[c]);
  }
}

}  // namespace

SplatKernels splat_kernels() { return {blend, blend_backward}; }

}  // namespace rlx::cpu::RLX_ISA
