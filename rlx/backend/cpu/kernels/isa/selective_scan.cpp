// Plan. A group is kLanes channels in the lanes of a vector, its states one vector each: the recurrence never
// crosses lanes.
//   A', S [states][kLanes] in L1;  per step and state: e = exp(delta A'), S = e S + delta x b, y += c S
// One exponential (about 16 instructions) and three multiply-adds a state; b and c are broadcast from memory.
// Rows of x, delta and y lie channels * 4 bytes apart, beyond what the machine foresees: the rows kAhead
// steps ahead are asked for, and a run of kRun steps is finished for a few groups before the next, so that
// their pages stay known. Bound: rate of vector instructions.
//
// Backward goes through runs of kRun steps from the last. A first sweep keeps S at the start of each run; a
// run is then computed anew with its S and e kept (2 * kRun * states vectors, 64 KiB at 16 states). With G
// the gradient of S[t]:
//   G = c dy + e[t+1] G[t+1]     dc = sum over channels of dy S[t]     db = sum over channels of G delta x
//   ddelta = sum over states of (G e S[t-1] a + G b x)    dx = sum of G delta b    da = sum over t of G e
//   S[t-1] delta
// The sums over channels fold the vectors of kLanes states into one.
#include "rlx/backend/cpu/kernels/selective_scan.h"

#include "rlx/backend/cpu/kernels/isa/panels.h"
#include "rlx/backend/cpu/simd/math.h"

namespace rlx::cpu::RLX_ISA {
namespace {

constexpr int64_t kRun = 32;
constexpr int64_t kAhead = 8;

/// One group: where its channels begin, and how many it has.
struct Lanes {
  int64_t first;
  int count;
};
RLX_INLINE Lanes lanes_of(const SelectiveScan& p, int64_t group) {
  const int64_t first = group * kLanes;
  return {first, int(least(kLanes, p.channels - first))};
}

/// Rows [channels of the group][states] <-> vectors [states][kLanes].
RLX_INLINE void gather_states(const float* rows, int64_t states, Lanes lanes, float* out) {
  for (int64_t i = 0; i < states; ++i) {
    for (int c = 0; c < kLanes; ++c)
      out[i * kLanes + c] = c < lanes.count ? rows[(lanes.first + c) * states + i] : 0;
  }
}
RLX_INLINE void scatter_states(const float* vectors, int64_t states, Lanes lanes, float* rows) {
  for (int64_t i = 0; i < states; ++i) {
    for (int c = 0; c < lanes.count; ++c) rows[(lanes.first + c) * states + i] = vectors[i * kLanes + c];
  }
}

size_t scratch_bytes(const SelectiveScan& p) {
  return size_t(2 * kScanGroups * p.states) * kVectorBytes;  // A' and S of each group
}

/// Steps [begin, end) of one group; S is carried.
RLX_INLINE void run_forward(const SelectiveScan& p, int64_t batch, Lanes lanes, int64_t begin, int64_t end,
                            const float* a, float* s) {
  for (int64_t t = begin; t < end; ++t) {
    const int64_t at = (batch * p.length + t) * p.channels + lanes.first,
                  row = (batch * p.length + t) * p.states;
    if (t + kAhead < p.length) {
      __builtin_prefetch(p.x + at + kAhead * p.channels);
      __builtin_prefetch(p.delta + at + kAhead * p.channels);
    }
    const F32 delta = fetch(p.delta + at, lanes.count), input = delta * fetch(p.x + at, lanes.count);
    F32 y = {};
    for (int64_t i = 0; i < p.states; ++i) {
      const F32 e = exp(delta * load(a + i * kLanes));
      const F32 next = fma(e, load(s + i * kLanes), input * set1(p.b[row + i]));
      store(s + i * kLanes, next);
      y = fma(set1(p.c[row + i]), next, y);
    }
    store_n(p.y + at, y, lanes.count);
  }
}

void forward(const SelectiveScan& p, int64_t batch, int64_t begin, int64_t end, std::byte* scratch) {
  float* memory = reinterpret_cast<float*>(scratch);
  const int64_t size = p.states * kLanes;
  const auto a = [&](int64_t group) { return memory + (group - begin) * 2 * size; };
  for (int64_t g = begin; g < end; ++g) {
    gather_states(p.a, p.states, lanes_of(p, g), a(g));
    if (p.state != nullptr) {
      gather_states(p.state + batch * p.channels * p.states, p.states, lanes_of(p, g), a(g) + size);
    } else {
      clear(a(g) + size, size);
    }
  }
  for (int64_t t = 0; t < p.length; t += kRun) {
    for (int64_t g = begin; g < end; ++g) {
      run_forward(p, batch, lanes_of(p, g), t, least(p.length, t + kRun), a(g), a(g) + size);
    }
  }
  for (int64_t g = begin; g < end && p.final_state != nullptr; ++g) {
    scatter_states(a(g) + size, p.states, lanes_of(p, g), p.final_state + batch * p.channels * p.states);
  }
}

// ---- backward ----

struct Scratch {           // counted in vectors
  float *a, *s, *g, *da;   // [states]
  float* starts;           // [runs][states]
  float *kept_s, *kept_e;  // [kRun + 1][states], [kRun][states]
  int64_t vectors = 0;

