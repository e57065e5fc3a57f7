#include "rlx/quant/weighted.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "rlx/base/error.h"
#include "rlx/quant/fp4.h"
#include "rlx/quant/grid.h"
#include "rlx/quant/iq4.h"
#include "rlx/quant/k_quants.h"
#include "rlx/quant/linear32.h"
#include "rlx/quant/ternary.h"

namespace rlx::quant {

void encode_q4_0(const float* in, std::byte* out, int64_t count) { encode_q4_0(in, nullptr, out, count); }
void encode_q4_1(const float* in, std::byte* out, int64_t count) { encode_q4_1(in, nullptr, out, count); }
void encode_q5_0(const float* in, std::byte* out, int64_t count) { encode_q5_0(in, nullptr, out, count); }
void encode_q5_1(const float* in, std::byte* out, int64_t count) { encode_q5_1(in, nullptr, out, count); }
void encode_q2_k(const float* in, std::byte* out, int64_t count) { encode_q2_k(in, nullptr, out, count); }
void encode_q3_k(const float* in, std::byte* out, int64_t count) { encode_q3_k(in, nullptr, out, count); }
void encode_q4_k(const float* in, std::byte* out, int64_t count) { encode_q4_k(in, nullptr, out, count); }
void encode_q5_k(const float* in, std::byte* out, int64_t count) { encode_q5_k(in, nullptr, out, count); }
void encode_q6_k(const float* in, std::byte* out, int64_t count) { encode_q6_k(in, nullptr, out, count); }
void encode_iq1_s(const float* in, std::byte* out, int64_t count) { encode_iq1_s(in, nullptr, out, count); }
void encode_iq1_m(const float* in, std::byte* out, int64_t count) { encode_iq1_m(in, nullptr, out, count); }
void encode_iq2_xxs(const float* in, std::byte* out, int64_t count) {
  encode_iq2_xxs(in, nullptr, out, count);
}
void encode_iq2_xs(const float* in, std::byte* out, int64_t count) { encode_iq2_xs(in, nullptr, out, count); }
void encode_iq2_s(const float* in, std::byte* out, int64_t count) { encode_iq2_s(in, nullptr, out, count); }
void encode_iq3_xxs(const float* in, std::byte* out, int64_t count) {
  encode_iq3_xxs(in, nullptr, out, count);
}
void encode_iq3_s(const float* in, std::byte* out, int64_t count) { encode_iq3_s(in, nullptr, out, count); }
void encode_iq4_nl(const float* in, std::byte* out, int64_t count) { encode_iq4_nl(in, nullptr, out, count); }
void encode_iq4_xs(const float* in, std::byte* out, int64_t count) { encode_iq4_xs(in, nullptr, out, count); }
void encode_tq1_0(const float* in, std::byte* out, int64_t count) { encode_tq1_0(in, nullptr, out, count); }
void encode_tq2_0(const float* in, std::byte* out, int64_t count) { encode_tq2_0(in, nullptr, out, count); }
void encode_mxfp4(const float* in, std::byte* out, int64_t count) { encode_mxfp4(in, nullptr, out, count); }
void encode_nvfp4(const float* in, std::byte* out, int64_t count) { encode_nvfp4(in, nullptr, out, count); }

namespace {

using EncodeWeighted = void (*)(const float* in, const float* weights, std::byte* out, int64_t count);

constexpr std::pair<std::string_view, EncodeWeighted> kEncoders[] = {
    {"q4_0", encode_q4_0},     {"q4_1", encode_q4_1},     {"q5_0", encode_q5_0},
    {"q5_1", encode_q5_1},     {"q2_k", encode_q2_k},     {"q3_k", encode_q3_k},
    {"q4_k", encode_q4_k},     {"q5_k", encode_q5_k},     {"q6_k", encode_q6_k},
    {"iq1_s", encode_iq1_s},   {"iq1_m", encode_iq1_m},   {"iq2_xxs", encode_iq2_xxs},
    {"iq2_xs", encode_iq2_xs}, {"iq2_s", encode_iq2_s},   {"iq3_xxs", encode_iq3_xxs},
    {"iq3_s", encode_iq3_s},   {"iq4_nl", encode_iq4_nl}, {"iq4_xs", encode_iq4_xs},
    {"tq1_0", encode_tq1_0},   {"tq2_0", encode_tq2_0},   {"mxfp4", encode_mxfp4},
    {"nvfp4", encode_nvfp4},
};

void check(const BlockFormat& f, std::span<const float> in, std::span<const float> weights, size_t bytes) {
  if (const int64_t want = encoded_bytes(f, int64_t(in.size())); int64_t(bytes) != want)
    throw invalid("quant encode: ", in.size(), " elements of ", f.name, " take ", want, " bytes, got ",
                  bytes);
  if (in.size() != weights.size())
    throw invalid("quant encode: ", weights.size(), " weights for ", in.size(), " elements");
  for (size_t i = 0; i < in.size(); ++i) {
    if (!std::isfinite(in[i]))
      throw invalid("quant encode: element ", i, " is ", in[i], "; ", f.name, " holds finite values only");
    if (!std::isfinite(weights[i]) || weights[i] < 0)
      throw invalid("quant encode: weight ", i, " is ", weights[i],
                    "; a finite number, not negative, expected");
  }
}

// Each block with a mean weight of 1, which keeps the sums in range; null where all weights are 0.
void encode_block(EncodeWeighted encode, const BlockFormat& f, const float* in, const float* weights,
                  std::byte* out, std::vector<float>& scaled) {
  double sum = 0;
  for (int i = 0; i < f.elements; ++i) sum += double(weights[i]);
  if (sum <= 0) return encode(in, nullptr, out, f.elements);
  for (int i = 0; i < f.elements; ++i)
    scaled[size_t(i)] = float(double(weights[i]) * (double(f.elements) / sum));
  encode(in, scaled.data(), out, f.elements);
}

}  // namespace

void encode_weighted(const BlockFormat& f, std::span<const float> in, std::span<const float> weights,
                     std::span<std::byte> out) {
  const auto entry = std::find_if(std::begin(kEncoders), std::end(kEncoders),
                                  [&](const auto& e) { return e.first == f.name; });
  if (entry == std::end(kEncoders)) return encode(f, in, out);
  check(f, in, weights, out.size());
  std::vector<float> scaled(size_t(f.elements));
  for (size_t i = 0, block = 0; i < in.size(); i += size_t(f.elements), ++block)
    encode_block(entry->second, f, in.data() + i, weights.data() + i, out.data() + block * size_t(f.bytes),
                 scaled);
}

}  // namespace rlx::quant
