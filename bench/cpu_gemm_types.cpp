// Matrix products beside plain f32: weights stored in 16 bits, f64 and c64 against OpenBLAS, and groups of
// rows with their own matrices against one product of all rows. A complex multiply-add counts as eight
// operations.
#include <complex>
#include <memory>
#include <vector>

#include "bench/bench.h"
#include "bench/gemm_shapes.h"
#include "rlx/backend/cpu/kernels/gemm.h"
#include "rlx/backend/cpu/kernels/gemm_int8.h"

#ifdef RLX_BENCH_BLAS
#include <cblas.h>
#endif

namespace rlx::bench {
namespace {

using namespace cpu;

template <class T>
std::vector<T> filled(int64_t n, T value) {
  return std::vector<T>(size_t(n), value);
}

void bench_stored(DType stored, const GemmShape& s, const std::string& name) {
  const auto [m, k, n] = s;
  const Team team(default_pool());
  const auto a = filled(m * k, 0.5f), b = filled(k * n, 0.25f);
  auto c = filled(m * n, 0.0f);
  const size_t copies = s.copies(2);
  std::vector<PackedMatrix> packed(copies);
  for (PackedMatrix& p : packed) p = PackedMatrix::pack(team, {b.data(), DType::f32, n, 1}, k, n, stored);
  Gemm g{.m = m, .n = n, .k = k, .a = {a.data(), DType::f32, k, 1}, .packed_b = packed.data()};
  g.c = c.data(), g.c_row_stride = n;
  const AlignedBytes workspace = allocate_aligned(gemm_workspace(g, team.threads()));
  size_t turn = 0;
  const double t = interleaved({[&] {
    g.packed_b = &packed[turn++ % copies];
    gemm(team, g, workspace.get());
  }})[0];
  if (m == 1 && s.from_memory()) {
    report({.name = name, .value = 2e-9 * double(k * n) / t, .unit = "GB/s", .limit = limits().read_gbs});
  } else {
    report({.name = name,
            .value = 2e-9 * double(m * k * n) / t,
            .unit = "GFLOP/s",
            .limit = limits().fma_gflops});
  }
}

// op(A) op(B) of squares; neither is packed beforehand.
template <class T>
void bench_blas(DType type, int64_t n, const std::string& name) {
  const Team team(default_pool());
  const std::vector<T> a = filled(n * n, T(0.5)), b = filled(n * n, T(0.25));
  std::vector<T> c = filled(n * n, T(0)), d = c;
  Gemm g{.m = n, .n = n, .k = n, .a = {a.data(), type, n, 1}, .b = {b.data(), type, n, 1}};
  g.c = c.data(), g.c_dtype = type, g.c_row_stride = n;
  const AlignedBytes workspace = allocate_aligned(gemm_workspace(g, team.threads()));
  std::vector<std::function<void()>> functions = {[&] { gemm(team, g, workspace.get()); }};
#ifdef RLX_BENCH_BLAS
  openblas_set_num_threads(threads());
  functions.push_back([&] {
    const int size = int(n);
    if constexpr (std::is_same_v<T, double>) {
      cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, size, size, size, 1, a.data(), size, b.data(),
                  size, 0, d.data(), size);
    } else {
      const T one = 1, zero = 0;
      cblas_cgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, size, size, size, &one, a.data(), size, b.data(),
                  size, &zero, d.data(), size);
    }
  });
#endif
  const std::vector<double> t = interleaved(functions);
  const bool is_double = type == DType::f64;
  const double flops = (is_double ? 2e-9 : 8e-9) * double(n * n * n);
  Result r{.name = name, .value = flops / t[0], .unit = "GFLOP/s"};
  r.limit = limits().fma_gflops / (is_double ? 2 : 1);
  if (t.size() > 1) r.peer = flops / t[1], r.peer_name = "OpenBLAS";
  report(r);
}

