// Plan. Chunks from the last to the first, with dS the gradient of the state after the chunk. A first sweep
// keeps the state before every chunk; a chunk then computes its forward quantities anew (delta_chunk.h) and,
// with X the gradient of the right-hand side of its triangular system and dy already divided by sqrt(n):
//   dD = mixed dy + E[t][last] k dS            X = dD solved by the transposed system, from the last row up
//   dv = beta X                                U = gamma dy,  Z = -beta gamma X   (gradients of S' q and of
//   S' k) M = D dy' E (s <= t),  N = -D X' beta E (s < t)                               (gradients of k . q
//   and of k . k) dq = U S' + M' k                           dk = Z S' + M q + (N + N') k + E[t][last] D dS'
//   dS = gamma[last] dS + k' Z + q' U
// and each exponent G[t] receives what its exponentials do, dg the sum of those from t on. Ten products of
// size C n n a chunk against three of the forward form; S and dS are turned once each. Bound: multiply-add
// rate.
#include "rlx/backend/cpu/kernels/isa/delta_chunk.h"

namespace rlx::cpu::RLX_ISA {
namespace {

struct Gradients {
  float *dstate, *state_turned, *dstate_turned;  // [width][width]
  float *dy_rows, *asked_rows, *x_rows, *out_rows, *z_rows;
  float *dy_panel, *d_panel, *x_panel;
  float *m, *n;         // squares
  float *dbeta, *dsum;  // one number a step; dsum: of G
  float* starts;        // [chunks][width][width]

