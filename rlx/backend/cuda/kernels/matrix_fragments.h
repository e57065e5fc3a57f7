// The matrix units that every card since compute capability 8.0 has: products of 16 x 16 and 16 x 8 for a warp, their operands from shared memory, and
// copies into it that go around registers. With g = lane / 4, t = lane % 4 a lane has sums (g, 2 t), (g, 2 t + 1), (g + 8, 2 t), (g + 8, 2 t + 1).
#pragma once

namespace rlx::cuda {

inline constexpr char kMatrixFragments[] = R"cuda(
inline void commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
// Until at most `Left` of the groups committed last are on their way.
template <int Left> void arrived() { asm volatile("cp.async.wait_group %0;" :: "n"(Left) : "memory"); }
inline void load4(u32 (&r)[4], u32 at) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];" : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(at) : "memory");
}
inline void load4_turned(u32 (&r)[4], u32 at) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];" : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(at) : "memory");
}
inline void load2(u32& a, u32& b, u32 at) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0,%1}, [%2];" : "=r"(a), "=r"(b) : "r"(at) : "memory");
}
// Right operands of N products: 16 along k, from step k on, of 8 N rows of 128 bytes each, where piece c of 16 bytes of row r lies at piece c ^ (r % 8).
template <int N> void load_right(u32 (&x)[N][2], u32 rows, int k) {
  const int lane = threadIdx.x % 32, piece = k * 2 + lane / 8 % 2;
  #pragma unroll
  for (int j = 0; j + 1 < N; j += 2) {
    const int row = j * 8 + lane / 16 * 8 + lane % 8;
    u32 both[4];
    load4(both, rows + row * 128 + ((piece ^ (row % 8)) * 16));
    x[j][0] = both[0], x[j][1] = both[1], x[j + 1][0] = both[2], x[j + 1][1] = both[3];
  }
  if (N % 2 == 1) {
    const int row = (N - 1) * 8 + lane % 8;
    load2(x[N - 1][0], x[N - 1][1], rows + row * 128 + ((piece ^ (row % 8)) * 16));
  }
}
#define kMultiply(name) \
  asm("mma.sync.aligned.m16n8k16.row.col.f32." name "." name ".f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};" \
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1))
inline void multiply(f32 (&d)[4], const u32 (&a)[4], u32 b0, u32 b1, f16) { kMultiply("f16"); }
inline void multiply(f32 (&d)[4], const u32 (&a)[4], u32 b0, u32 b1, bf16) { kMultiply("bf16"); }
)cuda";

}  // namespace rlx::cuda
