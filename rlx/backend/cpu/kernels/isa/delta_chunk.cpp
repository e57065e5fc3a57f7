// Plan. A chunk is as many steps as the tile of the matrix product has columns (32 at AVX-512), so one panel
// holds it. The products with the state go by 32 columns of it at a time, in rows:
//   k . k, k . q      2 C C n   A and B are panels
//   S' k, S' q        2 C n n   A is a panel, B is S as it lies
//   system            C C n / 2 eight rows by two vectors in registers: first all earlier rows of D as a
//                               product, then the triangle among the eight
//   S                 C n n     A is the weighted keys, B is D, both as they lie
// Only k and q are turned, into panels. At n = 128, 32 columns of S take 16 KiB, of D 4 KiB.
#include "rlx/backend/cpu/kernels/isa/delta_chunk.h"

#include "rlx/backend/cpu/simd/math.h"

namespace rlx::cpu::RLX_ISA {

DeltaChunk::DeltaChunk(const GatedDeltaNet& p, bool backward, Carver& memory) {
  const int64_t rows = kChunk * row_stride(p.size), panel = p.size * kChunk, square = kChunk * kChunk;
  state = memory.take(padded(p.size) * row_stride(p.size));
  for (DeltaInputs* x : {&in, &next}) {
    x->k_rows = memory.take(rows), x->q_rows = backward ? memory.take(rows) : nullptr;
    x->k_panel = memory.take(panel), x->q_panel = memory.take(panel);
  }
  w_rows = memory.take(rows);
  read_rows = memory.take(rows), error_rows = memory.take(rows), d_rows = memory.take(rows);
  asked_rows = memory.take(rows);
  decay = memory.take(square), among = memory.take(square), mixed = memory.take(square);
  system = memory.take(square);
  gamma = memory.take(kChunk), beta = memory.take(kChunk), last = memory.take(kChunk);
}

void load_state(const float* from, int64_t n, float* to) {
  const int64_t stride = row_stride(n);
  clear(to, padded(n) * stride);
  for (int64_t i = 0; i < n && from != nullptr; ++i) {
    for (int64_t j = 0; j < n; j += kLanes) put(to + i * stride + j, fetch(from + i * n + j, n - j), n - j);
  }
}
void store_state(const float* from, int64_t n, float* to) {
  const int64_t stride = row_stride(n);
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j < n; j += kLanes) put(to + i * n + j, fetch(from + i * stride + j, n - j), n - j);
  }
}

namespace {

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
  }
  I32 lane;
  for (int i = 0; i < kLanes; ++i) lane[i] = i;
  for (int64_t t = 0; t < kChunk; t += kLanes) {
    const F64Pair to{load(sums + t), load(sums + t + kLanes64)};
    store(c.gamma + t, exp(to_float(to)));
    store(c.last + t, exp(to_float(F64Pair{sum - to.low, sum - to.high})));
    for (int64_t s = 0; s < kChunk; ++s) {
      if (s >= t + kLanes) {
        store(c.decay + s * kChunk + t, F32{});
        continue;
      }
      const F32 e = exp(to_float(F64Pair{to.low - sums[s], to.high - sums[s]}));
      store(c.decay + s * kChunk + t, lane >= int32_t(s - t) ? e : F32{});
    }
  }
}

constexpr int kSystemRows = kTileRows >= 8 ? 8 : 4;  // divides kChunk

/// Row b + r of kSystemRows rows of two vectors, loaded from `rows`.
struct SystemRows {
  F32 sum[kSystemRows][2];

  RLX_INLINE SystemRows(const float* rows, int64_t stride) {
#pragma GCC unroll 8
    for (int r = 0; r < kSystemRows; ++r) {
      sum[r][0] = load(rows + r * stride);
      sum[r][1] = load(rows + r * stride + kLanes);
    }
  }
  RLX_INLINE void add(int r, float factor, F32 low, F32 high) {
    sum[r][0] = fma(set1(factor), low, sum[r][0]);
    sum[r][1] = fma(set1(factor), high, sum[r][1]);
  }
  RLX_INLINE void store_to(float* rows, int64_t stride) const {
#pragma GCC unroll 8
    for (int r = 0; r < kSystemRows; ++r) {
      store(rows + r * stride, sum[r][0]);
      store(rows + r * stride + kLanes, sum[r][1]);
    }
  }
};

