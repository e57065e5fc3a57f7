// Plan. Chunks: delta_chunk.h has the mathematics and the layouts, delta_chunk.cpp the products. Per chunk,
// with n = size and C = kChunk, 32 columns at a time: D and gamma S' q from the state, y from both (a tile of
// rows takes the steps before its end only), then the new state. At n = 128 the state takes 72 KiB and the
// chunk 180 KiB, all in L2. Bound: multiply-add rate; 3 n n + 2.6 C n multiply-adds a step, of which single
// steps would take 3 n n at the speed of L2.
//
// Single steps: with r = S' k and p = S' q of the old state in one pass over S,
//   d = beta (v - e^g r)      y = (e^g p + (k . q) d) / sqrt(n)      S = e^g S + k d' in a second pass,
// a few columns at a time, so that the second pass finds them in L1. Bound: reading and writing the state.
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

/// One step of one head; S is read from `from` (null: zeros) and written to `to`.
struct Step {
  const DeltaHead& h;
  int64_t row;  // of q, k, v, y
  float gate, beta, both, scale;
  const float* from;
  float* to;
};

Step step_of(const DeltaHead& h, int64_t t, const float* from, float* to) {
  const int64_t n = h.n(), row = h.row(t);
  F32 dot = {};
  for (int64_t i = 0; i < n; i += kLanes)
    dot = fma(fetch(h.p.k + row + i, n - i), fetch(h.p.q + row + i, n - i), dot);
  return {h,
          row,
          ::expf(h.p.g[h.gate(t)]),
          h.p.beta[h.gate(t)],
          reduce_add(dot),
          1.0f / __builtin_sqrtf(float(n)),
          from,
          to};
}

/// The columns of `vectors` vectors from column j on, of which `last` of the last vector.
template <int vectors>
RLX_INLINE void step_columns(const Step& s, int64_t j, int64_t last) {
  const int64_t n = s.h.n(), at = s.row + j;
  const float *q = s.h.p.q + s.row, *k = s.h.p.k + s.row;
  const auto lanes = [&](int w) { return w + 1 < vectors ? int64_t(kLanes) : last; };
  F32 read[vectors] = {}, asked[vectors] = {}, d[vectors];
  for (int64_t i = 0; i < n && s.from != nullptr; ++i) {
    const F32 key = set1(k[i]), query = set1(q[i]);
#pragma GCC unroll 8
    for (int w = 0; w < vectors; ++w) {
      const F32 old = fetch(s.from + i * n + j + w * kLanes, lanes(w));
      read[w] = fma(key, old, read[w]);
      asked[w] = fma(query, old, asked[w]);
    }
  }
#pragma GCC unroll 8
  for (int w = 0; w < vectors; ++w) {
    d[w] = set1(s.beta) * (fetch(s.h.p.v + at + w * kLanes, lanes(w)) - set1(s.gate) * read[w]);
    put(s.h.p.y + at + w * kLanes, fma(set1(s.both), d[w], set1(s.gate) * asked[w]) * set1(s.scale),
        lanes(w));
  }
  for (int64_t i = n - 1; i >= 0; --i) {
    const F32 key = set1(k[i]);
#pragma GCC unroll 8
    for (int w = 0; w < vectors; ++w) {
      const int64_t cell = i * n + j + w * kLanes;
      const F32 old = s.from == nullptr ? F32{} : set1(s.gate) * fetch(s.from + cell, lanes(w));
      put(s.to + cell, fma(key, d[w], old), lanes(w));
    }
  }
}

template <int vectors>
void step_from(const Step& s, int64_t j) {
  const int64_t n = s.h.n();
  for (; j + vectors * kLanes <= n; j += vectors * kLanes) step_columns<vectors>(s, j, kLanes);
  if constexpr (vectors > 1) {
    step_from<vectors / 2>(s, j);
  } else if (j < n) {
    step_columns<1>(s, j, n - j);
  }
}

void steps(const GatedDeltaNet& p, int64_t batch, int64_t head) {
  const DeltaHead h{p, batch, head};
  const float* from = p.state == nullptr ? nullptr : p.state + h.state();
  float* to = p.final_state + h.state();
  for (int64_t t = 0; t < p.length; ++t, from = to) step_from<kRegisters / 4>(step_of(h, t, from, to), 0);
  if (p.length == 0 && from != to) {
    for (int64_t i = 0; i < p.size * p.size; ++i) to[i] = from == nullptr ? 0.0f : from[i];
  }
}

}  // namespace

GatedDeltaNetKernels gated_delta_net_kernels() {
  return {.chunk = kChunk, .scratch_bytes = scratch_bytes, .steps = steps, .chunks = chunks};
}

}  // namespace rlx::cpu::RLX_ISA
