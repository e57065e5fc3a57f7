// Products with block-quantised weights: y[m, n] = x[m, k] w[n, k]', w multiplied in its packed form.
//
// Fast form: activations are rounded to 8 bits, as llama.cpp does: x = d q with d = largest magnitude / 127 of a
// strip of 32, multiplied as f16, or of a block of 256 where w has such, in f32. The dot products of codes are
// exact integers, and block scales are applied in f32. The error against decode-then-multiply is that of the
// rounded activations: at most the sum over strips of largest |x| (1 / 254 + 2^-11) * sum |w|, for q4_1 and
// q5_1 2^-11 |least sum x| more (d sum q is kept in f16), and f32 rounding. A row of x with an infinity or a NaN
// gives NaN; strips whose largest magnitude is below 2^-120 count as zero.
// Exact form: weights are decoded to f32 and multiplied in f32, a strip of one vector of rows at a time;
// infinities and NaN go the usual way. fp8 weights have this form only.
//
// Every element of y is summed in one order whatever the number of threads, so results are bit-equal between
// them at one level.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "rlx/backend/cpu/kernels/gemm.h"
#include "rlx/backend/cpu/kernels/packed_memory.h"
#include "rlx/backend/cpu/kernels/quant/quant_layout.h"
#include "rlx/base/pool.h"
#include "rlx/quant/scheme.h"

namespace rlx::cpu {

/// Packed weights as the kernels read them.
struct QuantView {
  const std::byte* data = nullptr;
  int64_t n = 0, k = 0;
  QuantKind kind = QuantKind::q4_0;
  int64_t blocks = 0;              // per row
  int64_t block_columns = 0;       // columns of w in a block; the last one may have fewer
  int64_t block_strips = 0;        // strips they take, the end of the last one being padding
  int64_t block_bytes = 0;         // of a group
  const float* factors = nullptr;  // [n] of the rows, padded to whole groups; may be null

  int64_t strips() const { return blocks * block_strips; }
};

/// Weights [n, k] repacked for the current level: see quant_layout.h. Size is that of the file plus at most
/// 4 % (12 % for iq2_xxs, iq2_xs and 8 % for iq3_xxs, which get a bit for every sign; 22 % for tq1_0, whose
/// digits become 2-bit codes), the padding of n to whole vectors, and of blocks
/// that are no multiple of 32 (16 is one) to the next.
class QuantMatrix {
 public:
  QuantMatrix() = default;
  /// Null when the format has no packed product; such weights are decoded and multiplied by gemm.
  static const QuantKind* kind_of(const quant::BlockFormat&);
  /// `rows`: n rows of encoded blocks, one after the other. k must be whole blocks.
  /// In `lent` memory of packed_bytes, if given.
  static QuantMatrix pack(Team, const quant::BlockFormat&, const std::byte* rows, int64_t n, int64_t k,
                          std::byte* lent = nullptr);
  /// Of a format with a packed product.
  static size_t packed_bytes(const quant::BlockFormat&, int64_t n, int64_t k);
  /// W[k, n] of a scheme, any k; y is then x W.
  static QuantMatrix pack(Team, const quant::Scheme&, const quant::SchemeOperands&, int64_t k, int64_t n);

  const QuantView& view() const { return view_; }
  int64_t n() const { return view_.n; }
  int64_t k() const { return view_.k; }
  QuantKind kind() const { return view_.kind; }
  int lanes() const { return lanes_; }
  size_t bytes() const { return size_; }
  /// The encoded blocks of one row; block formats only. Bit for bit as packed, except bytes of tq1_0 that no
  /// encoder writes (several stand for the same digits) and sign bits of nvfp4 scales, which mean nothing.
  void unpack_row(int64_t row, std::byte* out) const;

 private:
  static QuantMatrix sized(QuantKind, int64_t n, int64_t k, int64_t block_columns);
  void allocate(bool factors, std::byte* lent);

  QuantView view_;
  int lanes_ = 0;
  size_t size_ = 0;
  PackedMemory bytes_;
  AlignedBytes factors_;
};

struct QuantProduct {
  int64_t m = 0;
  const float* x = nullptr;
  int64_t x_stride = 0;
  const QuantMatrix* w = nullptr;
  float* y = nullptr;
  int64_t y_stride = 0;
  bool exact = false;
};
/// Bytes of scratch memory `quant_product` needs; 64-byte alignment.
size_t quant_product_workspace(const QuantProduct&, int threads);
/// The same for the fast form of m rows with weights of k columns, before there are weights. k is a multiple of 32.
size_t rounded_rows_bytes(int64_t m, int64_t k);
void quant_product(Team, const QuantProduct&, std::byte* workspace);

/// At most so many products in one call.
inline constexpr size_t kMostQuantProducts = 8;
/// Several products of the same rows of x, the threads being started once for all of them. Weights of one kind share the rounded rows:
/// the workspace is that of one product for each kind among them that is not exact.
void quant_products(Team, std::span<const QuantProduct>, std::byte* workspace);

/// The weights in f32, [n, k] with rows `stride` apart: the values of rlx/quant, bit for bit.
void quant_decode(Team, const QuantMatrix&, float* out, int64_t stride);

// ---- what a level provides ----

/// Rows of w in a group at the level in use.
int quant_lanes();

/// Rows of x in 8 bits. Rows come in tiles of 8 (or 4, as the level has registers), the rest of them in
/// halves of that; a tile is [strip][row] records, and the tile of rows m .. begins at record m * strips.
struct QuantRows {
  const QuantView* w;
  const float* x;
  int64_t x_stride;
  int64_t m;
  std::byte* records;
};

struct QuantTile {
  int64_t row_begin, row_end;      // of x, begin a multiple of 8
  int64_t group_begin, group_end;  // of w
};

struct QuantProductKernels {
  int lanes;            // rows of w in a group
  size_t record_bytes;  // of one strip of one row of x
  void (*round_rows)(const QuantRows&, int64_t begin, int64_t end);
  void (*multiply)(const QuantRows&, const QuantTile&, float* y, int64_t y_stride);
  void (*multiply_exact)(const QuantRows&, const QuantTile&, float* y, int64_t y_stride);
  /// Rows of groups [begin, end) of w.
  void (*decode)(const QuantView&, int64_t begin, int64_t end, float* out, int64_t stride);
};

}  // namespace rlx::cpu
