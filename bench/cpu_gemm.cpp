// f32 matrix products against oneDNN with packed weights, in turn. Weights of few rows pass through copies of
// 256 MiB together, so that they come from memory and not from a cache that kept them since the last call.
#include <memory>
#include <vector>

#include "bench/bench.h"
#include "bench/dnnl_matmul.h"
#include "rlx/backend/cpu/kernels/gemm.h"

namespace rlx::bench {
namespace {

using namespace cpu;

struct Shape {
  int64_t m, k, n;
};

void bench_shape(const Shape& s, const std::string& name) {
  std::vector<float> a(size_t(s.m * s.k), 0.5f), b(size_t(s.k * s.n), 0.25f), c(size_t(s.m * s.n)),
      d(c.size());
  const Team team(default_pool());
  const bool from_memory = s.m < 60 && s.k * s.n > 4000000;
  const size_t copies = from_memory ? size_t((64 << 20) / (s.k * s.n)) : 1;
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
#ifdef RLX_BENCH_DNNL
  std::vector<std::unique_ptr<DnnlMatmul>> peers(copies);
  constexpr auto f32 = DnnlMatmul::Type::f32;
  for (auto& p : peers) {
    p = std::make_unique<DnnlMatmul>(s.m, s.k, s.n, f32, a.data(), f32, b.data(), f32, d.data());
  }
  functions.push_back([&] { peers[turn++ % copies]->run(); });
#endif
  const std::vector<double> t = interleaved(functions);
  Result r{.name = name};
  const double flops = 2e-9 * double(s.m) * double(s.k) * double(s.n);
  if (s.m == 1 && from_memory) {
    const double gigabytes = 4e-9 * double(s.k) * double(s.n);
    r.value = gigabytes / t[0], r.unit = "GB/s", r.limit = limits().read_gbs;
    if (t.size() > 1) r.peer = gigabytes / t[1];
    r.goal = ">= 85 % of read";
  } else {
    r.value = flops / t[0], r.unit = "GFLOP/s", r.limit = limits().fma_gflops;
    if (t.size() > 1) r.peer = flops / t[1];
    r.goal = s.m >= 60 ? ">= 75 %, 1.0x" : (s.m == 16 ? ">= 60 %" : (s.m == 4 ? ">= 35 %" : ""));
  }
  r.peer_name = "oneDNN packed";
  report(r);
}

}  // namespace
}  // namespace rlx::bench

int main(int argc, char** argv) {
  using namespace rlx::bench;
  std::vector<Shape> shapes = {{512, 512, 512}, {1024, 1024, 1024}, {2048, 2048, 2048}};
  for (auto [k, n] : {std::pair<int64_t, int64_t>{384, 1536}, {576, 1536}, {2048, 8192}}) {
    for (int64_t m : {1, 4, 16, 60, 128}) shapes.push_back({m, k, n});
  }
  for (const Shape& s : shapes) {
    const std::string name =
        "gemm_f32 " + std::to_string(s.m) + "x" + std::to_string(s.k) + "x" + std::to_string(s.n);
    if (wanted(argc, argv, name)) bench_shape(s, name);
  }
}
