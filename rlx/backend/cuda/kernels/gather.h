// Rows picked by index. Before it stand the types Word (a piece of a row) and Index.
//   y[b, o, k, t] = table[b, o, index[b, k], t]
#pragma once

namespace rlx::cuda {

inline constexpr char kGatherKernel[] = R"cuda(
extern "C" __global__ void __launch_bounds__(256)
gather(const Word* table, const Index* indices, Word* y, i64 count, i64 outer, i64 size, i64 picks, i64 inner, int clamp,
       u64* fault, u64 number) {
  const i64 e = i64(blockIdx.x) * 256 + threadIdx.x;
  if (e >= count) return;
  const i64 t = e % inner, k = e / inner % picks, o = e / (inner * picks) % outer, b = e / (inner * picks * outer);
  const i64 which = b * picks + k;
  i64 index = i64(indices[which]);
  if (clamp) index = index < 0 ? 0 : index >= size ? size - 1 : index;
  if (index < 0 || index >= size) {
    *fault = (number << 40) + u64(which);
    y[e] = Word{};
    return;
  }
  y[e] = table[((b * outer + o) * size + index) * inner + t];
}
)cuda";

}  // namespace rlx::cuda
