#include "rlx/quant/format.h"

#include <cmath>
#include <cstring>
#include <vector>

#include "rlx/base/error.h"
#include "rlx/quant/fp4.h"
#include "rlx/quant/grid.h"
#include "rlx/quant/iq4.h"
#include "rlx/quant/k_quants.h"
#include "rlx/quant/linear32.h"
#include "rlx/quant/ternary.h"

namespace rlx::quant {
namespace {

void decode_f32(const std::byte* in, float* out, int64_t count) { std::memcpy(out, in, size_t(count) * 4); }
void encode_f32(const float* in, std::byte* out, int64_t count) { std::memcpy(out, in, size_t(count) * 4); }

void decode_f16(const std::byte* in, float* out, int64_t count) {
  const Half* half = reinterpret_cast<const Half*>(in);
  for (int64_t i = 0; i < count; ++i) out[i] = half[i].value();
}
void encode_f16(const float* in, std::byte* out, int64_t count) {
  Half* half = reinterpret_cast<Half*>(out);
  for (int64_t i = 0; i < count; ++i) half[i] = Half::of(in[i]);
}

void decode_bf16(const std::byte* in, float* out, int64_t count) {
  const Half* half = reinterpret_cast<const Half*>(in);
  for (int64_t i = 0; i < count; ++i) out[i] = bf16_to_f32(half[i].bits());
}
void encode_bf16(const float* in, std::byte* out, int64_t count) {
  Half* half = reinterpret_cast<Half*>(out);
  for (int64_t i = 0; i < count; ++i) half[i] = Half::of_bits(f32_to_bf16(in[i]));
}

// Ids 4 and 5 were given up before GGUF existed. 31-33 and 36-38 are row-interleaved forms of q4_0 and
// iq4_nl that GGUF no longer writes. Sizes of the formats without a decoder let files that hold them open.
constexpr BlockFormat kFormats[] = {
    {"f32", 0, 1, 4, DType::f32, decode_f32, encode_f32},
    {"f16", 1, 1, 2, DType::f16, decode_f16, encode_f16},
    {"q4_0", 2, 32, 18, {}, decode_q4_0, encode_q4_0},
    {"q4_1", 3, 32, 20, {}, decode_q4_1, encode_q4_1},
    {"q5_0", 6, 32, 22, {}, decode_q5_0, encode_q5_0},
    {"q5_1", 7, 32, 24, {}, decode_q5_1, encode_q5_1},
    {"q8_0", 8, 32, 34, {}, decode_q8_0, encode_q8_0},
    {"q8_1", 9, 32, 36, {}, decode_q8_1, encode_q8_1},
    {"q2_k", 10, 256, 84, {}, decode_q2_k, encode_q2_k},
    {"q3_k", 11, 256, 110, {}, decode_q3_k, encode_q3_k},
    {"q4_k", 12, 256, 144, {}, decode_q4_k, encode_q4_k},
    {"q5_k", 13, 256, 176, {}, decode_q5_k, encode_q5_k},
    {"q6_k", 14, 256, 210, {}, decode_q6_k, encode_q6_k},
    {"q8_k", 15, 256, 292, {}, decode_q8_k, encode_q8_k},
    {"iq2_xxs", 16, 256, 66, {}, decode_iq2_xxs, encode_iq2_xxs},
    {"iq2_xs", 17, 256, 74, {}, decode_iq2_xs, encode_iq2_xs},
    {"iq3_xxs", 18, 256, 98, {}, decode_iq3_xxs, encode_iq3_xxs},
    {"iq1_s", 19, 256, 50, {}, decode_iq1_s, encode_iq1_s},
    {"iq4_nl", 20, 32, 18, {}, decode_iq4_nl, encode_iq4_nl},
    {"iq3_s", 21, 256, 110, {}, decode_iq3_s, encode_iq3_s},
    {"iq2_s", 22, 256, 82, {}, decode_iq2_s, encode_iq2_s},
    {"iq4_xs", 23, 256, 136, {}, decode_iq4_xs, encode_iq4_xs},
    {"i8", 24, 1, 1, DType::i8},
    {"i16", 25, 1, 2, DType::i16},
    {"i32", 26, 1, 4, DType::i32},
    {"i64", 27, 1, 8, DType::i64},
    {"f64", 28, 1, 8, DType::f64},
    {"iq1_m", 29, 256, 56, {}, decode_iq1_m, encode_iq1_m},
    {"bf16", 30, 1, 2, DType::bf16, decode_bf16, encode_bf16},
    {"q4_0_4_4", 31, 32, 18, {}},
    {"q4_0_4_8", 32, 32, 18, {}},
    {"q4_0_8_8", 33, 32, 18, {}},
    {"tq1_0", 34, 256, 54, {}, decode_tq1_0, encode_tq1_0},
    {"tq2_0", 35, 256, 66, {}, decode_tq2_0, encode_tq2_0},
    {"iq4_nl_4_4", 36, 32, 18, {}},
    {"iq4_nl_4_8", 37, 32, 18, {}},
    {"iq4_nl_8_8", 38, 32, 18, {}},
    {"mxfp4", 39, 32, 17, {}, decode_mxfp4, encode_mxfp4},
    {"nvfp4", 40, 64, 36, {}, decode_nvfp4, encode_nvfp4},
    {"q1_0", 41, 128, 18, {}},
};

char lower(char c) { return c >= 'A' && c <= 'Z' ? char(c - 'A' + 'a') : c; }

bool same_name(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (lower(a[i]) != lower(b[i])) return false;
  }
  return true;
}

template <class Has>
std::string names_of(Has has) {
  std::vector<std::string_view> names;
  for (const BlockFormat& f : kFormats) {
    if (has(f)) names.push_back(f.name);
  }
  return join(names);
}

void check_sizes(const BlockFormat& f, const char* where, size_t bytes, size_t count) {
  const int64_t want = encoded_bytes(f, int64_t(count));
  if (int64_t(bytes) != want) {
    throw invalid(where, ": ", count, " elements of ", f.name, " take ", want, " bytes, got ", bytes);
  }
}

}  // namespace