// `sizes`: rows of each group. The peer is our own product of as many rows with one matrix.
void bench_groups(const std::vector<int64_t>& sizes, int64_t k, int64_t n, const std::string& name) {
  const Team team(default_pool());
  std::vector<int64_t> offsets = {0};
  for (const int64_t rows : sizes) offsets.push_back(offsets.back() + rows);
  const int64_t m = offsets.back(), groups = int64_t(sizes.size());
  const auto a = filled(m * k, 0.5f), b = filled(k * n, 0.25f);
  const auto codes = filled(m * k, uint8_t(3));
  const auto weights = filled(k * n, int8_t(-2));
  auto c = filled(m * n, 0.0f);
  auto sums = filled(m * n, 0);
  std::vector<PackedMatrix> packed;
  std::vector<PackedInt8> packed_codes;
  for (int64_t i = 0; i < groups; ++i) {
    packed.push_back(PackedMatrix::pack(team, {b.data(), DType::f32, n, 1}, k, n, DType::f32));
    packed_codes.push_back(PackedInt8::pack(team, {weights.data(), DType::i8, n, 1}, k, n));
  }
  Gemm g{.m = m, .n = n, .k = k, .a = {a.data(), DType::f32, k, 1}, .packed_b = packed.data()};
  g.c = c.data(), g.c_row_stride = n;
  Gemm grouped = g;
  grouped.groups = {groups, offsets.data()};
  GemmInt8 i8{.m = m, .n = n, .k = k, .a = {codes.data(), DType::u8, k, 1}, .b = packed_codes.data()};
  i8.c = sums.data(), i8.c_row_stride = n;
  GemmInt8 grouped_i8 = i8;
  grouped_i8.groups = grouped.groups;
  const AlignedBytes workspace = allocate_aligned(
      std::max(gemm_workspace(grouped, team.threads()), gemm_int8_workspace(grouped_i8, team.threads())));
  const std::vector<double> t = interleaved(
      {[&] { gemm(team, grouped, workspace.get()); }, [&] { gemm(team, g, workspace.get()); },
       [&] { gemm_int8(team, grouped_i8, workspace.get()); }, [&] { gemm_int8(team, i8, workspace.get()); }});
  const bool reading = m <= groups;  // a row or none for each: what counts is reading the matrices
  const double work = (reading ? 1e-9 : 2e-9) * double(m * k * n);
  const auto line = [&](const std::string& type, double bytes, size_t i, double limit) {
    Result r{.name = name + type};
    r.value = work * (reading ? bytes : 1) / t[i];
    r.unit = reading ? "GB/s" : (bytes > 1 ? "GFLOP/s" : "GOP/s");
    r.limit = reading ? limits().read_gbs : limit;
    if (!reading) r.peer = work / t[i + 1], r.peer_name = "one matrix";
    report(r);
  };
  line(" f32", 4, 0, limits().fma_gflops);
  line(" int8", 1, 2, limits().vnni_gops);
}

}  // namespace
}  // namespace rlx::bench

int main(int argc, char** argv) {
  using namespace rlx::bench;
  const auto with = [&](const std::string& name, auto body) {
    if (wanted(argc, argv, name)) body(name);
  };
  for (const rlx::DType t : {rlx::DType::f16, rlx::DType::bf16}) {
    each_gemm_shape(argc, argv, std::string(rlx::dtype_name(t)),
                    [&](const GemmShape& s, const std::string& name) { bench_stored(t, s, name); });
  }
  with("gemm_f64 1024x1024x1024",
       [](const std::string& name) { bench_blas<double>(rlx::DType::f64, 1024, name); });
  with("gemm_c64 1024x1024x1024",
       [](const std::string& name) { bench_blas<std::complex<float>>(rlx::DType::c64, 1024, name); });
  with("gemm_grouped 8 even of 128",
       [](const std::string& name) { bench_groups(std::vector<int64_t>(8, 16), 1024, 1024, name); });
  with("gemm_grouped 8 uneven of 128",
       [](const std::string& name) { bench_groups({101, 0, 1, 3, 0, 19, 2, 2}, 1024, 1024, name); });
  with("gemm_grouped 8 of 1 row",
       [](const std::string& name) { bench_groups(std::vector<int64_t>(8, 1), 1024, 4096, name); });
}
