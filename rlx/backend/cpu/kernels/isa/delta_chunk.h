// One chunk of the gated delta rule as matrix products.
//
// With G[t] the sum of the log gates of the chunk up to step t, E[s][t] = e^(G[t] - G[s]) for s <= t, S the
// state before the chunk and gamma[t] = e^G[t], the recurrence over the steps of a chunk is
//   D[t] = beta[t] (v[t] - gamma[t] S' k[t]) - beta[t] sum over s < t of E[s][t] (k[s] . k[t]) D[s]
//   y[t] = (gamma[t] S' q[t] + sum over s <= t of E[s][t] (k[s] . q[t]) D[s]) / sqrt(size)
//   S    = gamma[last] S + sum over s of E[s][last] k[s] D[s]'
// so all but a triangular system of kChunk unknowns is products of matrices.
//
// Rows [kChunk][width] have one step a row, panels [size][kChunk] one step a lane; squares are [s][t].
#pragma once

#include "rlx/backend/cpu/kernels/gated_delta_net.h"
#include "rlx/backend/cpu/kernels/isa/panels.h"

namespace rlx::cpu::RLX_ISA {

inline constexpr int64_t kChunk = kTileColumns;

/// Hands out pieces of scratch memory in whole tiles; without memory it only counts.
struct Carver {
  float* base;
  int64_t floats = 0;

  RLX_INLINE float* take(int64_t n) {
    float* piece = base == nullptr ? nullptr : base + floats;
    floats += padded(n);
    return piece;
  }
};

/// One head of one batch row.
struct DeltaHead {
  const GatedDeltaNet& p;
  int64_t batch, head;

  RLX_INLINE int64_t n() const { return p.size; }
  RLX_INLINE int64_t width() const { return padded(p.size); }
  RLX_INLINE int64_t gate(int64_t t) const { return (batch * p.length + t) * p.heads + head; }
  RLX_INLINE int64_t row(int64_t t) const { return gate(t) * p.size; }
  RLX_INLINE int64_t stride() const { return p.heads * p.size; }  // between steps
  RLX_INLINE int64_t state() const { return (batch * p.heads + head) * p.size * p.size; }
};

struct DeltaChunk {
  float* state;                                                       // [width][width], padded with zeros
  float *k_rows, *q_rows, *read_rows, *error_rows, *d_rows, *w_rows;  // w_rows: k_rows weighted for the state
  float *k_panel, *q_panel, *read_panel, *out_panel;
  float *decay, *among, *mixed;  // E, E (k[s] . k[t]) for s < t, E (k[s] . q[t]) for s <= t
  float *gamma, *beta, *last;    // one number a step; last = E[t][last step]
  int64_t first = 0, count = 0;

  DeltaChunk(const GatedDeltaNet& p, Carver& memory);

  RLX_INLINE float end() const { return gamma[count - 1]; }
};

/// What a chunk from step `first` on needs of the state before it: all but y and the new state.
/// error_rows = v - gamma S' k, read_rows = S' k.
void open_chunk(const DeltaHead&, int64_t first, DeltaChunk&);
/// out_panel = gamma S' q; `mixed` as above.
void query_chunk(const DeltaHead&, DeltaChunk&);
/// The state after the chunk.
void close_chunk(const DeltaHead&, DeltaChunk&);

/// [n][n] <-> [width][width].
void load_state(const float* from, int64_t n, float* to);
void store_state(const float* from, int64_t n, float* to);

}  // namespace rlx::cpu::RLX_ISA
