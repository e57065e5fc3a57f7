// Encoding under weights: elements whose errors matter more are met more closely.
//
// In a product y = x W^T an error e of a weight costs e^2 times the mean square of the activations it meets, so with these as
// weights the encoders make the expected error of y small, not that of W.
#pragma once

#include "rlx/quant/format.h"

namespace rlx::quant {

/// Least sum of w (x - decoded)^2 that this library knows how to find. One weight for each element, finite and not negative; of a block
/// whose weights are all 0 all elements count alike. Formats without a search (plain types, eight bits) are encoded as always.
void encode_weighted(const BlockFormat&, std::span<const float> in, std::span<const float> weights,
                     std::span<std::byte> out);

/// Of one format; null weights are all alike.
void encode_q4_0(const float* in, const float* weights, std::byte* out, int64_t count);
void encode_q4_1(const float* in, const float* weights, std::byte* out, int64_t count);
void encode_q5_0(const float* in, const float* weights, std::byte* out, int64_t count);
void encode_q5_1(const float* in, const float* weights, std::byte* out, int64_t count);
void encode_q2_k(const float* in, const float* weights, std::byte* out, int64_t count);
void encode_q3_k(const float* in, const float* weights, std::byte* out, int64_t count);
void encode_q4_k(const float* in, const float* weights, std::byte* out, int64_t count);
void encode_q5_k(const float* in, const float* weights, std::byte* out, int64_t count);
void encode_q6_k(const float* in, const float* weights, std::byte* out, int64_t count);
void encode_iq1_s(const float* in, const float* weights, std::byte* out, int64_t count);
void encode_iq1_m(const float* in, const float* weights, std::byte* out, int64_t count);
void encode_iq2_xxs(const float* in, const float* weights, std::byte* out, int64_t count);
void encode_iq2_xs(const float* in, const float* weights, std::byte* out, int64_t count);
void encode_iq2_s(const float* in, const float* weights, std::byte* out, int64_t count);
void encode_iq3_xxs(const float* in, const float* weights, std::byte* out, int64_t count);
void encode_iq3_s(const float* in, const float* weights, std::byte* out, int64_t count);
void encode_iq4_nl(const float* in, const float* weights, std::byte* out, int64_t count);
void encode_iq4_xs(const float* in, const float* weights, std::byte* out, int64_t count);
void encode_tq1_0(const float* in, const float* weights, std::byte* out, int64_t count);
void encode_tq2_0(const float* in, const float* weights, std::byte* out, int64_t count);
void encode_mxfp4(const float* in, const float* weights, std::byte* out, int64_t count);
void encode_nvfp4(const float* in, const float* weights, std::byte* out, int64_t count);

}  // namespace rlx::quant
