// Products of 8-bit codes: sums[i, j] = sum over k of (a[i, k] - a_zero)(b[k, j] - b_zero[j]) + bias[j],
// exact in i32 (modulo 2^32), then written as they are, requantised to 8 bits, or scaled to f32.
//
// A is u8 or i8, B is i8 and packed once. The machine multiplies unsigned by signed codes, so i8 codes of A
// are moved up by 128 together with their zero point, and with a' and z the moved ones
//   sums = a' b - z (column sums of b - k b_zero) - b_zero (row sums of a') + bias
// which needs the column sums once per matrix and the row sums only where b_zero is not 0. Results do not
// depend on level, threads or tiling.
#pragma once

#include "rlx/backend/cpu/kernels/gemm.h"
#include "rlx/backend/cpu/kernels/packed_memory.h"

namespace rlx::cpu {

/// B as the current level reads it: panels [k / group][panel][group] of codes, padded with zeros.
class PackedInt8 {
 public:
  PackedInt8() = default;
  /// `zero` is the code of 0 in all columns; `zeros` [n], where given, that of each column.
  /// In `lent` memory of bytes_of, if given.
  static PackedInt8 pack(Team, const Matrix& b, int64_t k, int64_t n, int32_t zero = 0,
                         const int32_t* zeros = nullptr, std::byte* lent = nullptr);

  /// From the bytes of one that was packed at this level with the same kind of zero points; so many that they fit.
  static PackedInt8 from_bytes(int64_t k, int64_t n, bool has_zeros, std::span<const std::byte> bytes);
  static size_t bytes_of(int64_t k, int64_t n, bool has_zeros) { return sized(k, n, has_zeros).size_; }
  /// Changes with the order of the bytes at any level.
  static constexpr int kLayoutVersion = 1;

  int64_t k() const { return k_; }
  int64_t n() const { return n_; }
  int panel() const { return panel_; }
  int group() const { return group_; }
  size_t bytes() const { return size_; }
  const std::byte* data() const { return bytes_.get(); }
  /// [n padded to whole panels]: column sums less k times the zero point.
  const int32_t* centred_sums() const { return centred_; }
  /// [n padded to whole panels], or null where all are 0.
  const int32_t* zeros() const { return zeros_; }

 private:
  static PackedInt8 sized(int64_t k, int64_t n, bool has_zeros);
  void allocate(bool has_zeros, std::byte* lent = nullptr);

  int64_t k_ = 0, n_ = 0;
  int panel_ = 0, group_ = 0;
  size_t size_ = 0;
  PackedMemory bytes_;
  int32_t *centred_ = nullptr, *zeros_ = nullptr;  // into bytes_
};

/// code = round(sum * multiplier) + zero_point, saturated; in f64, so exactly rounded sums of any size.
struct Requantize {
  double multiplier = 1;
  const double* multipliers = nullptr;  // [n], one for each column instead
  int32_t zero_point = 0;
  bool half_away = false;  // halves away from zero: floor(|v| + 0.5) with the sign of v; else to even
};

struct GemmInt8 {
  int64_t m = 0, n = 0, k = 0;
  Matrix a;  // u8 or i8
  int32_t a_zero = 0;
  const PackedInt8* b = nullptr;
  RowGroups groups;               // rows sorted by group, group g with b[g]; see Gemm
  const int32_t* bias = nullptr;  // [n], or [groups][n]
  void* c = nullptr;
  DType c_dtype = DType::i32;  // i32; i8 and u8 requantised; f32, f16, bf16 through the epilogue
  int64_t c_row_stride = 0;
  Requantize requantize;
  Epilogue epilogue;  // on the sums as f32; column_scale and row_scale bring the scales of b and a
};

/// Bytes of scratch memory `gemm_int8` needs; 64-byte alignment.
size_t gemm_int8_workspace(const GemmInt8&, int threads);
void gemm_int8(Team, const GemmInt8&, std::byte* workspace);

// ---- what a level provides ----

/// Packed rows from row0 on times panels [first, last) of b.
struct GemmInt8Block {
  const GemmInt8* product = nullptr;
  const PackedInt8* b = nullptr;
  int64_t group = 0;
  const void* a = nullptr;            // packed tiles, or
  int64_t a_row_bytes = 0;            // unless 0, rows of u8 codes as they lie
  const int32_t* row_sums = nullptr;  // of those rows; null where not needed
  int64_t row0 = 0, rows = 0;
  int tile_rows = 1;
  int64_t first = 0, last = 0;
  void* scratch = nullptr;
};

struct GemmInt8Kernels {
  int max_tile_rows, panel;
  int group;                // codes of one row in a word
  int panels_together[16];  // see GemmKernels
  int64_t max_block_rows, depth;
  size_t scratch_bytes;
  void (*block)(const GemmInt8Block&);
  /// rows x k of A into tiles of words of four bytes, moved to unsigned; row_sums of them unless null.
  void (*pack_a)(const Matrix& a, int64_t row0, int64_t rows, int64_t k, int tile_rows, void* out,
                 int32_t* row_sums);
  /// One panel of B and the sums of its columns [panel].
  void (*pack_b)(const Matrix& b, int64_t column0, int64_t columns, int64_t k, void* out, int32_t* sums);
};

}  // namespace rlx::cpu
