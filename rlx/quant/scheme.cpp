#include "rlx/quant/scheme.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "rlx/base/error.h"
#include "rlx/base/float16.h"
#include "rlx/quant/fit.h"
#include "rlx/quant/fp4.h"

namespace rlx::quant {
namespace {

constexpr int kNvGroup = 16;
constexpr std::string_view kGguf = "gguf_";

int64_t ceil_divide(int64_t a, int64_t b) { return a / b + (a % b != 0); }

int64_t checked_product(int64_t k, int64_t n) {
  if (k < 0 || n < 0) throw invalid("quant scheme: negative size ", k, " x ", n);
  int64_t product = 0;
  if (__builtin_mul_overflow(k, n, &product)) throw invalid("quant scheme: size ", k, " x ", n, " overflows");
  return product;
}

void check_count(const Scheme& s, const char* what, size_t got, int64_t want, int64_t k, int64_t n) {
  if (int64_t(got) != want) {
    throw invalid("quant scheme ", s, ": ", what, " has ", got, " entries; a weight of ", k, " x ", n,
                  " needs ", want);
  }
}

int nibble(std::span<const std::byte> codes, int64_t i) {
  return int(codes[size_t(i / 2)]) >> (4 * (i % 2)) & 15;
}
void set_nibble(std::vector<std::byte>& codes, int64_t i, int value) {
  codes[size_t(i / 2)] |= std::byte(value << (4 * (i % 2)));
}

// Flat nibble number of element (p, j) when pairs of k-neighbours share a byte.
int64_t nvfp4_position(int64_t p, int64_t j, int64_t n) { return 2 * (p / 2 * n + j) + p % 2; }

float nan_as_zero(uint8_t e4m3) { return (e4m3 & 0x7f) == 0x7f ? 0.0f : f8e4m3_to_f32(e4m3); }

// One group of a column, padded with its first value to the multiple of eight that the fits want: repeats
// pull the fit towards values that are there anyway.
struct Group {
  std::vector<float> values;
  int length = 0;
};
void load_group(Group& group, std::span<const float> w, int64_t k, int64_t n, int64_t first, int64_t j,
                int64_t block) {
  group.length = int(std::min(block, k - first));
  group.values.resize(size_t(ceil_divide(group.length, 8) * 8));
  for (size_t i = 0; i < group.values.size(); ++i) {
    const int64_t p = first + (int64_t(i) < group.length ? int64_t(i) : 0);
    group.values[i] = w[size_t(p * n + j)];
  }
}

void encode_integers(const Scheme& s, std::span<const float> w, int64_t k, int64_t n, SchemeWeights& out) {
  const int64_t groups = ceil_divide(k, s.block);
  out.scale.resize(size_t(groups * n));
  if (s.has_zero_point()) out.zero_point.resize(size_t(groups * n));
  Group group;
  for (int64_t g = 0; g < groups; ++g) {
    for (int64_t j = 0; j < n; ++j) {
      load_group(group, w, k, n, g * s.block, j, s.block);
      const int length = int(group.values.size());
      float d = 0, z = 0, lo = -127, hi = 127;
      if (s.kind == SchemeKind::int8_block) {
        for (const float v : group.values) d = std::max(d, std::abs(v) / 127);
      } else {
        const bool four = s.kind == SchemeKind::int4_block;
        lo = four ? 0 : -128, hi = four ? 15 : 127;
        const Affine fit = fit_affine(group.values.data(), length, four ? 15 : 255, false);
        d = fit.d;
        // A constant group has no spread: the code next to the zero point carries the value.
        if (d == 0 && fit.m != 0) {
          d = std::abs(fit.m);
          z = lo + (fit.m < 0 ? 1 : 0);
        } else {
          z = d != 0 ? lo - fit.m / d : lo;
        }
        out.zero_point[size_t(g * n + j)] = z;
      }
      out.scale[size_t(g * n + j)] = d;
      const float inverse = inverse_or_zero(d);
      for (int i = 0; i < group.length; ++i) {
        const int q = int(nearest_code(group.values[size_t(i)] * inverse + z, lo, hi));
        const int64_t at = (g * s.block + i) * n + j;
        if (s.kind == SchemeKind::int4_block) {
          set_nibble(out.codes, at, q);
        } else {
          out.codes[size_t(at)] = std::byte(uint8_t(int8_t(q)));
        }
      }
    }
  }
}

void encode_fp8(const Scheme& s, std::span<const float> w, int64_t k, int64_t n, SchemeWeights& out) {
  const bool e4m3 = s.kind == SchemeKind::fp8_e4m3;
  const float top = e4m3 ? 448.0f : 57344.0f;
  out.scale.resize(size_t(n));
  for (int64_t j = 0; j < n; ++j) {
    float largest = 0;
    for (int64_t p = 0; p < k; ++p) largest = std::max(largest, std::abs(w[size_t(p * n + j)]));
    const float scale = largest / top, inverse = inverse_or_zero(scale);
    out.scale[size_t(j)] = scale;
    for (int64_t p = 0; p < k; ++p) {
      const float v = w[size_t(p * n + j)] * inverse;
      out.codes[size_t(p * n + j)] = std::byte(e4m3 ? f32_to_f8e4m3(v, true) : f32_to_f8e5m2(v, true));
    }
  }
}

void encode_nvfp4_scheme(std::span<const float> w, int64_t k, int64_t n, SchemeWeights& out) {
  const int64_t groups = ceil_divide(k, kNvGroup);
  out.fp8_scale.resize(size_t(groups * n));
  // The global scale puts the largest group scale at the top of E4M3: 448 * 6.
  float largest = 0;
  for (const float v : w) largest = std::max(largest, std::abs(v));
  out.global_scale = largest > 0 ? largest / (448.0f * 6.0f) : 1.0f;
  const float inverse_global = inverse_or_zero(out.global_scale);
  for (int64_t g = 0; g < groups; ++g) {
    for (int64_t j = 0; j < n; ++j) {
      float values[kNvGroup];
      const int length = int(std::min<int64_t>(kNvGroup, k - g * kNvGroup));
      for (int i = 0; i < length; ++i) values[i] = w[size_t((g * kNvGroup + i) * n + j)] * inverse_global;
      const uint8_t code = nvfp4_best_scale(values, length);
      out.fp8_scale[size_t(g * n + j)] = code;
      const float inverse = inverse_or_zero(nvfp4_scale(code));
      for (int i = 0; i < length; ++i) {
        set_nibble(out.codes, nvfp4_position(g * kNvGroup + i, j, n), e2m1_nearest(values[i] * inverse));
      }
    }
  }
}

}  // namespace

void append_text(std::string& out, const Scheme& s) {
  switch (s.kind) {
    case SchemeKind::int8_block:
      out += cat("int8/", s.block);
      return;
    case SchemeKind::int8_block_asym:
      out += cat("int8a/", s.block);
      return;
    case SchemeKind::int4_block:
      out += cat("int4/", s.block);
      return;
    case SchemeKind::fp8_e4m3:
      out += "fp8e4m3";
      return;
    case SchemeKind::fp8_e5m2:
      out += "fp8e5m2";
      return;
    case SchemeKind::nvfp4_block:
      out += "nvfp4/16";
      return;
    case SchemeKind::gguf: {
      std::string name(s.format->name);
      if (name.ends_with("_k")) name.erase(name.size() - 2, 1);
      out += cat(kGguf, name);
      return;
    }
  }
}

std::optional<Scheme> scheme_from_text(std::string_view text) {
  if (text == "fp8e4m3") return Scheme{SchemeKind::fp8_e4m3};
  if (text == "fp8e5m2") return Scheme{SchemeKind::fp8_e5m2};
  if (text.starts_with(kGguf)) {
    std::string name(text.substr(kGguf.size()));
    const BlockFormat* format = find_format(name);
    if (!format && name.size() > 1 && name.back() == 'k')
      format = find_format(name.insert(name.size() - 1, "_"));
    if (!format || format->is_plain() || !format->decode) return std::nullopt;
    return Scheme::gguf(*format);
  }
  const size_t slash = text.find('/');
  if (slash == text.npos) return std::nullopt;
  const std::string_view head = text.substr(0, slash), digits = text.substr(slash + 1);
  int block = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), block);
  if (error != std::errc() || end != digits.data() + digits.size() || block < 1) return std::nullopt;
  if (head == "int8") return Scheme{SchemeKind::int8_block, block};
  if (head == "int8a") return Scheme{SchemeKind::int8_block_asym, block};
  if (head == "int4") return Scheme{SchemeKind::int4_block, block};
  if (head == "nvfp4" && block == kNvGroup) return Scheme{SchemeKind::nvfp4_block, block};
  return std::nullopt;
}

