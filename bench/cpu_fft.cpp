// Batched complex transforms against FFTW (estimate mode, one thread each, in turn). Work is counted as
// 5 n log2 n; the limit is the peak of multiply-adds of one core, which no transform reaches: its additions
// outnumber its multiplications.
#include <cmath>
#include <vector>

#include "bench/bench.h"
#include "rlx/backend/cpu/kernels/fft.h"

#ifdef RLX_BENCH_FFTW
#include <fftw3.h>
#endif

namespace rlx::bench {
namespace {

using namespace cpu;

constexpr int64_t kRows = 64;

template <class T>
struct Peer;
#ifdef RLX_BENCH_FFTW
template <>
struct Peer<float> {
  fftwf_plan plan;
  Peer(int n, const std::vector<float>& x, std::vector<float>& y)
      : plan(fftwf_plan_many_dft(1, &n, kRows, reinterpret_cast<fftwf_complex*>(const_cast<float*>(x.data())),
                                 nullptr, 1, n, reinterpret_cast<fftwf_complex*>(y.data()), nullptr, 1, n,
                                 FFTW_FORWARD, FFTW_ESTIMATE)) {}
  void run() { fftwf_execute(plan); }
};
template <>
struct Peer<double> {
  fftw_plan plan;
  Peer(int n, const std::vector<double>& x, std::vector<double>& y)
      : plan(fftw_plan_many_dft(1, &n, kRows, reinterpret_cast<fftw_complex*>(const_cast<double*>(x.data())),
                                nullptr, 1, n, reinterpret_cast<fftw_complex*>(y.data()), nullptr, 1, n,
                                FFTW_FORWARD, FFTW_ESTIMATE)) {}
  void run() { fftw_execute(plan); }
};
#endif

template <class T>
void bench(int argc, char** argv, int64_t n, const std::string& goal) {
  const std::string name = std::string(sizeof(T) == 4 ? "fft_c64 " : "fft_c128 ") + std::to_string(n) + "x" +
                           std::to_string(kRows);
  if (!wanted(argc, argv, name)) return;
  std::vector<T> x(size_t(2 * n * kRows)), y(x.size()), z(x.size());
  for (size_t i = 0; i < x.size(); ++i) x[i] = T(i % 97) * T(0.01) - T(0.5);
  Pool pool(1);
  const Team team(pool);
  const FftPlan plan(n, sizeof(T) == 4 ? DType::f32 : DType::f64);
  const Fft p{.plan = &plan,
              .rows = kRows,
              .x_re = x.data(),
              .x_im = x.data() + 1,
              .x_stride = 2,
              .x_row_stride = 2 * n,
              .y_re = y.data(),
              .y_im = y.data() + 1,
              .y_stride = 2,
              .y_row_stride = 2 * n};
  const AlignedBytes workspace = allocate_aligned(fft_workspace(p, 1));
  std::vector<std::function<void()>> functions = {[&] { fft(team, p, workspace.get()); }};
#ifdef RLX_BENCH_FFTW
  Peer<T> peer(int(n), x, z);
  functions.push_back([&] { peer.run(); });
#endif
  const std::vector<double> t = interleaved(functions);
  const double flops = 5e-9 * double(n) * std::log2(double(n)) * double(kRows);
  report({.name = name,
          .value = flops / t[0],
          .unit = "GFLOP/s",
          .limit = limits().fma_gflops / threads() * 4 / double(sizeof(T)),
          .peer = t.size() > 1 ? flops / t[1] : 0,
          .peer_name = "FFTW estimate, 1 thread",
          .goal = goal});
}

}  // namespace
}  // namespace rlx::bench

int main(int argc, char** argv) {
  using rlx::bench::bench;
  for (const int64_t n : {1024, 4096, 1000, 65536}) bench<float>(argc, argv, n, ">= 0.8x");
  for (const int64_t n : {128, 1009, 19683}) bench<float>(argc, argv, n, "");
  for (const int64_t n : {1024, 4096}) bench<double>(argc, argv, n, "");
}
