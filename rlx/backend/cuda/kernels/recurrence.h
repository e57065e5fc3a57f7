// Recurrences along a sequence, one kernel for all times: the gated delta rule and the selective scan. Before them stand T
// (in memory; arithmetic is f32) and what is said at each.
#pragma once

namespace rlx::cuda {

inline constexpr char kRecurrenceShared[] = R"cuda(
// One number on its way to shared memory, 0 where it is outside; f32 does not pass through registers.
inline void stage(f32* to, const T* from, bool inside) {
  if (sizeof(T) == 4) {
    const u32 place = u32(__cvta_generic_to_shared(to));
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" :: "r"(place), "l"(from), "r"(inside ? 4 : 0));
  } else {
    *to = inside ? as_f32(*from) : 0.0f;
  }
}
// Four neighbours; kWide: they are f32 at a multiple of 16 bytes.
inline void stage4(f32* to, const T* from, int inside) {
  if (kWide) {
    const u32 place = u32(__cvta_generic_to_shared(to));
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" :: "r"(place), "l"(from), "r"(inside > 0 ? 16 : 0));
  } else {
    for (int i = 0; i < 4; ++i) stage(to + i, i < inside ? from + i : from, i < inside);
  }
}
inline void end_of_stage() { asm volatile("cp.async.commit_group;"); }
inline void all_but_last_stage() { asm volatile("cp.async.wait_group 1;" ::: "memory"); }

// Sums of r[0..7] over eight neighbouring lanes; lane `part` gets that of r[part]: seven shuffles instead of 24.
inline f32 sum_of_part(f32 (&r)[8], int part) {
  #pragma unroll
  for (int half = 4; half > 0; half /= 2) {
    #pragma unroll
    for (int i = 0; i < half; ++i) {
      const f32 keep = part & half ? r[i + half] : r[i], send = part & half ? r[i] : r[i + half];
      r[i] = keep + __shfl_xor_sync(~0u, send, half);
    }
  }
  return r[0];
}
)cuda";

// The columns of the state are independent of each other: a block takes kColumns of them for one batch row and head, eight
// threads for kEach columns, which keep them in registers, so that a number of k or q that is fetched from shared memory serves kEach columns; thread `part` has rows
// 4 (8 j + part) ... + 3. Sixteen times are staged at once. kSize (n) and kPadded (the next multiple of 32), kCarry: there is a state to begin with.
inline constexpr char kGatedDeltaNet[] = R"cuda(
constexpr int kTimes = kPadded > 128 ? 8 : 16, kQuads = kPadded / 32, kRows = kPadded / 8, kThreads = kColumns / kEach * 8;
struct Stage { f32 k[kTimes][kPadded], q[kTimes][kPadded], v[kTimes][kColumns], g[kTimes], beta[kTimes]; };