/// row t += sum over s < t of system[s][t] row s, from the first row down, in place, for two vectors of
/// columns.
void solve(const float* system, float* rows, int64_t stride) {
  for (int64_t b = 0; b < kChunk; b += kSystemRows) {
    SystemRows x(rows + b * stride, stride);
    for (int64_t s = 0; s < b; ++s) {
      const F32 low = load(rows + s * stride), high = load(rows + s * stride + kLanes);
#pragma GCC unroll 8
      for (int r = 0; r < kSystemRows; ++r) x.add(r, system[s * kChunk + b + r], low, high);
    }
#pragma GCC unroll 8
    for (int s = 0; s < kSystemRows; ++s) {
#pragma GCC unroll 8
      for (int r = s + 1; r < kSystemRows; ++r)
        x.add(r, system[(b + s) * kChunk + b + r], x.sum[s][0], x.sum[s][1]);
    }
    x.store_to(rows + b * stride, stride);
  }
}

/// out[s][t] = k[s] . b[t] for kLanes rows s and two vectors of columns t, each with its own b and out.
void products(const float* k, const float* b0, const float* b1, int64_t n, float* out0, float* out1) {
  for (int64_t s = 0; s < kLanes; s += kSystemRows) {
    F32 sum[kSystemRows][2] = {};
    for (int64_t i = 0; i < n; ++i) {
      const F32 low = load(b0 + i * kChunk), high = load(b1 + i * kChunk);
#pragma GCC unroll 8
      for (int r = 0; r < kSystemRows; ++r) {
        const F32 x = set1(k[i * kChunk + s + r]);
        sum[r][0] = fma(x, low, sum[r][0]);
        sum[r][1] = fma(x, high, sum[r][1]);
      }
    }
#pragma GCC unroll 8
    for (int r = 0; r < kSystemRows; ++r) {
      store(out0 + (s + r) * kChunk, sum[r][0]);
      store(out1 + (s + r) * kChunk, sum[r][1]);
    }
  }
}

/// Rows t .. t + kLanes of x from column i on, to the chunk's rows (unless null) and panel.
RLX_INLINE void fetch_square(const DeltaHead& h, const float* x, int64_t t, int64_t i, float* rows,
                             float* panel) {
  F32 v[kLanes];
  const int64_t columns = h.n() - i, steps = h.p.length - t;
  const float* from = x + h.row(t) + i;
  if (columns >= kLanes && steps >= kLanes) {
#pragma GCC unroll 16
    for (int r = 0; r < kLanes; ++r) v[r] = load(from + r * h.step());
  } else {
    for (int r = 0; r < kLanes; ++r)
      v[r] = r < steps && columns > 0 ? fetch(from + r * h.step(), columns) : F32{};
  }
  if (rows != nullptr) {
#pragma GCC unroll 16
    for (int r = 0; r < kLanes; ++r) store(rows + r * h.stride() + i, v[r]);
  }
  transpose(v);
  if (columns >= kLanes) {
#pragma GCC unroll 16
    for (int c = 0; c < kLanes; ++c) store(panel + (i + c) * kChunk, v[c]);
  } else {
    for (int c = 0; c < columns; ++c) store(panel + (i + c) * kChunk, v[c]);
  }
}

}  // namespace

void fetch_squares(const DeltaHead& h, int64_t first, int64_t after, int64_t begin, int64_t end,
                   const DeltaChunk& c) {
  const int64_t all = squares(h);
  if (first < 0 || first >= h.p.length) return;
  for (int64_t u = begin; u < end; ++u) {
    const int64_t t = u % 2 * kLanes, i = u / 2 * kLanes;
    fetch_square(h, h.p.k, first + t, i, c.next.k_rows + t * h.stride(), c.next.k_panel + t);
    if (!c.queries) continue;
    float* q_rows = c.next.q_rows == nullptr ? nullptr : c.next.q_rows + t * h.stride();
    fetch_square(h, h.p.q, first + t, i, q_rows, c.next.q_panel + t);
  }
  for (int64_t u = end; u < 2 * end - begin; ++u) {
    const int64_t from = (u < all ? first : after) + u % 2 * kLanes, i = u % all / 2 * kLanes;
    for (int64_t t = most(from, 0); t < least(h.p.length, from + kLanes) && i < h.n(); ++t) {
      __builtin_prefetch(h.p.k + h.row(t) + i, 0, 2);
      if (c.queries) __builtin_prefetch(h.p.q + h.row(t) + i, 0, 2);
    }
  }
}

