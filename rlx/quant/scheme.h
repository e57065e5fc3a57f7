// The weight schemes of quantised matrix products: W[k,n] held as codes with scales beside them.
//
//   text            codes                      scale                zero point        W[p,j], g = p / block
//   int8/B          i8 [k,n]                   f32 [ceil(k/B),n]    -                 q * s[g,j]
//   int8a/B         i8 [k,n]                   f32 [ceil(k/B),n]    f32, as scale     (q - z[g,j]) * s[g,j]
//   int4/B          u4, flat p*n + j           f32 [ceil(k/B),n]    f32, as scale     (q - z[g,j]) * s[g,j]
//   fp8e4m3         OCP E4M3 bytes [k,n]       f32 [n]              -                 e4m3(q) * s[j]
//   fp8e5m2         OCP E5M2 bytes [k,n]       f32 [n]              -                 e5m2(q) * s[j]
//   nvfp4/16        u4 [ceil(k/2),n] bytes     E4M3 [ceil(k/16),n]  -                 e2m1(q) * e4m3(s[g,j])
//   * global gguf_TYPE       blocks of W transposed, [n,k] row-major         -                 decoded
//   element j*k + p
//
// u4, flat: element i is the low nibble of byte i/2 for even i, the high nibble for odd i; codes are
// unsigned, the symmetric form has zero point 8. nvfp4 packs along k as checkpoints do: byte (p/2, j) holds
// row p even in the low nibble, p odd in the high one. NaN scale codes of nvfp4 mean 0.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "rlx/quant/format.h"

namespace rlx::quant {

/// The rows of the table above.
enum class SchemeKind : uint8_t {
  int8_block,
  int8_block_asym,
  int4_block,
  fp8_e4m3,
  fp8_e5m2,
  nvfp4_block,
  gguf
};

struct Scheme {
  SchemeKind kind;
  int block = 0;                        // along k; 0 for fp8, the block size of the format for gguf
  const BlockFormat* format = nullptr;  // gguf only

  /// Blocks of a format of GGUF.
  static Scheme gguf(const BlockFormat& f) { return {SchemeKind::gguf, f.elements, &f}; }

  bool is_gguf() const { return kind == SchemeKind::gguf; }
  // Which operands it has.
  bool has_scale() const { return !is_gguf(); }
  bool has_zero_point() const {
    return kind == SchemeKind::int8_block_asym || kind == SchemeKind::int4_block;
  }
  bool scale_is_fp8() const { return kind == SchemeKind::nvfp4_block; }

  friend bool operator==(const Scheme&, const Scheme&) = default;
};

/// The text of the table above. K formats are written without the last underscore: gguf_q4k.
void append_text(std::string& out, const Scheme&);
/// Empty when the text names no scheme. gguf_q4_k is read as gguf_q4k.
std::optional<Scheme> scheme_from_text(std::string_view);

/// Sizes of the operands for W[k,n]. Negative or overflowing sizes are user errors.
int64_t code_bytes(const Scheme&, int64_t k, int64_t n);
/// Numbers of the scale.
int64_t scale_count(const Scheme&, int64_t k, int64_t n);

/// The operands of W; those a scheme does not have stay empty.
struct SchemeOperands {
  std::span<const std::byte> codes;
  std::span<const float> scale;
  std::span<const uint8_t> fp8_scale;
  std::span<const float> zero_point;
  float global_scale = 1;
};

/// Operands of the wrong size are user errors.
void check_scheme_operands(const Scheme&, const SchemeOperands&, int64_t k, int64_t n);

/// out = W, row-major [k,n]. Operand sizes that do not fit are user errors.
void decode_scheme(const Scheme&, const SchemeOperands&, int64_t k, int64_t n, std::span<float> out);

/// The operands of a weight, owned.
struct SchemeWeights {
  std::vector<std::byte> codes;
  std::vector<float> scale;
  std::vector<uint8_t> fp8_scale;
  std::vector<float> zero_point;
  float global_scale = 1;

  /// The same, borrowed.
  SchemeOperands view() const { return {codes, scale, fp8_scale, zero_point, global_scale}; }
};

/// The smallest error this library knows how to find for W, row-major [k,n], finite.
SchemeWeights encode_scheme(const Scheme&, std::span<const float> w, int64_t k, int64_t n);

}  // namespace rlx::quant
