// Plan. Chunks: delta_chunk.h has the mathematics and the layouts, delta_chunk.cpp the products. Per chunk,
// with n = size and C = kChunk, 32 columns at a time: D and gamma S' q from the state, y from both (a tile of
// rows takes the steps before its end only), then the new state. At n = 128 the state takes 72 KiB and the
// chunk 180 KiB, all in L2. Bound: multiply-add rate; 3 n n + 2.6 C n multiply-adds a step, of which single
// steps would take 3 n n at the speed of L2.
//
// Single steps: with r = S' k and p = S' q of the old state in one pass over S,
//   d = beta (v - e^g r)      y = (e^g p + (k . q) d) / sqrt(n)      S = e^g S + k d' in a second pass.
#include "rlx/backend/cpu/kernels/gated_delta_net.h"

#include "rlx/backend/cpu/kernels/isa/delta_chunk.h"
#include "rlx/backend/cpu/simd/math.h"

namespace rlx::cpu::RLX_ISA {
namespace {

size_t scratch_bytes(const GatedDeltaNet& p) {
  Carver count{nullptr};
  DeltaChunk chunk(p, false, count);
  return size_t(count.floats) * sizeof(float);
}

void chunks(const GatedDeltaNet& p, int64_t batch, int64_t head, std::byte* scratch) {
  Carver memory{reinterpret_cast<float*>(scratch)};
  DeltaChunk c(p, false, memory);
  const DeltaHead h{p, batch, head};
  const int64_t n = p.size, stride = h.stride();
  load_state(p.state == nullptr ? nullptr : p.state + h.state(), n, c.state);
  const F32 scale = set1(1.0f / __builtin_sqrtf(float(n)));
  fetch_squares(h, 0, kChunk, 0, squares(h), c);
  for (int64_t first = 0; first < p.length; first += kChunk) {
    open_chunk(h, first, c);
    int64_t square = 0;
    const auto fetch_next = [&] {
      fetch_squares(h, first + kChunk, first + 2 * kChunk, square, square + 1, c);
      ++square;
    };
    for (int64_t j = 0; j < n; j += kTileColumns) {
      fetch_next();
      read_state(h, j, c);
      fetch_next();
      const int64_t columns = least(n - j, kTileColumns);
      float* y = p.y + h.row(first) + j;
      ask_columns(h, c, p.y, j);
      ask_state(h, j, c);
      fetch_next();
      constexpr int64_t kRows = kChunk / 4;
      for (int64_t t = 0; t < kChunk; t += kRows) {
        tile_f32(kRows, c.mixed + t, kChunk, c.d_rows + j, stride, t + kRows, c.asked_rows + t * stride + j,
                 stride, false);
      }
      for (int64_t t = 0; t < c.count; ++t) {
        for (int64_t i = 0; i < columns; i += kLanes) {
          put(y + t * h.step() + i, load(c.asked_rows + t * stride + j + i) * scale, columns - i);
        }
      }
      fetch_next();
      close_state(h, j, c);
    }
  }
  store_state(c.state, n, p.final_state + h.state());
}

/// One step; S is read from `from` (null: zeros) and written to `to`; d holds a row.
void step(const DeltaHead& h, int64_t t, const float* from, float* to, float* d) {
  const int64_t n = h.n(), at = h.row(t);
  const float *q = h.p.q + at, *k = h.p.k + at;
  const float gate = ::expf(h.p.g[h.gate(t)]), beta = h.p.beta[h.gate(t)],
              scale = 1.0f / __builtin_sqrtf(float(n));
  F32 dot = {};
  for (int64_t i = 0; i < n; i += kLanes) dot = fma(fetch(k + i, n - i), fetch(q + i, n - i), dot);
  const F32 both = set1(reduce_add(dot));
  for (int64_t j = 0; j < n; j += 2 * kLanes) {
    F32 read[2] = {}, asked[2] = {};
    for (int64_t i = 0; i < n && from != nullptr; ++i) {
      const F32 key = set1(k[i]), query = set1(q[i]);
      for (int w = 0; w < 2; ++w) {
        const int64_t left = n - j - w * kLanes;
        if (left <= 0) continue;
        const F32 s = fetch(from + i * n + j + w * kLanes, left);
        read[w] = fma(key, s, read[w]);
        asked[w] = fma(query, s, asked[w]);
      }
    }
    for (int w = 0; w < 2; ++w) {
      const int64_t column = j + w * kLanes, left = n - column;
      if (left <= 0) continue;
      const F32 error = set1(beta) * (fetch(h.p.v + at + column, left) - set1(gate) * read[w]);
      put(d + column, error, left);
      put(h.p.y + at + column, fma(both, error, set1(gate) * asked[w]) * set1(scale), left);
    }
  }
  for (int64_t i = 0; i < n; ++i) {
    const F32 key = set1(k[i]);
    for (int64_t j = 0; j < n; j += kLanes) {
      const F32 s = from == nullptr ? F32{} : set1(gate) * fetch(from + i * n + j, n - j);
      put(to + i * n + j, fma(key, fetch(d + j, n - j), s), n - j);
    }
  }
}

void steps(const GatedDeltaNet& p, int64_t batch, int64_t head, std::byte* scratch) {
  const DeltaHead h{p, batch, head};
  float* d = reinterpret_cast<float*>(scratch);
  const float* from = p.state == nullptr ? nullptr : p.state + h.state();
  float* to = p.final_state + h.state();
  for (int64_t t = 0; t < p.length; ++t, from = to) step(h, t, from, to, d);
  if (p.length == 0 && from != to) {
    for (int64_t i = 0; i < p.size * p.size; ++i) to[i] = from == nullptr ? 0.0f : from[i];
  }
}

}  // namespace

GatedDeltaNetKernels gated_delta_net_kernels() {
  return {.chunk = kChunk, .scratch_bytes = scratch_bytes, .steps = steps, .chunks = chunks};
}

}  // namespace rlx::cpu::RLX_ISA