  Scratch(const SelectiveScan& p, float* base) {
    const auto take = [&](float*& to, int64_t n) {
      to = base == nullptr ? nullptr : base + vectors * kLanes;
      vectors += n * p.states;
    };
    take(a, 1), take(s, 1), take(g, 1), take(da, 1);
    take(starts, (p.length + kRun - 1) / kRun);
    take(kept_s, kRun + 1);
    take(kept_e, kRun);
  }
};

size_t backward_scratch_bytes(const SelectiveScan& p) {
  return size_t(Scratch(p, nullptr).vectors) * kVectorBytes;
}

/// S and e of steps [begin, end), kept from s.kept_s[1] on; kept_s[0] is S before them.
RLX_INLINE void recompute(const SelectiveScan& p, int64_t batch, Lanes lanes, int64_t begin, int64_t end,
                          const Scratch& s, bool keep) {
  const int64_t size = p.states * kLanes;
  for (int64_t t = begin; t < end; ++t) {
    const int64_t at = (batch * p.length + t) * p.channels + lanes.first,
                  row = (batch * p.length + t) * p.states;
    const F32 delta = fetch(p.delta + at, lanes.count), input = delta * fetch(p.x + at, lanes.count);
    if (!keep && t + kAhead < p.length) {
      __builtin_prefetch(p.x + at + kAhead * p.channels);
      __builtin_prefetch(p.delta + at + kAhead * p.channels);
    }
    const float* from = keep ? s.kept_s + (t - begin) * size : s.s;
    float* to = keep ? s.kept_s + (t - begin + 1) * size : s.s;
    for (int64_t i = 0; i < size; i += kLanes) {
      const F32 e = exp(delta * load(s.a + i));
      store(to + i, fma(e, load(from + i), input * set1(p.b[row + i / kLanes])));
      if (keep) store(s.kept_e + (t - begin) * size + i, e);
    }
  }
}

void backward_step(const SelectiveScanBackward& p, int64_t batch, Lanes lanes, int64_t t, int64_t in_run,
                   const Scratch& s, float* db, float* dc) {
  const SelectiveScan& f = p.forward;
  const int64_t at = (batch * f.length + t) * f.channels + lanes.first,
                row = (batch * f.length + t) * f.states;
  const int64_t size = f.states * kLanes;
  const F32 delta = fetch(f.delta + at, lanes.count), x = fetch(f.x + at, lanes.count);
  const F32 dy = fetch(p.dy + at, lanes.count), input = delta * x;
  const float* before = s.kept_s + in_run * size;
  const float* e = s.kept_e + in_run * size;
  F32 by_decay = {}, by_input = {};
  for (int64_t i0 = 0; i0 < f.states; i0 += kLanes) {
    const int count = int(least(kLanes, f.states - i0));
    F32 to_b[kLanes], to_c[kLanes];
    for (int i = 0; i < kLanes; ++i) {
      if (i >= count) {
        to_b[i] = to_c[i] = F32{};
        continue;
      }
      const int64_t v = (i0 + i) * kLanes;
      const F32 g = fma(set1(f.c[row + i0 + i]), dy, load(s.g + v));
      to_c[i] = dy * load(before + size + v);
      to_b[i] = g * input;
      const F32 carried = load(e + v) * g, decay = carried * load(before + v);
      store(s.g + v, carried);
      store(s.da + v, fma(delta, decay, load(s.da + v)));
      by_decay = fma(load(s.a + v), decay, by_decay);
      by_input = fma(set1(f.b[row + i0 + i]), g, by_input);
    }
    store_n(db + row + i0, load_n(db + row + i0, count) + sum_lanes(to_b), count);
    store_n(dc + row + i0, load_n(dc + row + i0, count) + sum_lanes(to_c), count);
  }
  store_n(p.ddelta + at, fma(x, by_input, by_decay), lanes.count);
  store_n(p.dx + at, delta * by_input, lanes.count);
}

void backward(const SelectiveScanBackward& p, int64_t begin, int64_t end, float* db, float* dc,
              std::byte* scratch) {
  const SelectiveScan& f = p.forward;
  const Scratch s(f, reinterpret_cast<float*>(scratch));
  const int64_t size = f.states * kLanes, rows = f.batch * f.length * f.states;
  for (int64_t i = 0; i < rows; ++i) db[i] = dc[i] = 0;
  for (int64_t group = begin; group < end; ++group) {
    const Lanes lanes = lanes_of(f, group);
    gather_states(f.a, f.states, lanes, s.a);
    clear(s.da, size);
    for (int64_t batch = 0; batch < f.batch; ++batch) {
      clear(s.s, size);
      for (int64_t t = 0; t < f.length; t += kRun) {
        std::memcpy(s.starts + t / kRun * size, s.s, size_t(size) * sizeof(float));
        if (t + kRun < f.length) recompute(f, batch, lanes, t, t + kRun, s, false);
      }
      clear(s.g, size);
      for (int64_t run = (f.length - 1) / kRun; run >= 0 && f.length > 0; --run) {
        const int64_t first = run * kRun, last = least(f.length, first + kRun);
        std::memcpy(s.kept_s, s.starts + run * size, size_t(size) * sizeof(float));
        recompute(f, batch, lanes, first, last, s, true);
        for (int64_t t = last - 1; t >= first; --t) {
          backward_step(p, batch, lanes, t, t - first, s, db, dc);
        }
      }
    }
    scatter_states(s.da, f.states, lanes, p.da);
  }
}

}  // namespace

SelectiveScanKernels selective_scan_kernels() {
  return {.channels = kLanes,
          .scratch_bytes = scratch_bytes,
          .forward = forward,
          .backward_scratch_bytes = backward_scratch_bytes,
          .backward = backward};
}

}  // namespace rlx::cpu::RLX_ISA
