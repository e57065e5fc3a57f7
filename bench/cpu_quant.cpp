// Block-quantised products: matvec against read bandwidth of the file's bytes and, in turn with it, against a
// plain sum over the packed bytes; M = 128 against the VNNI peak, the exact form against the multiply-add
// peak.
#include <atomic>
#include <vector>

#include "bench/bench.h"
#include "rlx/backend/cpu/kernels/quant/quant_product.h"

namespace rlx::bench {
namespace {

using namespace cpu;

// Weights [n, k] as a file has them.
struct Weights {
  int64_t n, k;
  quant::Scheme scheme;
  quant::SchemeWeights operands;

  Weights(const std::string& text, int64_t rows, int64_t columns)
      : n(rows), k(columns), scheme(*quant::scheme_from_text(text)) {
    if (scheme.is_gguf()) {  // 64 encoded rows again and again
      std::vector<float> w(static_cast<size_t>(k * 64));
      for (size_t i = 0; i < w.size(); ++i) w[i] = float(i * 7919 % 1000) * 0.002f - 1;
      std::vector<std::byte> some(static_cast<size_t>(quant::encoded_bytes(*scheme.format, k * 64)));
      quant::encode(*scheme.format, w, some);
      for (int64_t i = 0; i < n / 64; ++i)
        operands.codes.insert(operands.codes.end(), some.begin(), some.end());
      return;
    }
    operands.codes.resize(size_t(quant::code_bytes(scheme, k, n)));
    for (size_t i = 0; i < operands.codes.size(); ++i) operands.codes[i] = std::byte(i * 7919 % 120);
    operands.scale.assign(size_t(quant::scale_count(scheme, k, n)), 0.01f);
    if (scheme.has_zero_point()) operands.zero_point.assign(operands.scale.size(), 8.0f);
  }
  QuantMatrix pack(Team team) const { return QuantMatrix::pack(team, scheme, operands.view(), k, n); }
  double bytes() const {
    return double(operands.codes.size()) + 4 * double(operands.scale.size() + operands.zero_point.size());
  }
};

// The sum of the words of packed weights, each thread its share.
uint64_t sum(Team team, const QuantMatrix& w) {
  std::atomic<uint64_t> total = 0;
  team.parallel_for(int64_t(w.bytes() / 64), 1, [&](int64_t begin, int64_t end) {
    const auto* words = reinterpret_cast<const uint64_t*>(w.view().data);
    uint64_t s[8] = {};
    for (int64_t line = begin; line < end; ++line) {
      for (int j = 0; j < 8; ++j) s[j] += words[line * 8 + j];
    }
    for (const uint64_t part : s) total += part;
  });
  return total;
}

struct Seconds {
  double product, read;
};

// A product of few rows takes copies of the weights in turn, so that they come from memory.
Seconds time(const Weights& weights, int64_t m, bool exact) {
  const Team team(default_pool());
  const int copies = m < 16 ? int(double(size_t(256) << 20) / weights.bytes()) + 1 : 1;
  std::vector<QuantMatrix> packed;
  for (int i = 0; i < copies; ++i) packed.push_back(weights.pack(team));
  std::vector<float> x(static_cast<size_t>(m * weights.k)), y(static_cast<size_t>(m * weights.n));
  for (size_t i = 0; i < x.size(); ++i) x[i] = float(i * 6101 % 999) * 0.002f - 1;
  QuantProduct p{.m = m,
                 .x = x.data(),
                 .x_stride = weights.k,
                 .w = &packed[0],
                 .y = y.data(),
                 .y_stride = weights.n,
                 .exact = exact};
  const AlignedBytes workspace = allocate_aligned(quant_product_workspace(p, team.threads()));
  size_t turn = 0;
  volatile uint64_t sink = 0;
  const auto next = [&]() -> const QuantMatrix& { return packed[turn++ % packed.size()]; };
  const std::vector<double> t = interleaved({[&] {
                                               p.w = &next();
                                               quant_product(team, p, workspace.get());
                                             },
                                             [&] { sink = sum(team, next()); }});
  return {t[0], t[1]};
}

bool has_goal(const std::string& scheme, std::initializer_list<const char*> with) {
  for (const char* text : with) {
    if (scheme == text) return true;
  }
  return false;
}

void matvec(const std::string& scheme, const std::string& name) {
  const Weights weights(scheme, 8192, 2048);
  const bool goal = has_goal(scheme, {"gguf_q4_0", "gguf_q8_0", "gguf_q4k", "gguf_q6k"});
  const Seconds t = time(weights, 1, false);
  report({.name = name,
          .value = weights.bytes() * 1e-9 / t.product,
          .unit = "GB/s",
          .limit = limits().read_gbs,
          .peer = weights.bytes() * 1e-9 / t.read,
          .peer_name = "sum of the packed bytes",
          .goal = goal ? ">= 75 % of read" : ""});
}

void many_rows(const std::string& scheme, const std::string& name, bool exact) {
  const Weights weights(scheme, 2048, 2048);
  const bool goal = !exact && has_goal(scheme, {"gguf_q4_0", "gguf_q4k"});
  report({.name = name,
          .value = 2e-9 * 128 * 2048 * 2048 / time(weights, 128, exact).product,
          .unit = exact ? "GFLOP/s" : "GOP/s",
          .limit = exact ? limits().fma_gflops : limits().vnni_gops,
          .goal = goal ? ">= 35 % of VNNI" : ""});
}

}  // namespace
}  // namespace rlx::bench

int main(int argc, char** argv) {
  using namespace rlx::bench;
  const char* schemes[] = {
      "gguf_q4_0",    "gguf_q4_1",  "gguf_q5_0",  "gguf_q5_1",   "gguf_q8_0",    "gguf_q2k",    "gguf_q3k",
      "gguf_q4k",     "gguf_q5k",   "gguf_q6k",   "gguf_iq4_nl", "gguf_iq4_xs",  "gguf_mxfp4",  "gguf_nvfp4",
      "gguf_tq1_0",   "gguf_tq2_0", "gguf_iq1_s", "gguf_iq1_m",  "gguf_iq2_xxs", "gguf_iq2_xs", "gguf_iq2_s",
      "gguf_iq3_xxs", "gguf_iq3_s", "int8/128",   "int8a/128",   "int4/128",     "fp8e4m3"};
  for (const std::string scheme : schemes) {
    const std::string short_name = scheme.substr(scheme.starts_with("gguf_") ? 5 : 0);
    const bool is_float = scheme.starts_with("fp8");
    const std::string one = short_name + " matvec 2048x8192", many = short_name + " M=128 2048x2048",
                      exact = short_name + " exact M=128 2048x2048";
    if (wanted(argc, argv, one)) matvec(scheme, one);
    if (!is_float && wanted(argc, argv, many)) many_rows(scheme, many, false);
    if ((is_float || scheme == "gguf_q4k") && wanted(argc, argv, exact)) many_rows(scheme, exact, true);
  }
}
