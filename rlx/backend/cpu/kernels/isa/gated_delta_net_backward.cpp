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
  float *dstate, *state_turned, *dstate_turned;  // [width][stride]
  float *dy_rows, *x_rows, *out_rows, *z_rows;
  float *dy_panel, *d_panel, *x_panel;
  float *m, *n;         // squares
  float *dbeta, *dsum;  // one number a step; dsum: of G
  float* starts;        // [chunks][width][stride]

  Gradients(const GatedDeltaNet& p, Carver& memory) {
    const int64_t stride = row_stride(p.size), area = padded(p.size) * stride, rows = kChunk * stride,
                  panel = p.size * kChunk, square = kChunk * kChunk;
    dstate = memory.take(area);
    state_turned = memory.take(area), dstate_turned = memory.take(area);
    dy_rows = memory.take(rows), x_rows = memory.take(rows);
    out_rows = memory.take(rows), z_rows = memory.take(rows);
    dy_panel = memory.take(panel), d_panel = memory.take(panel), x_panel = memory.take(panel);
    m = memory.take(square), n = memory.take(square);
    dbeta = memory.take(kChunk), dsum = memory.take(kChunk);
    starts = memory.take((p.length + kChunk - 1) / kChunk * area);
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

/// dy of the chunk divided by sqrt(n), as rows and as a panel.
void load_dy(const DeltaHead& h, const float* dy, const DeltaChunk& c, const Gradients& g) {
  const float scale = 1.0f / __builtin_sqrtf(float(h.n()));
  const float* from = dy + h.row(c.first);
  clear(g.dy_rows, kChunk * h.stride());
  clear(g.dy_panel, h.n() * kChunk);
  turn(from, h.step(), c.count, h.n(), scale, g.dy_panel, kChunk);
  for (int64_t t = 0; t < c.count; ++t) {
    for (int64_t i = 0; i < h.n(); i += kLanes) {
      put(g.dy_rows + t * h.stride() + i, fetch(from + t * h.step() + i, h.n() - i) * set1(scale), h.n() - i);
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
      put(to + h.row(c.first + t) + i, fetch(rows + t * h.stride() + i, h.n() - i), h.n() - i);
    }
  }
}

/// X, and what the rows of the chunk give to v, beta and gamma.
void system_gradient(const DeltaHead& h, const GatedDeltaNetBackward& p, const DeltaChunk& c,
                     const Gradients& g) {
  const int64_t n = h.n(), width = h.width(), stride = h.stride();
  for (int64_t j = 0; j < width; j += kTileColumns) {
    ask_columns(h, c, p.dv, j);
    tile_f32(kChunk, c.in.k_panel, kChunk, g.dstate + j, stride, n, g.x_rows + j, stride, true);
  }
  for (int64_t t = 0; t < kChunk; ++t) {
    scale_row(g.x_rows + t * stride, g.x_rows + t * stride, c.last[t], width);
  }
  for (int64_t j = 0; j < width; j += kTileColumns) {
    tile_of_panel_f32(kChunk, c.mixed, g.dy_rows + j, stride, c.count, g.x_rows + j, stride, false);
  }
  solve_transposed(h, c, g.x_rows);
  for (int64_t t = 0; t < c.count; ++t) {
    const float* x = g.x_rows + t * stride;
    g.dbeta[t] = dot(x, c.error_rows + t * stride, width);
    // asked_rows holds gamma S' q already.
    g.dsum[t] = dot(g.dy_rows + t * stride, c.asked_rows + t * stride, width) -
                c.beta[t] * c.gamma[t] * dot(x, c.read_rows + t * stride, width);
    scale_row(g.out_rows + t * stride, x, c.beta[t], width);
    scale_row(g.z_rows + t * stride, x, -c.beta[t] * c.gamma[t], width);
  }
  write_rows(h, c, g.out_rows, p.dv);
}

void chunk_gradient(const DeltaHead& h, const GatedDeltaNetBackward& p, DeltaChunk& c, const Gradients& g) {
  const int64_t n = h.n(), width = h.width(), stride = h.stride(), count = c.count;
  load_dy(h, p.dy, c, g);
  clear(g.dsum, kChunk);
  clear(g.dbeta, kChunk);
  system_gradient(h, p, c, g);

  clear(g.d_panel, n * kChunk);
  clear(g.x_panel, n * kChunk);
  turn(static_cast<const float*>(c.d_rows), stride, count, n, 1.0f, g.d_panel, kChunk);
  turn(static_cast<const float*>(g.x_rows), stride, count, n, 1.0f, g.x_panel, kChunk);
  tile_f32(count, g.d_panel, kChunk, g.dy_panel, kChunk, n, g.m, kChunk, true);
  tile_f32(count, g.d_panel, kChunk, g.x_panel, kChunk, n, g.n, kChunk, true);
  weigh_squares(c, g);

  // U and Z as panels and rows.
  const F32 gamma[2] = {load(c.gamma), load(c.gamma + kLanes)},
            beta[2] = {load(c.beta), load(c.beta + kLanes)};
  scale_panel(g.dy_panel, n, gamma[0], gamma[1]);
  scale_panel(g.x_panel, n, -beta[0] * gamma[0], -beta[1] * gamma[1]);
  for (int64_t t = 0; t < count; ++t)
    scale_row(g.dy_rows + t * stride, g.dy_rows + t * stride, c.gamma[t], width);
  turn(static_cast<const float*>(c.state), stride, width, width, 1.0f, g.state_turned, stride);
  turn(static_cast<const float*>(g.dstate), stride, width, width, 1.0f, g.dstate_turned, stride);

  for (int64_t j = 0; j < width; j += kTileColumns) {
    ask_columns(h, c, p.dq, j);
    tile_f32(count, g.dy_panel, kChunk, g.state_turned + j, stride, n, g.out_rows + j, stride, true);
    tile_f32(count, g.m, kChunk, c.in.k_rows + j, stride, count, g.out_rows + j, stride, false);
  }
  write_rows(h, c, g.out_rows, p.dq);

  for (int64_t j = 0; j < width; j += kTileColumns) {
    ask_columns(h, c, p.dk, j);
    tile_f32(count, g.d_panel, kChunk, g.dstate_turned + j, stride, n, g.out_rows + j, stride, true);
  }
  for (int64_t t = 0; t < count; ++t) {
    float* row = g.out_rows + t * stride;
    scale_row(row, row, c.last[t], width);
    const float by_last = dot(row, c.in.k_rows + t * stride, width);
    g.dsum[t] -= by_last;
    g.dsum[count - 1] += by_last;
  }
  for (int64_t j = 0; j < width; j += kTileColumns) {
    tile_f32(count, g.x_panel, kChunk, g.state_turned + j, stride, n, g.out_rows + j, stride, false);
    tile_of_panel_f32(count, g.m, c.in.q_rows + j, stride, count, g.out_rows + j, stride, false);
    tile_of_panel_f32(count, g.n, c.in.k_rows + j, stride, count, g.out_rows + j, stride, false);
    tile_f32(count, g.n, kChunk, c.in.k_rows + j, stride, count, g.out_rows + j, stride, false);
  }
  write_rows(h, c, g.out_rows, p.dk);

  const float end = c.end();
  g.dsum[count - 1] += end * dot(g.dstate, c.state, width * stride);
  for (int64_t j = 0; j < width; j += kTileColumns) {
    fading_tile_f32(n, c.in.k_rows, stride, g.z_rows + j, stride, count, g.dstate + j, stride, end);
    tile_f32(n, c.in.q_rows, stride, g.dy_rows + j, stride, count, g.dstate + j, stride, false);
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
  DeltaChunk chunk(p.forward, true, count);
  Gradients gradients(p.forward, count);
  return size_t(count.floats) * sizeof(float);
}

void head(const GatedDeltaNetBackward& p, int64_t batch, int64_t head_index, std::byte* scratch) {
  const GatedDeltaNet& f = p.forward;
  Carver memory{reinterpret_cast<float*>(scratch)};
  DeltaChunk c(f, true, memory);
  const Gradients g(f, memory);
  const DeltaHead h{f, batch, head_index};
  const int64_t n = f.size, area = h.width() * h.stride(), all = squares(h);
  const auto fetch_next = [&](int64_t j, int64_t half, int64_t first, int64_t after) {
    const int64_t square = 2 * j / kLanes + 2 * half;
    fetch_squares(h, first, after, square, square + 2, c);
  };
  load_state(f.state == nullptr ? nullptr : f.state + h.state(), n, c.state);
  c.queries = false;
  fetch_squares(h, 0, 0, 0, all, c);
  for (int64_t first = 0; first < f.length; first += kChunk) {
    std::memcpy(g.starts + first / kChunk * area, c.state, size_t(area) * sizeof(float));
    if (first + kChunk >= f.length) break;
    open_chunk(h, first, c);
    for (int64_t j = 0; j < n; j += kTileColumns) {
      fetch_next(j, 0, first + kChunk, first + 2 * kChunk);
      read_state(h, j, c);
      fetch_next(j, 1, first + kChunk, first + 2 * kChunk);
      close_state(h, j, c);
    }
  }
  load_state(p.dfinal_state == nullptr ? nullptr : p.dfinal_state + h.state(), n, g.dstate);
  c.queries = true;
  int64_t first = (f.length - 1) / kChunk * kChunk;
  fetch_squares(h, first, 0, 0, all, c);
  for (; first >= 0 && f.length > 0; first -= kChunk) {
    c.state = g.starts + first / kChunk * area;
    open_chunk(h, first, c);
    for (int64_t j = 0; j < n; j += kTileColumns) {
      fetch_next(j, 0, first - kChunk, first - 2 * kChunk);
      ask_columns(h, c, p.dy, j);
      read_state(h, j, c);
      fetch_next(j, 1, first - kChunk, first - 2 * kChunk);
      ask_state(h, j, c);
    }
    chunk_gradient(h, p, c, g);
  }
  if (p.dstate != nullptr) store_state(g.dstate, n, p.dstate + h.state());
}

}  // namespace

GatedDeltaNetBackwardKernels gated_delta_net_backward_kernels() {
  return {.scratch_bytes = scratch_bytes, .head = head};
}

}  // namespace rlx::cpu::RLX_ISA
