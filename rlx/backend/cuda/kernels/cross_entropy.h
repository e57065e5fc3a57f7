// Cross entropy of rows of logits against labels, its gradient, or both: one read of the row finds the largest logit and the sum of exponentials; for
// the gradient it is kept in shared memory, or read again where it is too long. Before it stand X, Label, Wide and Y (types of logits, labels, losses and the gradient), kColumns,
// kVector (neighbours that are read together), kThreads (of the block that has a row), kLoss, kGradient (what is wanted), kKept and kFast (20 bits of exponentials will do).
//
// A thread keeps its own vectors of a row, so that nobody waits for it: while it writes their gradient it asks for the same ones of the block's next row
// (kAsync), which are there when that row begins. So memory is read and written at the same time, by blocks that stay.
#pragma once

namespace rlx::cuda {

inline constexpr char kCrossEntropy[] = R"cuda(
constexpr int kRounds = (kColumns + kThreads * kVector - 1) / (kThreads * kVector);

// Where 20 bits will do, exponents are of 2: a product and sum and an instruction for each, of a base that is scaled once. Such a base is rounded, but
// the same one everywhere, so sums and quotients do not see that.
inline f32 scaled(f32 x) { return kFast ? x * 1.44269504088896341f : x; }
inline f32 power(f32 x) {
  if (!kFast) return expf(x);
  f32 y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
inline f32 exponential(f32 x, f32 base) { return power(kFast ? fmaf(x, 1.44269504088896341f, -base) : x - base); }
inline f32 finite(f32 most) { return most == -from_bits(0x7f800000u) ? 0.0f : most; }

// The largest of neighbours, in pairs where they are of 16 bits.
inline u32 larger(u32 a, u32 b, f16) { u32 y; asm("max.f16x2 %0, %1, %2;" : "=r"(y) : "r"(a), "r"(b)); return y; }
inline u32 larger(u32 a, u32 b, bf16) { u32 y; asm("max.bf16x2 %0, %1, %2;" : "=r"(y) : "r"(a), "r"(b)); return y; }
template <class T, int N> f32 most_of(const Pack<T, N>& v) {
  if constexpr (sizeof(T) == 2 && N >= 4) {
    Pack<u32, N / 2> w = reinterpret_cast<const Pack<u32, N / 2>&>(v);
    #pragma unroll
    for (int half = N / 4; half > 0; half /= 2) {
      #pragma unroll
      for (int i = 0; i < half; ++i) w.v[i] = larger(w.v[i], w.v[i + half], T());
    }
    const Pack<T, 2> two = reinterpret_cast<const Pack<T, 2>&>(w.v[0]);
    return fmaxf(as_f32(two.v[0]), as_f32(two.v[1]));
  } else {
    f32 most = as_f32(v.v[0]);
    #pragma unroll
    for (int u = 1; u < N; ++u) most = fmaxf(most, as_f32(v.v[u]));
    return most;
  }
}

// Neighbours of the result.
inline u32 both(f32 low, f32 high, f16) { u32 r; asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(high), "f"(low)); return r; }
inline u32 both(f32 low, f32 high, bf16) { u32 r; asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(high), "f"(low)); return r; }
// As one instruction: left to the compiler, what is put together from pairs becomes a store for each.
template <class T, int N> void write(T* to, const f32 (&y)[N]) {
  if constexpr (sizeof(T) == 2 && N == 8) {
    asm volatile("st.global.v4.u32 [%0], {%1,%2,%3,%4};" ::"l"(to), "r"(both(y[0], y[1], T())), "r"(both(y[2], y[3], T())),
                 "r"(both(y[4], y[5], T())), "r"(both(y[6], y[7], T())) : "memory");
  } else {
    Pack<T, N> out;
    #pragma unroll
    for (int u = 0; u < N; ++u) put(out.v[u], y[u]);
    store(to, out);
  }
}

constexpr bool kAsync = kKept && sizeof(X) * kVector == 16;
constexpr int kHalf = (kRounds + 1) / 2;  // a row comes in two parts, of which the first may be waited for alone
inline void end_of_asking() { asm volatile("cp.async.commit_group;"); }
inline void ask(X* to, const X* from) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" :: "r"(u32(__cvta_generic_to_shared(to))), "l"(from) : "memory");
}

