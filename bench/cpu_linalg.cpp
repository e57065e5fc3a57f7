// Batches of small dense systems against a loop over LAPACK on the same threads. LAPACK gets its own order of
// columns for free; both leave their input as it was.
#include <algorithm>
#include <vector>

#include "bench/bench.h"
#include "rlx/backend/cpu/kernels/gemm.h"
#include "rlx/backend/cpu/kernels/linalg.h"
#include "rlx/base/philox.h"

#if defined(RLX_BENCH_LAPACKE)
#include <lapacke.h>
extern "C" void omp_set_num_threads(int) __attribute__((weak));
extern "C" void openblas_set_num_threads(int) __attribute__((weak));
#endif

namespace rlx::bench {
namespace {

using namespace cpu;

float* random_floats(AlignedBytes& memory, int64_t n) {
  memory = allocate_aligned(size_t(n) * 4);
  float* p = reinterpret_cast<float*>(memory.get());
  for (int64_t i = 0; i < n; ++i) p[i] = 2 * uniform_from_bits(philox_block(1, 0, uint64_t(i))[0]) - 1;
  return p;
}

struct Batch {
  /// Entries in [-1, 1), the diagonal `diagonal` larger.
  Batch(int64_t count, int64_t size, float diagonal) : batch(count), n(size) {
    a = random_floats(a_memory, batch * n * n);
    b = random_floats(b_memory, batch * n);
    x = random_floats(x_memory, batch * n * n);
    for (int64_t i = 0; i < batch * n; ++i) a[i * n + i % n] += diagonal;
  }
  int64_t batch, n;
  AlignedBytes a_memory, b_memory, x_memory;
  float *a, *b, *x;
};

/// each(i, copy of a, x, pivots) on the team, as one would call LAPACK.
template <class Each>
std::function<void()> loop(Team team, const Batch& data, Each each) {
  return [team, &data, each] {
    team.parallel_for(data.batch, 1, [&](int64_t begin, int64_t end) {
      std::vector<float> a(size_t(data.n * data.n)), x(static_cast<size_t>(data.n));
      std::vector<int> pivots(static_cast<size_t>(data.n));
#if defined(RLX_BENCH_LAPACKE)
      // An OpenBLAS on OpenMP asks each calling thread how many threads it may use.
      if (omp_set_num_threads != nullptr) omp_set_num_threads(1);
#endif
      for (int64_t i = begin; i < end; ++i) {
        std::copy_n(data.a + i * data.n * data.n, data.n * data.n, a.data());
        std::copy_n(data.b + i * data.n, data.n, x.data());
        each(a.data(), x.data(), pivots.data());
      }
    });
  };
}

void show(const std::string& name, const Batch& data, double flops, const std::string& goal,
          std::vector<std::function<void()>> runs) {
  const auto t = interleaved(runs);
  const double work = flops * double(data.batch) * 1e-9;
  report({.name = name,
          .value = work / t[0],
          .unit = "GFLOP/s",
          .limit = limits().fma_gflops,
          .peer = t.size() > 1 ? work / t[1] : 0,
          .peer_name = "LAPACK loop",
          .goal = goal});
}

}  // namespace
}  // namespace rlx::bench

int main(int argc, char** argv) {
  using namespace rlx;
  using namespace rlx::bench;
  using namespace rlx::cpu;
  const Team team(default_pool(), threads());
#if defined(RLX_BENCH_LAPACKE)
  if (openblas_set_num_threads != nullptr) openblas_set_num_threads(1);
#endif
  for (int64_t n : {16, 32, 64, 128}) {
    const int64_t batch = n >= 128 ? 256 : 1024;
    const Batch general(batch, n, 0), positive(batch, n, float(n));
    const double cube = double(n) * double(n) * double(n), square = double(n) * double(n);
    const std::string size = std::to_string(batch) + " x " + std::to_string(n) + "^2";
    if (const std::string name = "lu_solve " + size; wanted(argc, argv, name)) {
      const DenseSolve p{.batch = general.batch, .n = n, .a = general.a, .b = general.b, .x = general.x};
      const AlignedBytes work = allocate_aligned(dense_solve_workspace(p, team.threads()));
      std::vector<std::function<void()>> runs{[&] { (void)dense_solve(team, p, work.get()); }};
#if defined(RLX_BENCH_LAPACKE)
      runs.push_back(loop(team, general, [n](float* a, float* x, int* pivots) {
        LAPACKE_sgesv_work(LAPACK_COL_MAJOR, int(n), 1, a, int(n), pivots, x, int(n));
      }));
#endif
      show(name, general, cube * 2 / 3 + 2 * square, n == 64 ? ">= 2 x LAPACK" : "", runs);
    }
    if (const std::string name = "cholesky " + size; wanted(argc, argv, name)) {
      const Cholesky p{.batch = positive.batch, .n = n, .a = positive.a, .y = positive.x};
      const AlignedBytes work = allocate_aligned(cholesky_workspace(p, team.threads()));
      std::vector<std::function<void()>> runs{[&] { (void)cholesky(team, p, work.get()); }};
#if defined(RLX_BENCH_LAPACKE)
      runs.push_back(loop(team, positive, [n](float* a, float*, int*) {
        LAPACKE_spotrf_work(LAPACK_COL_MAJOR, 'U', int(n), a, int(n));
      }));
#endif
      show(name, positive, cube / 3, "", runs);
    }
    if (const std::string name = "triangular_solve " + size; wanted(argc, argv, name)) {
      const TriangularSolve p{
          .batch = positive.batch, .n = n, .a = positive.a, .b = positive.b, .x = positive.x};
      const AlignedBytes work = allocate_aligned(triangular_solve_workspace(p, team.threads()));
      std::vector<std::function<void()>> runs{[&] { (void)triangular_solve(team, p, work.get()); }};
#if defined(RLX_BENCH_LAPACKE)
      runs.push_back(loop(team, positive, [n](float* a, float* x, int*) {
        LAPACKE_strtrs_work(LAPACK_COL_MAJOR, 'U', 'T', 'N', int(n), 1, a, int(n), x, int(n));
      }));
#endif
      show(name, positive, square, "", runs);
    }
  }
}