int64_t code_bytes(const Scheme& s, int64_t k, int64_t n) {
  const int64_t count = checked_product(k, n);
  switch (s.kind) {
    case SchemeKind::int4_block:
      return ceil_divide(count, 2);
    case SchemeKind::nvfp4_block:
      return ceil_divide(k, 2) * n;
    case SchemeKind::gguf:
      return encoded_bytes(*s.format, count);
    default:
      return count;
  }
}

int64_t scale_count(const Scheme& s, int64_t k, int64_t n) {
  checked_product(k, n);
  switch (s.kind) {
    case SchemeKind::gguf:
      return 0;
    case SchemeKind::fp8_e4m3:
    case SchemeKind::fp8_e5m2:
      return n;
    default:
      return ceil_divide(k, s.block) * n;
  }
}

void check_scheme_operands(const Scheme& s, const SchemeOperands& in, int64_t k, int64_t n) {
  const int64_t scales = scale_count(s, k, n);
  check_count(s, "codes", in.codes.size(), code_bytes(s, k, n), k, n);
  check_count(s, "scale", s.scale_is_fp8() ? in.fp8_scale.size() : in.scale.size(), scales, k, n);
  if (s.has_zero_point()) check_count(s, "zero_point", in.zero_point.size(), scales, k, n);
}

