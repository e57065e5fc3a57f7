// Plan. A chunk is as many steps as the tile of the matrix product has columns (32 at AVX-512), so one panel
// holds it; see delta_chunk.h for the mathematics and the layouts. Per chunk, with n = size and C = kChunk:
//   k . k, k . q           2 C C n     A and B are panels as they lie
//   S' k, S' q             2 C n n     A is S as it lies: a row of S is a column of S'
//   triangular system      C C n / 2   rows of D in registers, in order
//   y                      C C n       A is D as it lies
//   S                      C n n       A is the weighted keys, B is D, both as they lie
// Only k, q and S' k are turned. At n = 128 the state takes 64 KiB and the chunk 150 KiB, all in L2. Bound:
// multiply-add rate; 3 n n + 4 C n multiply-adds a step, of which single steps would take 3 n n at the speed
// of L2.
//
// Single steps: with r = S' k and p = S' q of the old state in one pass over S,
//   d = beta (v - e^g r)      y = (e^g p + (k . q) d) / sqrt(n)      S = e^g S + k d' in a second pass.
#include "rlx/backend/cpu/kernels/gated_delta_net.h"

#include "rlx/backend/cpu/kernels/isa/delta_chunk.h"
#include "rlx/backend/cpu/simd/math.h"

namespace rlx::cpu::RLX_ISA {

DeltaChunk::DeltaChunk(const GatedDeltaNet& p, Carver& memory) {
  const int64_t width = padded(p.size), rows = kChunk * width, panel = p.size * kChunk,
                square = kChunk * kChunk;
  state = memory.take(width * width);
  k_rows = memory.take(rows), q_rows = memory.take(rows), read_rows = memory.take(rows);
  error_rows = memory.take(rows), d_rows = memory.take(rows), w_rows = memory.take(rows);
  k_panel = memory.take(panel), q_panel = memory.take(panel);
  read_panel = memory.take(panel), out_panel = memory.take(panel);
  decay = memory.take(square), among = memory.take(square), mixed = memory.take(square);
  gamma = memory.take(kChunk), beta = memory.take(kChunk), last = memory.take(kChunk);
}

void load_state(const float* from, int64_t n, float* to) {
  const int64_t width = padded(n);
  clear(to, width * width);
  for (int64_t i = 0; i < n && from != nullptr; ++i) {
    for (int64_t j = 0; j < n; j += kLanes) put(to + i * width + j, fetch(from + i * n + j, n - j), n - j);
  }
}
void store_state(const float* from, int64_t n, float* to) {
  const int64_t width = padded(n);
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j < n; j += kLanes) put(to + i * n + j, fetch(from + i * width + j, n - j), n - j);
  }
}

namespace {

/// Rows of k or q as rows and as a panel; steps beyond the last are zero. Rows of one head lie heads * n
/// apart, often a multiple of 4 KiB, where they compete for the same lines of L1: they are read in one go and
/// turned from the copy.
void load_rows(const DeltaHead& h, const float* x, const DeltaChunk& c, float* rows, float* panel) {
  const float* from = x + h.row(c.first);
  if (c.count < kChunk || h.n() < h.width()) clear(rows, kChunk * h.width());
  for (int64_t t = 0; t < c.count; ++t) {
    for (int64_t i = 0; i < h.n(); i += kLanes) {
      put(rows + t * h.width() + i, fetch(from + t * h.stride() + i, h.n() - i), h.n() - i);
    }
  }
  turn(static_cast<const float*>(rows), h.width(), kChunk, h.n(), 1.0f, panel, kChunk);
}

/// Asks for the rows of the chunk after this one, which the machine does not foresee.
void fetch_ahead(const DeltaHead& h, const DeltaChunk& c) {
  for (int64_t t = c.first + kChunk; t < least(h.p.length, c.first + 2 * kChunk); ++t) {
    for (int64_t i = 0; i < h.n(); i += 64 / int64_t(sizeof(float))) {
      __builtin_prefetch(h.p.k + h.row(t) + i, 0, 2);
      __builtin_prefetch(h.p.q + h.row(t) + i, 0, 2);
      __builtin_prefetch(h.p.v + h.row(t) + i, 0, 2);
    }
  }
}

/// E and its rows. Sums of log gates are kept in f64: their differences are what counts. A gate of zero has
/// the logarithm -inf; -150 gives the same zero and leaves the differences finite.
void load_gates(const DeltaHead& h, const DeltaChunk& c) {
  double sums[kChunk], sum = 0;
  for (int64_t t = 0; t < kChunk; ++t) {
    if (t < c.count) {
      const float g = h.p.g[h.gate(c.first + t)];
      sum += double(g < -150.0f ? -150.0f : g);
    }
    sums[t] = sum;
    c.beta[t] = t < c.count ? h.p.beta[h.gate(c.first + t)] : 0.0f;
    c.gamma[t] = float(sum);
  }
  for (int64_t t = 0; t < kChunk; ++t) c.last[t] = float(sum - sums[t]);
  for (int64_t s = 0; s < kChunk; ++s) {
    for (int64_t t = 0; t < kChunk; ++t)
      c.decay[s * kChunk + t] = t < s ? -1000.0f : float(sums[t] - sums[s]);
  }
  const auto raise = [](float* p, int64_t n) {
    for (int64_t i = 0; i < n; i += kLanes) store(p + i, exp(load(p + i)));
  };
  raise(c.gamma, kChunk);
  raise(c.last, kChunk);
  raise(c.decay, kChunk * kChunk);
}

/// Rows of D from their right-hand sides, in place: row t -= beta[t] among[s][t] row s for s < t.
template <int W>
RLX_INLINE void solve_columns(const DeltaChunk& c, int64_t width, float* d) {
  for (int64_t t = 1; t < c.count; ++t) {
    F32 sum[W];
#pragma GCC unroll 8
    for (int i = 0; i < W; ++i) sum[i] = load(d + t * width + i * kLanes);
    for (int64_t s = 0; s < t; ++s) {
      const F32 x = set1(-c.beta[t] * c.among[s * kChunk + t]);
#pragma GCC unroll 8
      for (int i = 0; i < W; ++i) sum[i] = fma(x, load(d + s * width + i * kLanes), sum[i]);
    }
#pragma GCC unroll 8
    for (int i = 0; i < W; ++i) store(d + t * width + i * kLanes, sum[i]);
  }
}

}  // namespace

