// Products with block-quantised weights: y[m, n] = x[m, k] w[n, k]', w multiplied in its packed form.
//
// Activations are rounded to 8 bits per run of 32 (scale = largest magnitude / 127), the dot products of
// codes are exact integers, and the block scales are applied in f32. The error against decode-then-multiply
// is that of the rounded activations: at most sum over runs of scale / 2 * |w|. For exact products decode the
// weights and use gemm.
#pragma once

#include <cstddef>
#include <cstdint>

#include "rlx/backend/cpu/kernels/gemm.h"
#include "rlx/base/pool.h"
#include "rlx/quant/format.h"

namespace rlx::cpu {

enum class QuantKind : uint8_t { q4_0, q8_0, q4_k, q6_k };

/// Weights [n, k] repacked for the current level: the rows of one vector of lanes are interleaved in words of
/// four bytes, so that a vector load brings the same four columns of each row. Codes and scales are unchanged
/// and the size is that of the file, up to 3 % for q4_k and the padding of n to whole vectors.
class QuantMatrix {
 public:
  QuantMatrix() = default;
  /// Null when the format has no packed product; such weights are decoded and multiplied by gemm.
  static const QuantKind* kind_of(const quant::BlockFormat&);
  /// `rows`: n rows of encoded blocks, one after the other. k must be whole blocks.
  static QuantMatrix pack(Team, const quant::BlockFormat&, const std::byte* rows, int64_t n, int64_t k);

  int64_t n() const { return n_; }
  int64_t k() const { return k_; }
  QuantKind kind() const { return kind_; }
  int lanes() const { return lanes_; }
  size_t bytes() const { return size_; }
  const std::byte* data() const { return bytes_.get(); }
  /// The encoded blocks of one row, bit for bit as they were packed.
  void unpack_row(int64_t row, std::byte* out) const;

 private:
  int64_t n_ = 0, k_ = 0;
  QuantKind kind_ = QuantKind::q4_0;
  int lanes_ = 0;
  size_t size_ = 0;
  AlignedBytes bytes_;
};

struct QuantProduct {
  int64_t m = 0;
  const float* x = nullptr;
  int64_t x_stride = 0;
  const QuantMatrix* w = nullptr;
  float* y = nullptr;
  int64_t y_stride = 0;
};
size_t quant_product_workspace(const QuantProduct&);
void quant_product(Team, const QuantProduct&, std::byte* workspace);

/// Rows of x in 8 bits, as the level wants them.
struct QuantRows {
  std::byte* codes;  // [m][k / 4] words
  float* scales;     // [m][k / 32]
  int32_t* sums;     // [m][k / 16], sums of codes
  int64_t m, k;
};

struct QuantProductKernels {
  int lanes;          // rows of w in a group
  size_t word_bytes;  // of four codes of x
  void (*round_rows)(const float* x, int64_t x_stride, const QuantRows&, int64_t begin, int64_t end);
  /// Groups [begin, end) of w times all rows of x.
  void (*multiply)(const QuantProduct&, const QuantRows&, int64_t begin, int64_t end);
};

}  // namespace rlx::cpu
