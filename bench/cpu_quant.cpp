// Block-quantised products: matvec against read bandwidth of the file's bytes, M = 128 against the VNNI peak.
#include <vector>

#include "bench/bench.h"
#include "rlx/backend/cpu/kernels/quant_product.h"

namespace rlx::bench {
namespace {

using namespace cpu;

void product(const std::string& format, int64_t m, int64_t k, int64_t n, const std::string& name) {
  const quant::BlockFormat& f = *quant::find_format(format);
  const Team team(default_pool());
  std::vector<float> w(static_cast<size_t>(k * 64));
  for (size_t i = 0; i < w.size(); ++i) w[i] = float(i * 7919 % 1000) * 0.002f - 1;
  std::vector<std::byte> some(static_cast<size_t>(quant::encoded_bytes(f, k * 64))), rows;
  quant::encode(f, w, some);
  for (int64_t i = 0; i < n / 64; ++i) rows.insert(rows.end(), some.begin(), some.end());
  // A matvec takes copies in turn, so that the weights come from memory.
  const int copies = m == 1 ? int((size_t(256) << 20) / rows.size()) + 1 : 1;
  std::vector<QuantMatrix> packed;
  for (int i = 0; i < copies; ++i) packed.push_back(QuantMatrix::pack(team, f, rows.data(), n, k));
  std::vector<float> x(static_cast<size_t>(m * k), 0.5f), y(static_cast<size_t>(m * n));
  QuantProduct p{.m = m, .x = x.data(), .x_stride = k, .w = &packed[0], .y = y.data(), .y_stride = n};
  const AlignedBytes workspace = allocate_aligned(quant_product_workspace(p));
  size_t turn = 0;
  const double t = interleaved({[&] {
    p.w = &packed[turn];
    turn = (turn + 1) % packed.size();
    quant_product(team, p, workspace.get());
  }})[0];
  if (m == 1) {
    report({.name = name,
            .value = double(rows.size()) * 1e-9 / t,
            .unit = "GB/s",
            .limit = limits().read_gbs,
            .goal = ">= 75 % of read"});
  } else {
    report({.name = name,
            .value = 2e-9 * double(m) * double(n) * double(k) / t,
            .unit = "GOP/s",
            .limit = limits().vnni_gops,
            .goal = ">= 35 % of VNNI"});
  }
}

}  // namespace
}  // namespace rlx::bench

int main(int argc, char** argv) {
  using namespace rlx::bench;
  for (const char* format : {"q4_0", "q8_0", "q4_k", "q6_k"}) {
    const std::string matvec = std::string(format) + " matvec 2048x8192",
                      many = std::string(format) + " M=128 2048x2048";
    if (wanted(argc, argv, matvec)) product(format, 1, 2048, 8192, matvec);
    if (wanted(argc, argv, many)) product(format, 128, 2048, 2048, many);
  }
}