extern "C" __global__ void __launch_bounds__(kThreads) gated_delta_net(const T* q, const T* k, const T* v, const T* g, const T* beta,
    const T* before, T* y, T* after, int length, int heads, f32 scale) {
  extern __shared__ uint4 memory[];
  Stage* const stages = reinterpret_cast<Stage*>(memory);
  constexpr int kGroups = (kSize + kColumns - 1) / kColumns;
  const i64 owner = blockIdx.x / kGroups, b = owner / heads, h = owner % heads;  // batch row and head
  const int first = blockIdx.x % kGroups * kColumns, own = threadIdx.x / 8 * kEach, part = threadIdx.x % 8, column = first + own;
  const i64 step = i64(heads) * kSize, base = (b * length * heads + h) * kSize, gates = b * length * heads + h;
  const auto fetch = [&](int start, Stage& z) {
    if (start >= length) return end_of_stage();
    #pragma unroll
    for (int n = 0; n < (kTimes * kPadded / 4 + kThreads - 1) / kThreads; ++n) {
      const int e = threadIdx.x + n * kThreads, t = e / (kPadded / 4), at = e % (kPadded / 4) * 4;
      if (t >= kTimes) break;
      const int inside = start + t < length ? kSize - at : 0;
      const i64 from = inside > 0 ? base + (start + t) * step + at : base;
      stage4(&z.k[t][at], k + from, inside);
      stage4(&z.q[t][at], q + from, inside);
    }
    #pragma unroll
    for (int n = 0; n < (kTimes * kColumns + kThreads - 1) / kThreads; ++n) {
      const int e = threadIdx.x + n * kThreads, t = e / kColumns, at = first + e % kColumns;
      if (t >= kTimes) break;
      const bool inside = start + t < length && at < kSize;
      stage(&z.v[t][e % kColumns], v + (inside ? base + (start + t) * step + at : base), inside);
    }
    if (threadIdx.x < kTimes) {
      const bool inside = start + threadIdx.x < length;
      const i64 from = inside ? gates + i64(start + threadIdx.x) * heads : gates;
      stage(&z.g[threadIdx.x], g + from, inside);
      stage(&z.beta[threadIdx.x], beta + from, inside);
    }
    end_of_stage();
  };
  fetch(0, stages[0]);
  f32 s[kEach][kRows] = {};
  const auto row_of = [&](int i) { return 4 * (i / 4 * 8 + part) + i % 4; };
  #pragma unroll
  for (int c = 0; c < kEach; ++c) {
    if (!kCarry || column + c >= kSize) continue;
    const T* const from = before + owner * kSize * kSize + column + c;
    #pragma unroll
    for (int i = 0; i < kRows; ++i) {
      if (row_of(i) < kSize) s[c][i] = as_f32(from[i64(row_of(i)) * kSize]);
    }
  }
  for (int start = 0, turn = 0; start < length; start += kTimes, turn ^= 1) {
    fetch(start + kTimes, stages[turn ^ 1]);
    all_but_last_stage();
    __syncthreads();
    const Stage& z = stages[turn];
    #pragma unroll 1
    for (int eight = 0; eight < kTimes; eight += 8) {
      f32 out[kEach][8];
      #pragma unroll
      for (int i = 0; i < 8; ++i) {
        const int t = eight + i;
        const f32 gate = __expf(z.g[t]);
        const Pack<f32, kEach> value = load<kEach>(&z.v[t][own]);
        f32 key[kRows], read[kEach], error[kEach];
        #pragma unroll
        for (int j = 0; j < kQuads; ++j) {
          const Pack<f32, 4> x = load<4>(&z.k[t][(j * 8 + part) * 4]);
          #pragma unroll
          for (int u = 0; u < 4; ++u) key[4 * j + u] = x.v[u];
        }
        #pragma unroll
        for (int c = 0; c < kEach; ++c) {
          f32 dot[4] = {};
          #pragma unroll
          for (int n = 0; n < kRows; ++n) dot[n % 4] = fmaf(s[c][n], key[n], dot[n % 4]);
          read[c] = (dot[0] + dot[1]) + (dot[2] + dot[3]);
        }
        #pragma unroll
        for (int o = 4; o > 0; o /= 2) {
          #pragma unroll
          for (int c = 0; c < kEach; ++c) read[c] += __shfl_xor_sync(~0u, read[c], o);
        }
        // The gate is applied to the sum; the state itself fades when it is changed.
        #pragma unroll
        for (int c = 0; c < kEach; ++c) error[c] = (value.v[c] - gate * read[c]) * z.beta[t];
        f32 seen[kEach][2] = {};
        #pragma unroll
        for (int j = 0; j < kQuads; ++j) {
          const Pack<f32, 4> x = load<4>(&z.q[t][(j * 8 + part) * 4]);
          #pragma unroll
          for (int u = 0; u < 4; ++u) {
            #pragma unroll
            for (int c = 0; c < kEach; ++c) {
              f32& now = s[c][4 * j + u];
              now = fmaf(gate, now, key[4 * j + u] * error[c]);
              seen[c][u % 2] = fmaf(now, x.v[u], seen[c][u % 2]);
            }
          }
        }
        #pragma unroll
        for (int c = 0; c < kEach; ++c) out[c][i] = seen[c][0] + seen[c][1];
      }
      const int t = start + eight + part;
      #pragma unroll
      for (int c = 0; c < kEach; ++c) {
        const f32 sum = sum_of_part(out[c], part);
        if (t < length && column + c < kSize) put(y[base + t * step + column + c], sum * scale);
      }
    }
    __syncthreads();
  }
  #pragma unroll
  for (int c = 0; c < kEach; ++c) {
    if (column + c >= kSize) continue;
    T* const last = after + owner * kSize * kSize + column + c;
    #pragma unroll
    for (int i = 0; i < kRows; ++i) {
      if (row_of(i) < kSize) put(last[i64(row_of(i)) * kSize], s[c][i]);
    }
  }
}
)cuda";