void solve_transposed(const DeltaHead& h, const DeltaChunk& c, float* columns) {
  const int64_t stride = h.stride();
  for (int64_t j = 0; j < h.width(); j += kTileColumns) {
    float* rows = columns + j;
    for (int64_t b = kChunk - kSystemRows; b >= 0; b -= kSystemRows) {
      SystemRows x(rows + b * stride, stride);
      const float* system = c.system + b * kChunk;
      for (int64_t t = b + kSystemRows; t < kChunk; ++t) {
        const F32 low = load(rows + t * stride), high = load(rows + t * stride + kLanes);
#pragma GCC unroll 8
        for (int r = 0; r < kSystemRows; ++r) x.add(r, system[r * kChunk + t], low, high);
      }
#pragma GCC unroll 8
      for (int t = kSystemRows - 1; t >= 0; --t) {
#pragma GCC unroll 8
        for (int r = 0; r < t; ++r) x.add(r, system[r * kChunk + b + t], x.sum[t][0], x.sum[t][1]);
      }
      x.store_to(rows + b * stride, stride);
    }
  }
}

void open_chunk(const DeltaHead& h, int64_t first, DeltaChunk& c) {
  const int64_t n = h.n(), stride = h.stride();
  c.first = first;
  c.count = least(kChunk, h.p.length - first);
  const DeltaInputs before = c.in;
  c.in = c.next, c.next = before;
  load_gates(h, c);
  for (int64_t s = 0; s < kChunk; ++s) {
    const F32 weight = set1(c.last[s]);
    for (int64_t i = 0; i < h.width(); i += kLanes) {
      store(c.w_rows + s * stride + i, load(c.in.k_rows + s * stride + i) * weight);
    }
  }
  // Only steps s <= t count: of the lower half of the squares, the right half.
  const float *k = c.in.k_panel, *q = c.in.q_panel;
  constexpr int64_t lower = kLanes * kChunk + kLanes;
  products(k, k, k + kLanes, n, c.among, c.among + kLanes);
  if (c.queries) {
    products(k, q, q + kLanes, n, c.mixed, c.mixed + kLanes);
    products(k + kLanes, k + kLanes, q + kLanes, n, c.among + lower, c.mixed + lower);
  } else {
    products(k + kLanes, k, k + kLanes, n, c.among + lower - kLanes, c.among + lower);
    clear(c.mixed, kChunk * kChunk);
  }
  for (int64_t s = kLanes; s < kChunk; ++s) {
    for (float* square : {c.among, c.mixed, c.system}) store(square + s * kChunk, F32{});
  }
  for (int64_t s = 0; s < kChunk; ++s) {
    for (int64_t t = s < kLanes ? 0 : kLanes; t < kChunk; t += kLanes) {
      const int64_t at = s * kChunk + t;
      const F32 decay = load(c.decay + at);
      store(c.mixed + at, load(c.mixed + at) * decay);
      store(c.among + at, load(c.among + at) * decay);
    }
    c.among[s * kChunk + s] = 0;
    for (int64_t t = s < kLanes ? 0 : kLanes; t < kChunk; t += kLanes) {
      store(c.system + s * kChunk + t, -load(c.beta + t) * load(c.among + s * kChunk + t));
    }
  }
}

void read_state(const DeltaHead& h, int64_t j, const DeltaChunk& c) {
  const int64_t n = h.n(), stride = h.stride(), columns = least(n - j, kTileColumns);
  const float* v = h.p.v + h.row(c.first) + j;
  ask_columns(h, c, h.p.v, j);
  float *read = c.read_rows + j, *error = c.error_rows + j, *d = c.d_rows + j;
  tile_f32(kChunk, c.in.k_panel, kChunk, c.state + j, stride, n, read, stride, true);
  for (int64_t t = 0; t < kChunk; ++t, read += stride, error += stride, d += stride, v += h.step()) {
    const F32 gamma = set1(c.gamma[t]), beta = set1(c.beta[t]);
    for (int64_t i = 0; i < kTileColumns; i += kLanes) {
      const F32 value = t < c.count && i < columns ? fetch(v + i, columns - i) : F32{};
      const F32 e = fma(-gamma, load(read + i), value);
      store(error + i, e);
      store(d + i, beta * e);
    }
  }
  solve(c.system, c.d_rows + j, stride);
}

void ask_state(const DeltaHead& h, int64_t j, const DeltaChunk& c) {
  const int64_t stride = h.stride();
  float* asked = c.asked_rows + j;
  tile_f32(kChunk, c.in.q_panel, kChunk, c.state + j, stride, h.n(), asked, stride, true);
  for (int64_t t = 0; t < kChunk; ++t) {
    const F32 gamma = set1(c.gamma[t]);
    for (int64_t i = 0; i < kTileColumns; i += kLanes) {
      store(asked + t * stride + i, load(asked + t * stride + i) * gamma);
    }
  }
}

void close_state(const DeltaHead& h, int64_t j, const DeltaChunk& c) {
  fading_tile_f32(h.n(), c.w_rows, h.stride(), c.d_rows + j, h.stride(), c.count, c.state + j, h.stride(),
                  c.end());
}

}  // namespace rlx::cpu::RLX_ISA