extern "C" __global__ void __launch_bounds__(kThreads) cross_entropy(const X* logits, const Label* labels, const Wide* d_loss, i64 d_stride,
                                                                     Wide* loss, Y* gradient, i64 rows, u64* fault, u64 number) {
  constexpr int kWarps = kThreads / 32;
  __shared__ f32 all_tops[2][kWarps], all_sums[2][kWarps];  // a warp may be a row ahead of another
  extern __shared__ uint4 shared[];
  X* const kept = reinterpret_cast<X*>(shared);  // each thread reads what it wrote itself
  const auto at = [](int round) { return (round * kThreads + int(threadIdx.x)) * kVector; };
  if constexpr (kAsync) {
    #pragma unroll
    for (int round = 0; round < kRounds; ++round) {
      if (at(round) < kColumns) ask(kept + at(round), logits + blockIdx.x * i64(kColumns) + at(round));
      if (round + 1 == kHalf) end_of_asking();
    }
    end_of_asking();
  }
  for (i64 row = blockIdx.x, turn = 0; row < rows; row += gridDim.x, turn ^= 1) {
    f32* const tops = all_tops[turn];
    f32* const sums = all_sums[turn];
    const i64 label = i64(labels[row]);
    const X* const x = logits + row * kColumns;
    f32 most = -from_bits(0x7f800000u), sum = 0;
    if constexpr (kAsync) asm volatile("cp.async.wait_group 1;" ::: "memory");
    #pragma unroll 4
    for (int round = 0; round < kRounds; ++round) {
      if constexpr (kAsync) {
        if (round == kHalf) asm volatile("cp.async.wait_group 0;" ::: "memory");
      }
      const int c = at(round);
      if (c >= kColumns) break;
      const auto v = load<kVector>((kAsync ? kept : x) + c);
      if (kKept && !kAsync) store(kept + c, v);
      const f32 now = fmaxf(most, most_of(v)), base = scaled(finite(now));
      sum *= power(scaled(most) - base);
      #pragma unroll
      for (int u = 0; u < kVector; ++u) sum += exponential(as_f32(v.v[u]), base);
      most = now;
    }
    // The warps of the block, in order.
    const f32 top = over_warp<Max>(most);
    sum = over_warp<Sum>(sum * power(scaled(most) - scaled(finite(top))));
    if (threadIdx.x % 32 == 0) tops[threadIdx.x / 32] = top, sums[threadIdx.x / 32] = sum;
    __syncthreads();
    f32 largest = tops[0], total = 0;
    #pragma unroll
    for (int w = 1; w < kWarps; ++w) largest = fmaxf(largest, tops[w]);
    const f32 base = scaled(finite(largest));
    #pragma unroll
    for (int w = 0; w < kWarps; ++w) total += sums[w] * power(scaled(tops[w]) - base);
    // The thread that has the label's logit; the first one where there is none.
    const bool known = label >= 0 && label < kColumns, mine = threadIdx.x == (known ? label / kVector % kThreads : 0);
    const f32 own = mine && known ? as_f32((kKept ? kept : x)[label]) : 0.0f;
    if (mine && !known) *fault = (number << 40) + u64(row);
    if (mine && kLoss) put(loss[row], (kFast ? fmaf(base, 0.693147180559945309f, logf(total)) : base + logf(total)) - own);
    if (!kGradient) continue;
    const f32 d = as_f32(d_loss[row * d_stride]), factor = d / total;
    const bool more = row + gridDim.x < rows;
    Y* const to = gradient + row * kColumns;
    #pragma unroll 4
    for (int round = 0; round < kRounds; ++round) {
      const int c = at(round);
      if (c >= kColumns) break;
      const auto v = load<kVector>((kKept ? kept : x) + c);
      f32 y[kVector];
      #pragma unroll
      for (int u = 0; u < kVector; ++u) y[u] = exponential(as_f32(v.v[u]), base) * factor;
      if constexpr (kAsync) {
        if (more) ask(kept + c, x + gridDim.x * i64(kColumns) + c);
      }
      write(to + c, y);
      if constexpr (kAsync) {
        if (round + 1 == kHalf) end_of_asking();
      }
    }
    if constexpr (kAsync) end_of_asking();
    if (mine && known) put(to[label], exponential(own, base) * factor - d);
  }
}
)cuda";

}  // namespace rlx::cuda