void open_chunk(const DeltaHead& h, int64_t first, DeltaChunk& c) {
  const int64_t n = h.n(), width = h.width();
  c.first = first;
  c.count = least(kChunk, h.p.length - first);
  load_rows(h, h.p.k, c, c.k_rows, c.k_panel);
  load_gates(h, c);
  tile_f32(c.count, c.k_panel, kChunk, c.k_panel, kChunk, n, c.among, kChunk, true);
  for (int64_t s = 0; s < c.count; ++s) {
    c.decay[s * kChunk + s] = 0;  // s < t only
    for (int64_t t = 0; t < kChunk; t += kLanes) {
      const int64_t at = s * kChunk + t;
      store(c.among + at, load(c.among + at) * load(c.decay + at));
    }
    c.decay[s * kChunk + s] = 1;
  }
  tile_f32(n, c.state, width, c.k_panel, kChunk, n, c.read_panel, kChunk, true);
  if (n < width) clear(c.read_rows, kChunk * width);
  turn(static_cast<const float*>(c.read_panel), kChunk, n, c.count, 1.0f, c.read_rows, width);
  for (int64_t t = 0; t < kChunk; ++t) {
    const F32 gamma = set1(c.gamma[t]), beta = set1(c.beta[t]);
    for (int64_t j = 0; j < width; j += kLanes) {
      const int64_t at = t * width + j;
      const F32 v = t < c.count && j < n ? fetch(h.p.v + h.row(first + t) + j, n - j) : F32{};
      const F32 error = t < c.count ? fma(-gamma, load(c.read_rows + at), v) : F32{};
      store(c.error_rows + at, error);
      store(c.d_rows + at, beta * error);
    }
  }
  int64_t j = 0;
  for (; j + 4 * kLanes <= width; j += 4 * kLanes) solve_columns<4>(c, width, c.d_rows + j);
  for (; j < width; j += 2 * kLanes) solve_columns<2>(c, width, c.d_rows + j);
}

void query_chunk(const DeltaHead& h, DeltaChunk& c) {
  const int64_t n = h.n();
  load_rows(h, h.p.q, c, c.q_rows, c.q_panel);
  tile_f32(c.count, c.k_panel, kChunk, c.q_panel, kChunk, n, c.mixed, kChunk, true);
  for (int64_t i = 0; i < c.count * kChunk; i += kLanes) {
    store(c.mixed + i, load(c.mixed + i) * load(c.decay + i));
  }
  tile_f32(n, c.state, h.width(), c.q_panel, kChunk, n, c.out_panel, kChunk, true);
  const F32 gamma[2] = {load(c.gamma), load(c.gamma + kLanes)};
  for (int64_t i = 0; i < n * kChunk; i += kChunk) {
    store(c.out_panel + i, load(c.out_panel + i) * gamma[0]);
    store(c.out_panel + i + kLanes, load(c.out_panel + i + kLanes) * gamma[1]);
  }
}

void close_chunk(const DeltaHead& h, DeltaChunk& c) {
  const int64_t n = h.n(), width = h.width();
  for (int64_t s = 0; s < c.count; ++s) {
    const F32 weight = set1(c.last[s]);
    for (int64_t i = 0; i < width; i += kLanes) {
      store(c.w_rows + s * width + i, load(c.k_rows + s * width + i) * weight);
    }
  }
  const F32 end = set1(c.end());
  for (int64_t j = 0; j < width; j += kTileColumns) {
    for (int64_t i = 0; i < n; ++i) {
      float* s = c.state + i * width + j;
      store(s, load(s) * end);
      store(s + kLanes, load(s + kLanes) * end);
    }
    tile_f32(n, c.w_rows, width, c.d_rows + j, width, c.count, c.state + j, width, false);
  }
}

namespace {

size_t scratch_bytes(const GatedDeltaNet& p) {
  Carver count{nullptr};
  DeltaChunk chunk(p, count);
  return size_t(count.floats) * sizeof(float);
}

void chunks(const GatedDeltaNet& p, int64_t batch, int64_t head, std::byte* scratch) {
  Carver memory{reinterpret_cast<float*>(scratch)};
  DeltaChunk c(p, memory);
  const DeltaHead h{p, batch, head};
  const int64_t n = p.size;
  load_state(p.state == nullptr ? nullptr : p.state + h.state(), n, c.state);
  const float scale = 1.0f / __builtin_sqrtf(float(n));
  for (int64_t first = 0; first < p.length; first += kChunk) {
    open_chunk(h, first, c);
    fetch_ahead(h, c);
    query_chunk(h, c);
    tile_f32(n, c.d_rows, h.width(), c.mixed, kChunk, c.count, c.out_panel, kChunk, false);
    turn(static_cast<const float*>(c.out_panel), kChunk, n, c.count, scale, p.y + h.row(first), h.stride());
    close_chunk(h, c);
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