std::span<const BlockFormat> formats() { return kFormats; }

const BlockFormat* find_format(int64_t ggml_id) {
  for (const BlockFormat& f : kFormats) {
    if (f.ggml_id == ggml_id) return &f;
  }
  return nullptr;
}

const BlockFormat* find_format(std::string_view name) {
  for (const BlockFormat& f : kFormats) {
    if (same_name(f.name, name)) return &f;
  }
  return nullptr;
}

const BlockFormat* format_of(DType dtype) {
  for (const BlockFormat& f : kFormats) {
    if (f.dtype == dtype) return &f;
  }
  return nullptr;
}

int64_t encoded_bytes(const BlockFormat& f, int64_t count) {
  if (count < 0 || count % f.elements != 0) {
    throw invalid("quant: ", count, " elements are no whole number of ", f.name, " blocks; a block has ",
                  f.elements);
  }
  const int64_t blocks = count / f.elements;
  if (blocks > INT64_MAX / f.bytes) throw invalid("quant: ", count, " elements of ", f.name, " overflow");
  return blocks * f.bytes;
}

void decode(const BlockFormat& f, std::span<const std::byte> in, std::span<float> out) {
  if (!f.decode) {
    throw invalid("quant: format ", f.name, " has no decoder; supported: ", decodable_names());
  }
  check_sizes(f, "quant decode", in.size(), out.size());
  if (!out.empty()) f.decode(in.data(), out.data(), int64_t(out.size()));  // null pointers go nowhere
}

void encode(const BlockFormat& f, std::span<const float> in, std::span<std::byte> out) {
  if (!f.encode) {
    throw invalid("quant: format ", f.name, " has no encoder; supported: ",
                  names_of([](const BlockFormat& g) { return g.encode != nullptr; }));
  }
  check_sizes(f, "quant encode", out.size(), in.size());
  if (!f.is_plain()) {
    for (size_t i = 0; i < in.size(); ++i) {
      if (!std::isfinite(in[i])) {
        throw invalid("quant encode: element ", i, " is ", in[i], "; ", f.name, " holds finite values only");
      }
    }
  }
  if (!in.empty()) f.encode(in.data(), out.data(), int64_t(in.size()));
}

std::string decodable_names() {
  return names_of([](const BlockFormat& f) { return f.decode != nullptr; });
}

}  // namespace rlx::quant
