// One chunk of the gated delta rule as matrix products.
//
// With G[t] the sum of the log gates of the chunk up to step t, E[s][t] = e^(G[t] - G[s]) for s <= t, S the
// state before the chunk and gamma[t] = e^G[t], the recurrence over the steps of a chunk is
//   D[t] = beta[t] (v[t] - gamma[t] S' k[t]) - beta[t] sum over s < t of E[s][t] (k[s] . k[t]) D[s]
//   y[t] = (gamma[t] S' q[t] + sum over s <= t of E[s][t] (k[s] . q[t]) D[s]) / sqrt(size)
//   S    = gamma[last] S + sum over s of E[s][last] k[s] D[s]'
// so all but a triangular system of kChunk unknowns is products of matrices.
//
// Rows [kChunk][stride] have one step a row, panels [size][kChunk] one step a lane; squares are [s][t]; the
// state is [width][stride]. The stride is an odd number of cache lines, so that a column of 32 numbers
// spreads over all sets of L1.
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

/// Of rows and of the state, for heads of `size`.
RLX_INLINE int64_t row_stride(int64_t size) { return padded(size) + 16; }

/// One head of one batch row.
struct DeltaHead {
  const GatedDeltaNet& p;
  int64_t batch, head;

  RLX_INLINE int64_t n() const { return p.size; }
  RLX_INLINE int64_t width() const { return padded(p.size); }
  RLX_INLINE int64_t stride() const { return row_stride(p.size); }
  RLX_INLINE int64_t gate(int64_t t) const { return (batch * p.length + t) * p.heads + head; }
  RLX_INLINE int64_t row(int64_t t) const { return gate(t) * p.size; }
  RLX_INLINE int64_t step() const { return p.heads * p.size; }  // between rows of q, k, v, y
  RLX_INLINE int64_t state() const { return (batch * p.heads + head) * p.size * p.size; }
};

/// Keys and queries of one chunk, zero beyond its steps and beyond size.
struct DeltaInputs {
  float *k_rows, *q_rows;  // q_rows for the backward kernel only, null otherwise
  float *k_panel, *q_panel;
};

struct DeltaChunk {
  float* state;                            // zero beyond size
  DeltaInputs in, next;                    // of this chunk and of the one that follows
  float* w_rows;                           // keys weighted for the state
  float *read_rows, *error_rows, *d_rows;  // S' k, v - gamma S' k, D
  float* asked_rows;                       // gamma S' q
  float *decay, *among, *mixed;            // E, E (k[s] . k[t]) for s < t, E (k[s] . q[t]) for s <= t
  float* system;                           // -beta[t] among[s][t]
  float *gamma, *beta, *last;              // one number a step; last = E[t][last step]
  bool queries = true;                     // whether anything of q is wanted
  int64_t first = 0, count = 0;            // steps beyond count have k, q, beta and D zero

  DeltaChunk(const GatedDeltaNet& p, bool backward, Carver& memory);

  RLX_INLINE float end() const { return gamma[count - 1]; }
};

/// Squares of kLanes keys, and as many queries, that make a chunk.
RLX_INLINE int64_t squares(const DeltaHead& h) { return 2 * h.width() / kLanes; }
/// Brings squares [begin, end) of the chunk from step `first` on to c.next, and asks for as many more, where
/// need be of the chunk from step `after` on. Rows of one head lie heads * size apart, often a multiple of 4
/// KiB: the machine foresees nothing of them, and many of them would compete for the same few sets of every
/// cache. So the rows of the next chunk come a few at a time while this one is worked on.
void fetch_squares(const DeltaHead&, int64_t first, int64_t after, int64_t begin, int64_t end,
                   const DeltaChunk& c);
/// Asks for kTileColumns columns from j on of the chunk's rows of x, which is read or written soon.
RLX_INLINE void ask_columns(const DeltaHead& h, const DeltaChunk& c, const float* x, int64_t j) {
  const float* from = x + h.row(c.first) + j;
  for (int64_t t = 0; t < c.count; ++t) {
    for (int64_t i = 0; i < least(h.n() - j, kTileColumns); i += 16)
      __builtin_prefetch(from + t * h.step() + i, 0, 2);
  }
  asm volatile("");  // GCC 12 takes a function that only prefetches for one without effect, and drops it
}

/// Takes c.next as the chunk from step `first` on; gates, and products among keys and queries.
void open_chunk(const DeltaHead&, int64_t first, DeltaChunk&);
// The rest works on kTileColumns columns from j on, whose part of the state stays in L1 meanwhile.
/// read_rows, error_rows and d_rows.
void read_state(const DeltaHead&, int64_t j, const DeltaChunk&);
/// asked_rows.
void ask_state(const DeltaHead&, int64_t j, const DeltaChunk&);
/// The state after the chunk.
void close_state(const DeltaHead&, int64_t j, const DeltaChunk&);

/// row s += sum over t > s of system[s][t] row t, from the last row up, in place: the transposed system.
void solve_transposed(const DeltaHead&, const DeltaChunk&, float* rows);

/// [n][n] <-> [width][stride].
void load_state(const float* from, int64_t n, float* to);
void store_state(const float* from, int64_t n, float* to);

}  // namespace rlx::cpu::RLX_ISA
