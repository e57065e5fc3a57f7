// Cross entropy of rows of logits against labels, its gradient, or both: one read of the row finds the largest logit and the sum of exponentials; for
// the gradient it is kept in shared memory, or read again where it is too long. Before it stand X, Label, Wide and Y (types of logits, labels, losses and the gradient), kColumns,
// kVector (neighbours that are read together), kThreads (of the block that has a row), kLoss, kGradient (what is wanted), kKept and kFast (20 bits of exponentials will do).
#pragma once

namespace rlx::cuda {

inline constexpr char kCrossEntropy[] = R"cuda(
constexpr int kRounds = (kColumns + kThreads * kVector - 1) / (kThreads * kVector);

inline f32 exponential(f32 x) { return kFast ? __expf(x) : expf(x); }
inline f32 finite(f32 most) { return most == -from_bits(0x7f800000u) ? 0.0f : most; }

extern "C" __global__ void __launch_bounds__(kThreads) cross_entropy(const X* logits, const Label* labels, const Wide* d_loss, i64 d_stride,
                                                                     Wide* loss, Y* gradient, u64* fault, u64 number) {
  constexpr int kWarps = kThreads / 32;
  __shared__ f32 tops[kWarps], sums[kWarps];
  const i64 row = blockIdx.x, label = i64(labels[row]);
  const X* const x = logits + row * kColumns;
  f32 most = -from_bits(0x7f800000u), sum = 0;
  extern __shared__ uint4 shared[];
  X* const kept = reinterpret_cast<X*>(shared);  // each thread reads what it wrote itself
  #pragma unroll 4
  for (int round = 0; round < kRounds; ++round) {
    const int c = (round * kThreads + threadIdx.x) * kVector;
    if (c >= kColumns) break;
    const auto v = load<kVector>(x + c);
    if (kKept) store(kept + c, v);
    f32 now = most;
    #pragma unroll
    for (int u = 0; u < kVector; ++u) now = fmaxf(now, as_f32(v.v[u]));
    const f32 base = finite(now);
    sum *= exponential(most - base);
    #pragma unroll
    for (int u = 0; u < kVector; ++u) sum += exponential(as_f32(v.v[u]) - base);
    most = now;
  }
  // The warps of the block, in order.
  const f32 top = over_warp<Max>(most);
  sum = over_warp<Sum>(sum * exponential(most - finite(top)));
  if (threadIdx.x % 32 == 0) tops[threadIdx.x / 32] = top, sums[threadIdx.x / 32] = sum;
  __syncthreads();
  f32 largest = tops[0], total = 0;
  #pragma unroll
  for (int w = 1; w < kWarps; ++w) largest = fmaxf(largest, tops[w]);
  #pragma unroll
  for (int w = 0; w < kWarps; ++w) total += sums[w] * exponential(tops[w] - finite(largest));
  const bool known = label >= 0 && label < kColumns;
  if (threadIdx.x == 0) {
    if (!known) *fault = (number << 40) + u64(row);
    if (kLoss) put(loss[row], finite(largest) + logf(total) - (known ? as_f32(x[label]) : 0.0f));
  }
  if (!kGradient) return;
  const f32 d = as_f32(d_loss[row * d_stride]), inverse = 1.0f / total, base = finite(largest);
  #pragma unroll 4
  for (int round = 0; round < kRounds; ++round) {
    const int c = (round * kThreads + threadIdx.x) * kVector;
    if (c >= kColumns) break;
    const auto v = load<kVector>((kKept ? kept : x) + c);
    Pack<Y, kVector> y;
    #pragma unroll
    for (int u = 0; u < kVector; ++u)
      put(y.v[u], (exponential(as_f32(v.v[u]) - base) * inverse - (c + u == label ? 1.0f : 0.0f)) * d);
    store(gradient + row * kColumns + c, y);
  }
}
)cuda";

}  // namespace rlx::cuda