  Gradients(const GatedDeltaNet& p, Carver& memory) {
    const int64_t width = padded(p.size), rows = kChunk * width, panel = p.size * kChunk,
                  square = kChunk * kChunk;
    dstate = memory.take(width * width);
    state_turned = memory.take(width * width), dstate_turned = memory.take(width * width);
    dy_rows = memory.take(rows), asked_rows = memory.take(rows), x_rows = memory.take(rows);
    out_rows = memory.take(rows), z_rows = memory.take(rows);
    dy_panel = memory.take(panel), d_panel = memory.take(panel), x_panel = memory.take(panel);
    m = memory.take(square), n = memory.take(square);
    dbeta = memory.take(kChunk), dsum = memory.take(kChunk);
    starts = memory.take((p.length + kChunk - 1) / kChunk * width * width);
  }
};

RLX_INLINE float dot(const float* a, const float* b, int64_t n) {  // n a multiple of kLanes
  F32 sum = {};
  for (int64_t i = 0; i < n; i += kLanes) sum = fma(load(a + i), load(b + i), sum);
  return reduce_add(sum);
}
RLX_INLINE void scale_row(float* to, const float* from, float factor, int64_t n) {
  for (int64_t i = 0; i < n; i += kLanes) store(to + i, load(from + i) * set1(factor));
}

/// panel[j][t] *= factor[t].
RLX_INLINE void scale_panel(float* panel, int64_t n, F32 low, F32 high) {
  for (int64_t i = 0; i < n * kChunk; i += kChunk) {
    store(panel + i, load(panel + i) * low);
    store(panel + i + kLanes, load(panel + i + kLanes) * high);
  }
}

/// Rows of X from the last up, in place: row s -= beta[t] among[s][t] row t for t > s.
void solve_transposed(const DeltaChunk& c, int64_t width, float* x) {
  for (int64_t j = 0; j < width; j += 2 * kLanes) {
    for (int64_t s = c.count - 2; s >= 0; --s) {
      float* row = x + s * width + j;
      F32 low = load(row), high = load(row + kLanes);
      for (int64_t t = s + 1; t < c.count; ++t) {
        const F32 factor = set1(-c.beta[t] * c.among[s * kChunk + t]);
        low = fma(factor, load(x + t * width + j), low);
        high = fma(factor, load(x + t * width + j + kLanes), high);
      }
      store(row, low);
      store(row + kLanes, high);
    }
  }
}

/// dy of the chunk divided by sqrt(n), as rows and as a panel.
void load_dy(const DeltaHead& h, const float* dy, const DeltaChunk& c, const Gradients& g) {
  const float scale = 1.0f / __builtin_sqrtf(float(h.n()));
  const float* from = dy + h.row(c.first);
  clear(g.dy_rows, kChunk * h.width());
  clear(g.dy_panel, h.n() * kChunk);
  turn(from, h.stride(), c.count, h.n(), scale, g.dy_panel, kChunk);
  for (int64_t t = 0; t < c.count; ++t) {
    for (int64_t i = 0; i < h.n(); i += kLanes) {
      put(g.dy_rows + t * h.width() + i, fetch(from + t * h.stride() + i, h.n() - i) * set1(scale),
          h.n() - i);
    }
  }
}

/// M and N from D dy' and D X', and what they give to beta and to the exponents.
void weigh_squares(const DeltaChunk& c, const Gradients& g) {
  F32 to_beta[2] = {}, to_sum[2] = {};
  for (int64_t s = 0; s < c.count; ++s) {
    F32 from_sum = {};
    for (int h = 0; h < 2; ++h) {
      const int64_t at = s * kChunk + h * kLanes;
      const F32 beta = load(c.beta + h * kLanes), decay = load(c.decay + at), dm = load(g.m + at),
                dn = load(g.n + at), among = load(c.among + at);
      to_beta[h] -= dn * among;
      const F32 both = dm * load(c.mixed + at) - beta * dn * among;
      to_sum[h] += both;
      from_sum += both;
      store(g.m + at, dm * decay);
      store(g.n + at, -beta * dn * decay);
    }
    g.n[s * kChunk + s] = 0;
    g.dsum[s] -= reduce_add(from_sum);
  }
  for (int h = 0; h < 2; ++h) {
    float* beta = g.dbeta + h * kLanes;
    float* sum = g.dsum + h * kLanes;
    store(beta, load(beta) + to_beta[h]);
    store(sum, load(sum) + to_sum[h]);
  }
}

void write_rows(const DeltaHead& h, const DeltaChunk& c, const float* rows, float* to) {
  for (int64_t t = 0; t < c.count; ++t) {
    for (int64_t i = 0; i < h.n(); i += kLanes) {
      put(to + h.row(c.first + t) + i, fetch(rows + t * h.width() + i, h.n() - i), h.n() - i);
    }
  }
}

/// X, and what the rows of the chunk give to v, beta and gamma.
void system_gradient(const DeltaHead& h, const GatedDeltaNetBackward& p, const DeltaChunk& c,
                     const Gradients& g) {
  const int64_t n = h.n(), width = h.width();
  for (int64_t j = 0; j < width; j += kTileColumns) {
    tile_f32(c.count, c.k_panel, kChunk, g.dstate + j, width, n, g.x_rows + j, width, true);
  }
  for (int64_t t = 0; t < c.count; ++t) {
    scale_row(g.x_rows + t * width, g.x_rows + t * width, c.last[t], width);
  }
  for (int64_t j = 0; j < width; j += kTileColumns) {
    tile_of_panel_f32(c.count, c.mixed, g.dy_rows + j, width, c.count, g.x_rows + j, width, false);
  }
  solve_transposed(c, width, g.x_rows);
  for (int64_t t = 0; t < c.count; ++t) {
    const float* x = g.x_rows + t * width;
    g.dbeta[t] = dot(x, c.error_rows + t * width, width);
    // asked_rows holds gamma S' q already.
    g.dsum[t] = dot(g.dy_rows + t * width, g.asked_rows + t * width, width) -
                c.beta[t] * c.gamma[t] * dot(x, c.read_rows + t * width, width);
    scale_row(g.out_rows + t * width, x, c.beta[t], width);
    scale_row(g.z_rows + t * width, x, -c.beta[t] * c.gamma[t], width);
  }
  write_rows(h, c, g.out_rows, p.dv);
}

void chunk_gradient(const DeltaHead& h, const GatedDeltaNetBackward& p, DeltaChunk& c, const Gradients& g) {
  const int64_t n = h.n(), width = h.width(), count = c.count;
  query_chunk(h, c);
  if (n < width) clear(g.asked_rows, kChunk * width);
  turn(static_cast<const float*>(c.out_panel), kChunk, n, count, 1.0f, g.asked_rows, width);
  load_dy(h, p.dy, c, g);
  clear(g.dsum, kChunk);
  clear(g.dbeta, kChunk);
  system_gradient(h, p, c, g);

  clear(g.d_panel, n * kChunk);
  clear(g.x_panel, n * kChunk);
  turn(static_cast<const float*>(c.d_rows), width, count, n, 1.0f, g.d_panel, kChunk);
  turn(static_cast<const float*>(g.x_rows), width, count, n, 1.0f, g.x_panel, kChunk);
  tile_f32(count, g.d_panel, kChunk, g.dy_panel, kChunk, n, g.m, kChunk, true);
  tile_f32(count, g.d_panel, kChunk, g.x_panel, kChunk, n, g.n, kChunk, true);
  weigh_squares(c, g);

  // U and Z as panels and rows.
  const F32 gamma[2] = {load(c.gamma), load(c.gamma + kLanes)},
            beta[2] = {load(c.beta), load(c.beta + kLanes)};
  scale_panel(g.dy_panel, n, gamma[0], gamma[1]);
  scale_panel(g.x_panel, n, -beta[0] * gamma[0], -beta[1] * gamma[1]);
  for (int64_t t = 0; t < count; ++t)
    scale_row(g.dy_rows + t * width, g.dy_rows + t * width, c.gamma[t], width);
  turn(static_cast<const float*>(c.state), width, width, width, 1.0f, g.state_turned, width);
  turn(static_cast<const float*>(g.dstate), width, width, width, 1.0f, g.dstate_turned, width);

  for (int64_t j = 0; j < width; j += kTileColumns) {
    tile_f32(count, g.dy_panel, kChunk, g.state_turned + j, width, n, g.out_rows + j, width, true);
    tile_f32(count, g.m, kChunk, c.k_rows + j, width, count, g.out_rows + j, width, false);
  }
  write_rows(h, c, g.out_rows, p.dq);

  for (int64_t j = 0; j < width; j += kTileColumns) {
    tile_f32(count, g.d_panel, kChunk, g.dstate_turned + j, width, n, g.out_rows + j, width, true);
  }
  for (int64_t t = 0; t < count; ++t) {
    float* row = g.out_rows + t * width;
    scale_row(row, row, c.last[t], width);
    const float by_last = dot(row, c.k_rows + t * width, width);
    g.dsum[t] -= by_last;
    g.dsum[count - 1] += by_last;
  }
  for (int64_t j = 0; j < width; j += kTileColumns) {
    tile_f32(count, g.x_panel, kChunk, g.state_turned + j, width, n, g.out_rows + j, width, false);
    tile_of_panel_f32(count, g.m, c.q_rows + j, width, count, g.out_rows + j, width, false);
    tile_of_panel_f32(count, g.n, c.k_rows + j, width, count, g.out_rows + j, width, false);
    tile_f32(count, g.n, kChunk, c.k_rows + j, width, count, g.out_rows + j, width, false);
  }
  write_rows(h, c, g.out_rows, p.dk);

  const float end = c.end();
  g.dsum[count - 1] += end * dot(g.dstate, c.state, width * width);
  scale_row(g.dstate, g.dstate, end, width * width);
  for (int64_t j = 0; j < width; j += kTileColumns) {
    tile_f32(n, c.k_rows, width, g.z_rows + j, width, count, g.dstate + j, width, false);
    tile_f32(n, c.q_rows, width, g.dy_rows + j, width, count, g.dstate + j, width, false);
  }
  double sum = 0;
  for (int64_t t = count - 1; t >= 0; --t) {
    sum += double(g.dsum[t]);
    p.dg[h.gate(c.first + t)] = float(sum);
    p.dbeta[h.gate(c.first + t)] = g.dbeta[t];
  }
}

size_t scratch_bytes(const GatedDeltaNetBackward& p) {
  Carver count{nullptr};
  DeltaChunk chunk(p.forward, count);
  Gradients gradients(p.forward, count);
  return size_t(count.floats) * sizeof(float);
}

void head(const GatedDeltaNetBackward& p, int64_t batch, int64_t head_index, std::byte* scratch) {
  const GatedDeltaNet& f = p.forward;
  Carver memory{reinterpret_cast<float*>(scratch)};
  DeltaChunk c(f, memory);
  const Gradients g(f, memory);
  const DeltaHead h{f, batch, head_index};
  const int64_t n = f.size, area = h.width() * h.width();
  load_state(f.state == nullptr ? nullptr : f.state + h.state(), n, c.state);
  for (int64_t first = 0; first < f.length; first += kChunk) {
    std::memcpy(g.starts + first / kChunk * area, c.state, size_t(area) * sizeof(float));
    if (first + kChunk >= f.length) break;
    open_chunk(h, first, c);
    close_chunk(h, c);
  }
  load_state(p.dfinal_state == nullptr ? nullptr : p.dfinal_state + h.state(), n, g.dstate);
  for (int64_t chunk = (f.length + kChunk - 1) / kChunk - 1; chunk >= 0; --chunk) {
    std::memcpy(c.state, g.starts + chunk * area, size_t(area) * sizeof(float));
    open_chunk(h, chunk * kChunk, c);
    chunk_gradient(h, p, c, g);
  }
  if (p.dstate != nullptr) store_state(g.dstate, n, p.dstate + h.state());
}

}  // namespace

GatedDeltaNetBackwardKernels gated_delta_net_backward_kernels() {
  return {.scratch_bytes = scratch_bytes, .head = head};
}

}  // namespace rlx::cpu::RLX_ISA
