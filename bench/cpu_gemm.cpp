// f32 matrix products against oneDNN with packed weights, in turn, and few rows also against a plain read of
// the weights.
#include <memory>
#include <vector>

#include "bench/bench.h"
#include "bench/dnnl_matmul.h"
#include "bench/gemm_shapes.h"
#include "rlx/backend/cpu/kernels/gemm.h"

namespace rlx::bench {
namespace {

using namespace cpu;

void bench_shape(const GemmShape& s, const std::string& name) {
  std::vector<float> a(size_t(s.m * s.k), 0.5f), b(size_t(s.k * s.n), 0.25f), c(size_t(s.m * s.n)),
      d(c.size());
  const Team team(default_pool());
  const size_t copies = s.copies(4);
  std::vector<PackedMatrix> packed(copies);
  for (PackedMatrix& p : packed) {
    p = PackedMatrix::pack(team, {b.data(), DType::f32, s.n, 1}, s.k, s.n, DType::f32);
  }
  Gemm g{.m = s.m, .n = s.n, .k = s.k, .a = {a.data(), DType::f32, s.k, 1}, .packed_b = packed.data()};
  g.c = c.data(), g.c_row_stride = s.n;
  const AlignedBytes workspace = allocate_aligned(gemm_workspace(g, team.threads()));
  size_t turn = 0;
  std::vector<std::function<void()>> functions = {[&] {
    g.packed_b = &packed[turn++ % copies];
    gemm(team, g, workspace.get());
  }};
  const bool reading = s.m <= 4 && s.from_memory();
  if (reading) {
    functions.push_back([&] {
      const PackedMatrix& p = packed[turn++ % copies];
      read_once(p.data(), p.bytes());
    });
  }
  const size_t peer = functions.size();
#ifdef RLX_BENCH_DNNL
  std::vector<std::unique_ptr<DnnlMatmul>> peers(copies);
  constexpr auto f32 = DnnlMatmul::Type::f32;
  for (auto& p : peers) {
    p = std::make_unique<DnnlMatmul>(s.m, s.k, s.n, f32, a.data(), f32, b.data(), f32, d.data());
  }
  functions.push_back([&] { peers[turn++ % copies]->run(); });
#endif
  const std::vector<double> t = interleaved(functions);
  const auto line = [&](Result r, double work) {
    r.value = work / t[0];
    if (t.size() > peer) r.peer = work / t[peer], r.peer_name = "oneDNN packed";
    report(r);
  };
  line({.name = name,
        .unit = "GFLOP/s",
        .limit = limits().fma_gflops,
        .goal = s.m >= 60 ? ">= 75 %, 1.0x" : (s.m == 16 ? ">= 60 %" : (s.m == 4 ? ">= 35 %" : ""))},
       2e-9 * s.multiply_adds());
  if (reading) {
    const double gigabytes = 4e-9 * double(s.k) * double(s.n);
    line({.name = name + " weights", .unit = "GB/s", .limit = gigabytes / t[1], .goal = ">= 85 % of a read"},
         gigabytes);
  }
}

}  // namespace
}  // namespace rlx::bench

int main(int argc, char** argv) { rlx::bench::each_gemm_shape(argc, argv, "f32", rlx::bench::bench_shape); }
