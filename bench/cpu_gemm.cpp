// f32 matrix products against oneDNN with packed weights (2 threads each, in turn).
#include <memory>
#include <vector>

#include "bench/bench.h"
#include "rlx/backend/cpu/kernels/gemm.h"

#ifdef RLX_BENCH_DNNL
#include <omp.h>

#include "oneapi/dnnl/dnnl.hpp"
#endif

namespace rlx::bench {
namespace {

using namespace cpu;

struct Shape {
  int64_t m, k, n;
};

#ifdef RLX_BENCH_DNNL
struct Peer {
  dnnl::engine engine{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream{engine};
  dnnl::matmul product;
  dnnl::memory a, b, c;

  Peer(const Shape& s, float* a_data, float* b_data, float* c_data) {
    using M = dnnl::memory;
    const M::desc ad({s.m, s.k}, M::data_type::f32, M::format_tag::ab),
        cd({s.m, s.n}, M::data_type::f32, M::format_tag::ab);
    const M::desc bd({s.k, s.n}, M::data_type::f32, M::format_tag::ab),
        any({s.k, s.n}, M::data_type::f32, M::format_tag::any);
    const dnnl::matmul::primitive_desc pd({ad, any, cd}, engine);
    product = dnnl::matmul(pd);
    a = M(ad, engine, a_data);
    c = M(cd, engine, c_data);
    M plain(bd, engine, b_data);
    b = M(pd.weights_desc(), engine);
    dnnl::reorder(plain, b).execute(stream, plain, b);
    stream.wait();
  }
  void run() {
    product.execute(stream, {{DNNL_ARG_SRC, a}, {DNNL_ARG_WEIGHTS, b}, {DNNL_ARG_DST, c}});
    stream.wait();
  }
};
#endif

void bench_shape(const Shape& s, const std::string& name) {
  std::vector<float> a(size_t(s.m * s.k), 0.5f), b(size_t(s.k * s.n), 0.25f), c(size_t(s.m * s.n)),
      d(c.size());
  const Team team(default_pool());
  const PackedMatrix packed = PackedMatrix::pack(team, {b.data(), DType::f32, s.n, 1}, s.k, s.n, DType::f32);
  const Gemm g{.m = s.m,
               .n = s.n,
               .k = s.k,
               .a = {a.data(), DType::f32, s.k, 1},
               .packed_b = &packed,
               .c = c.data(),
               .c_row_stride = s.n};
  const AlignedBytes workspace = allocate_aligned(gemm_workspace(g, team.threads()));
  std::vector<std::function<void()>> functions = {[&] { gemm(team, g, workspace.get()); }};
#ifdef RLX_BENCH_DNNL
  omp_set_num_threads(threads());
  Peer peer(s, a.data(), b.data(), d.data());
  functions.push_back([&] { peer.run(); });
#endif
  const std::vector<double> t = interleaved(functions);
  Result r{.name = name};
  const double flops = 2e-9 * double(s.m) * double(s.k) * double(s.n);
  if (s.m == 1 && s.k * s.n > 4000000) {
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