void decode_scheme(const Scheme& s, const SchemeOperands& in, int64_t k, int64_t n, std::span<float> out) {
  check_scheme_operands(s, in, k, n);
  check_count(s, "result", out.size(), k * n, k, n);
  if (s.is_gguf()) {
    std::vector<float> transposed(out.size());
    decode(*s.format, in.codes, transposed);
    for (int64_t j = 0; j < n; ++j) {
      for (int64_t p = 0; p < k; ++p) out[size_t(p * n + j)] = transposed[size_t(j * k + p)];
    }
    return;
  }
  for (int64_t p = 0; p < k; ++p) {
    for (int64_t j = 0; j < n; ++j) {
      const int64_t at = p * n + j;
      const size_t group = s.block ? size_t(p / s.block * n + j) : size_t(j);
      const auto byte = [&] { return uint8_t(in.codes[size_t(at)]); };
      float& w = out[size_t(at)];
      switch (s.kind) {
        case SchemeKind::int8_block:
          w = float(int8_t(byte())) * in.scale[group];
          break;
        case SchemeKind::int8_block_asym:
          w = (float(int8_t(byte())) - in.zero_point[group]) * in.scale[group];
          break;
        case SchemeKind::int4_block:
          w = (float(nibble(in.codes, at)) - in.zero_point[group]) * in.scale[group];
          break;
        case SchemeKind::fp8_e4m3:
          w = f8e4m3_to_f32(byte()) * in.scale[group];
          break;
        case SchemeKind::fp8_e5m2:
          w = f8e5m2_to_f32(byte()) * in.scale[group];
          break;
        case SchemeKind::nvfp4_block:
          w = kE2m1Table[nibble(in.codes, nvfp4_position(p, j, n))] * nan_as_zero(in.fp8_scale[group]) *
              in.global_scale;
          break;
        case SchemeKind::gguf:
          break;
      }
    }
  }
}

SchemeWeights encode_scheme(const Scheme& s, std::span<const float> w, int64_t k, int64_t n) {
  check_count(s, "weight", w.size(), checked_product(k, n), k, n);
  for (size_t i = 0; i < w.size(); ++i) {
    if (!std::isfinite(w[i]))
      throw invalid("quant scheme ", s, ": element ", i, " is ", w[i], "; finite values only");
  }
  SchemeWeights out;
  out.codes.resize(size_t(code_bytes(s, k, n)));
  switch (s.kind) {
    case SchemeKind::int8_block:
    case SchemeKind::int8_block_asym:
    case SchemeKind::int4_block:
      encode_integers(s, w, k, n, out);
      break;
    case SchemeKind::fp8_e4m3:
    case SchemeKind::fp8_e5m2:
      encode_fp8(s, w, k, n, out);
      break;
    case SchemeKind::nvfp4_block:
      encode_nvfp4_scheme(w, k, n, out);
      break;
    case SchemeKind::gguf: {
      std::vector<float> transposed(w.size());
      for (int64_t p = 0; p < k; ++p) {
        for (int64_t j = 0; j < n; ++j) transposed[size_t(j * k + p)] = w[size_t(p * n + j)];
      }
      encode(*s.format, transposed, out.codes);
      break;
    }
  }
  return out;
}

}  // namespace rlx::quant
