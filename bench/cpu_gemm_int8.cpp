// Products of 8-bit codes against oneDNN with packed weights (u8 x i8 -> i32), in turn, and with results
// requantised to i8. Operations are counted as two for each multiply-add.
#include <memory>
#include <vector>

#include "bench/bench.h"
#include "bench/dnnl_matmul.h"
#include "bench/gemm_shapes.h"
#include "rlx/backend/cpu/kernels/gemm_int8.h"

namespace rlx::bench {
namespace {

using namespace cpu;

void bench_shape(const GemmShape& s, const std::string& name) {
  std::vector<uint8_t> a(size_t(s.m * s.k), 3);
  std::vector<int8_t> b(size_t(s.k * s.n), -2), codes(size_t(s.m * s.n));
  std::vector<int32_t> c(size_t(s.m * s.n)), d(c.size());
  const Team team(default_pool());
  const size_t copies = s.copies(1);
  std::vector<PackedInt8> packed(copies);
  for (PackedInt8& p : packed) p = PackedInt8::pack(team, {b.data(), DType::i8, s.n, 1}, s.k, s.n);
  GemmInt8 sums{.m = s.m, .n = s.n, .k = s.k, .a = {a.data(), DType::u8, s.k, 1}, .b = packed.data()};
  sums.c = c.data(), sums.c_row_stride = s.n;
  GemmInt8 rounded = sums;
  rounded.a_zero = 7, rounded.c = codes.data(), rounded.c_dtype = DType::i8;
  rounded.requantize = {.multiplier = 1.0 / 512, .zero_point = 3};
  const AlignedBytes workspace = allocate_aligned(gemm_int8_workspace(sums, team.threads()));
  size_t turn = 0;
  const auto run = [&](GemmInt8& g) {
    g.b = &packed[turn++ % copies];
    gemm_int8(team, g, workspace.get());
  };
  std::vector<std::function<void()>> functions = {[&] { run(sums); }, [&] { run(rounded); }};
#ifdef RLX_BENCH_DNNL
  std::vector<std::unique_ptr<DnnlMatmul>> peers(copies);
  using T = DnnlMatmul::Type;
  for (auto& p : peers) {
    p = std::make_unique<DnnlMatmul>(s.m, s.k, s.n, T::u8, a.data(), T::s8, b.data(), T::s32, d.data());
  }
  functions.push_back([&] { peers[turn++ % copies]->run(); });
#endif
  const std::vector<double> t = interleaved(functions);
  for (size_t i = 0; i < 2; ++i) {
    const bool reading = s.m == 1 && s.from_memory();
    const double work = (reading ? 1e-9 : 2e-9 * double(s.m)) * double(s.k) * double(s.n);
    Result r{
        .name = name + (i == 0 ? "" : " to i8"), .value = work / t[i], .unit = reading ? "GB/s" : "GOP/s"};
    r.limit = reading ? limits().read_gbs : limits().vnni_gops;
    if (t.size() > 2 && i == 0) r.peer = work / t[2], r.peer_name = "oneDNN packed";
    if (s.m >= 60) r.goal = ">= 75 %";
    report(r);
  }
}

}  // namespace
}  // namespace rlx::bench

int main(int argc, char** argv) { rlx::bench::each_gemm_shape(argc, argv, "int8", rlx::bench::bench_shape); }