// Parallel in time inside a tile of 64 times. A block has 16 channels of a batch row, a warp two of them; a lane has a segment of
// eight times and four of sixteen states. It scans its segment from 0, segments are joined by shuffles, and a second sweep
// from the state that comes in gives y. Decays stay in registers between the sweeps, rates and carried states of up to 16 in shared memory. kStates (n); more than 16 go by in groups.
inline constexpr char kSelectiveScan[] = R"cuda(
constexpr int kTile = 64, kChannels = 16, kGroups = (kStates + 15) / 16;
constexpr bool kLean = kGroups == 1;  // two blocks of a processor
// Rows of states of a segment are moved on by 16 numbers, so that the lanes of a warp meet different banks.
constexpr int kStateRows = kTile * 16 + kTile / 8 * 16;
struct Tile { f32 x[kChannels][kTile + 4], delta[kChannels][kTile + 4], y[kChannels][kTile + 4], b[kGroups][kStateRows], c[kGroups][kStateRows]; };
inline f32 power_of_two(f32 x) { f32 y; asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x)); return y; }
inline void use_memory() { asm volatile("" ::: "memory"); }  // four times at a time keep the registers few: 128, so that a processor has two blocks

extern "C" __global__ void __launch_bounds__(256, kLean ? 2 : 1) selective_scan(const T* x, const T* delta, const T* a, const T* bs, const T* cs, T* y,
    int length, int channels) {
  extern __shared__ uint4 memory[];
  Tile* const tiles = reinterpret_cast<Tile*>(memory);
  const int lane = threadIdx.x % 32, quad = lane % 4, segment = lane / 4, pair = threadIdx.x / 32 * 2;
  const int blocks = (channels + kChannels - 1) / kChannels, first = blockIdx.x % blocks * kChannels;
  const i64 row0 = i64(blockIdx.x / blocks) * length;
  // Rates and what is carried from tile to tile: in shared memory where registers are few.
  __shared__ alignas(16) f32 rates[kChannels][16], carries[kChannels][16];
  const auto rate_of = [&](int channel, int state) {
    const bool inside = channel < channels && state < kStates;
    return inside ? as_f32(a[i64(channel) * kStates + state]) * 1.44269504088896341f : 0.0f;
  };
  Pack<f32, 4> own_rates[kGroups][2], own_carries[kGroups][2] = {};
  if (kLean) {
    const int c = threadIdx.x / 16, state = threadIdx.x % 16;
    rates[c][state] = rate_of(first + c, state), carries[c][state] = 0;
  } else {
    #pragma unroll
    for (int g = 0; g < kGroups; ++g) {
      #pragma unroll
      for (int n = 0; n < 8; ++n) own_rates[g][n / 4].v[n % 4] = rate_of(first + pair + n / 4, g * 16 + quad * 4 + n % 4);
    }
  }
  const auto fetch = [&](int start, Tile& z) {
    if (start >= length) return end_of_stage();
    #pragma unroll
    for (int n = 0; n < kTile * kChannels / 256; ++n) {
      const int e = threadIdx.x + n * 256, t = e / kChannels, c = e % kChannels;
      const bool inside = start + t < length && first + c < channels;
      const i64 from = inside ? (row0 + start + t) * channels + first + c : 0;
      stage(&z.x[c][t], x + from, inside);
      stage(&z.delta[c][t], delta + from, inside);
    }
    #pragma unroll
    for (int g = 0; g < kGroups; ++g) {
      const int t = threadIdx.x / 4, state = threadIdx.x % 4 * 4, at = (t + t / 8) * 16 + state;
      const int inside = start + t < length ? kStates - g * 16 - state : 0;
      const i64 from = inside > 0 ? (row0 + start + t) * kStates + g * 16 + state : 0;
      stage4(&z.b[g][at], bs + from, inside);
      stage4(&z.c[g][at], cs + from, inside);
    }
    end_of_stage();
  };
  fetch(0, tiles[0]);
  for (int start = 0, turn = 0; start < length; start += kTile, turn ^= 1) {
    fetch(start + kTile, tiles[turn ^ 1]);
    all_but_last_stage();
    __syncthreads();
    Tile& z = tiles[turn];
    #pragma unroll
    for (int g = 0; g < kGroups; ++g) {
      f32 decay[2][8][4], state[2][4] = {}, all[2][4], total[2] = {};
      Pack<f32, 4> rate[2];
      #pragma unroll
      for (int c = 0; c < 2; ++c) rate[c] = kLean ? load<4>(&rates[pair + c][quad * 4]) : own_rates[g][c];
      #pragma unroll
      for (int four = 0; four < 8; four += 4) {
        Pack<f32, 4> d[2], u[2];
        #pragma unroll
        for (int c = 0; c < 2; ++c) {
          d[c] = load<4>(&z.delta[pair + c][segment * 8 + four]);
          u[c] = load<4>(&z.x[pair + c][segment * 8 + four]);
          #pragma unroll
          for (int i = 0; i < 4; ++i) u[c].v[i] *= d[c].v[i], total[c] += d[c].v[i];
        }
        #pragma unroll
        for (int i = 0; i < 4; ++i) {
          const int t = four + i;
          const Pack<f32, 4> b = load<4>(&z.b[g][(segment * 9 + t) * 16 + quad * 4]);
          #pragma unroll
          for (int c = 0; c < 2; ++c) {
            #pragma unroll
            for (int n = 0; n < 4; ++n) {
              decay[c][t][n] = power_of_two(d[c].v[i] * rate[c].v[n]);
              state[c][n] = fmaf(decay[c][t][n], state[c][n], u[c].v[i] * b.v[n]);
            }
          }
        }
        use_memory();
      }
      #pragma unroll
      for (int c = 0; c < 2; ++c) {
        #pragma unroll
        for (int n = 0; n < 4; ++n) all[c][n] = power_of_two(total[c] * rate[c].v[n]);
      }
      #pragma unroll
      for (int o = 4; o < 32; o *= 2) {
        #pragma unroll
        for (int c = 0; c < 2; ++c) {
          #pragma unroll
          for (int n = 0; n < 4; ++n) {
            const f32 earlier = __shfl_up_sync(~0u, all[c][n], o), before = __shfl_up_sync(~0u, state[c][n], o);
            if (lane >= o) state[c][n] = fmaf(all[c][n], before, state[c][n]), all[c][n] *= earlier;
          }
        }
      }
      #pragma unroll
      for (int c = 0; c < 2; ++c) {
        f32* const at = &carries[pair + c][quad * 4];
        const Pack<f32, 4> carry = kLean ? load<4>(at) : own_carries[g][c];
        Pack<f32, 4> end;
        #pragma unroll
        for (int n = 0; n < 4; ++n) {
          end.v[n] = fmaf(all[c][n], carry.v[n], state[c][n]);
          const f32 in = __shfl_up_sync(~0u, end.v[n], 4);
          state[c][n] = segment > 0 ? in : carry.v[n];
          if (!kLean) own_carries[g][c].v[n] = __shfl_sync(~0u, end.v[n], 28 + quad);
        }
        if (!kLean) continue;
        __syncwarp();  // all have read it
        if (segment == 7) store(at, end);
      }
      #pragma unroll
      for (int four = 0; four < 8; four += 4) {
        use_memory();
        f32 out[2][4] = {};
        Pack<f32, 4> u[2];
        #pragma unroll
        for (int c = 0; c < 2; ++c) {
          const Pack<f32, 4> d = load<4>(&z.delta[pair + c][segment * 8 + four]);
          u[c] = load<4>(&z.x[pair + c][segment * 8 + four]);
          #pragma unroll
          for (int i = 0; i < 4; ++i) u[c].v[i] *= d.v[i];
        }
        #pragma unroll
        for (int i = 0; i < 4; ++i) {
          const int t = four + i, at = (segment * 9 + t) * 16 + quad * 4;
          const Pack<f32, 4> b = load<4>(&z.b[g][at]), weight = load<4>(&z.c[g][at]);
          #pragma unroll
          for (int c = 0; c < 2; ++c) {
            #pragma unroll
            for (int n = 0; n < 4; ++n) {
              state[c][n] = fmaf(decay[c][t][n], state[c][n], u[c].v[i] * b.v[n]);
              out[c][i] = fmaf(state[c][n], weight.v[n], out[c][i]);
            }
          }
        }
        // Sums over the four lanes of a segment: each gets one time.
        #pragma unroll
        for (int c = 0; c < 2; ++c) {
          f32(&r)[4] = out[c];
          #pragma unroll
          for (int i = 0; i < 2; ++i) {
            const f32 keep = quad & 1 ? r[i + 2] : r[i], send = quad & 1 ? r[i] : r[i + 2];
            r[i] = keep + __shfl_xor_sync(~0u, send, 1);
          }
          const f32 keep = quad & 2 ? r[1] : r[0], send = quad & 2 ? r[0] : r[1];
          f32& to = z.y[pair + c][segment * 8 + four + (quad & 1) * 2 + quad / 2];
          to = (g > 0 ? to : 0.0f) + keep + __shfl_xor_sync(~0u, send, 2);
        }
      }
    }
    __syncthreads();
    #pragma unroll
    for (int n = 0; n < kTile * kChannels / 256; ++n) {
      const int e = threadIdx.x + n * 256, t = e / kChannels, c = e % kChannels;
      if (start + t < length && first + c < channels) put(y[(row0 + start + t) * channels + first + c], z.y[c][t]);
    }
  }
}
)cuda";

}  // namespace rlx::cuda
