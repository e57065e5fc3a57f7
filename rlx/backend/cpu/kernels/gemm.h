// Matrix products C[m, n] = epilogue(A[m, k] B[k, n]), accumulated in f32 (f64 for f64, c64 for c64).
//
// Weights are packed once (PackedMatrix) and used by many products; a product of two activations packs B into
// its workspace. Element (i, j) of an operand lies at data[i * row_stride + j * column_stride], so transposed
// operands are a choice of strides. Every element of C is one chain of multiply-adds in the order of k,
// whatever the number of threads and the tiling: results are bit-equal between them at one level. C overlaps
// neither A nor B: rows of A are read in place where their layout allows it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "rlx/backend/cpu/kernels/epilogue.h"
#include "rlx/backend/cpu/kernels/gemm_split.h"
#include "rlx/base/aligned.h"
#include "rlx/base/dtype.h"
#include "rlx/base/pool.h"

namespace rlx::cpu {

struct Matrix {
  const void* data = nullptr;
  DType dtype = DType::f32;
  int64_t row_stride = 0, column_stride = 1;  // in elements
};

/// B in the order the kernels read it: panels of `panel` columns, each [k][panel], the last one padded with
/// zeros. Valid for the level it was packed at.
class PackedMatrix {
 public:
  PackedMatrix() = default;
  /// f32, f16, bf16 sources are stored as `stored` (f32, f16 or bf16); f64 and c64 as themselves.
  static PackedMatrix pack(Team, const Matrix& b, int64_t k, int64_t n, DType stored);
  /// Two matrices of one shape whose panels alternate, for the `gate` step.
  static PackedMatrix pack_pair(Team, const Matrix& b, const Matrix& second, int64_t k, int64_t n,
                                DType stored);
  /// From the bytes of one that was packed at this level; so many that they fit.
  static PackedMatrix from_bytes(Team, int64_t k, int64_t n, DType stored, std::span<const std::byte> bytes);
  /// Matrices of one shape one behind the other in one piece of memory, yet to be filled; all of it.
  static std::vector<PackedMatrix> in_a_row(int64_t count, int64_t k, int64_t n, DType stored);
  static size_t bytes_in_a_row(int64_t count, int64_t k, int64_t n, DType stored);
  static std::span<std::byte> contents(std::span<const PackedMatrix>);
  void fill(Team, const Matrix& b);
  /// Changes with the order of the bytes at any level.
  static constexpr int kLayoutVersion = 1;
  /// Sizes without contents: stands for a matrix that is packed later, in gemm_workspace.
  static PackedMatrix described(int64_t k, int64_t n, DType stored, bool paired = false);

  int64_t k() const { return k_; }
  int64_t n() const { return n_; }
  bool paired() const { return paired_; }
  DType dtype() const { return dtype_; }
  int panel() const { return panel_; }
  const std::byte* data() const { return bytes_.get(); }
  size_t bytes() const { return size_; }

 private:
  static PackedMatrix allocate(int64_t k, int64_t n, DType stored, bool paired);

  int64_t k_ = 0, n_ = 0;
  DType dtype_ = DType::f32;
  int panel_ = 0;
  bool paired_ = false;
  size_t size_ = 0;
  std::shared_ptr<std::byte> bytes_;
};

struct Gemm {
  int64_t m = 0, n = 0, k = 0;
  int64_t batch = 1;
  Matrix a;
  int64_t a_batch_stride = 0;  // 0: the same A for every product of the batch
  // One of the two:
  const PackedMatrix* packed_b = nullptr;
  Matrix b;
  int64_t b_batch_stride = 0;
  // Of a grouped product (experts): rows are sorted by group, and group g multiplies with packed_b[g], or
  // with the matrix at b + g * b_batch_stride. Steps of the epilogue take their data at g * batch_stride.
  RowGroups groups;
  void* c = nullptr;
  DType c_dtype = DType::f32;  // f32, f16, bf16; f64 and c64 with such operands
  int64_t c_row_stride = 0;
  int64_t c_batch_stride = 0;
  Epilogue epilogue;  // f32 accumulation only
};

/// Bytes of scratch memory `gemm` needs; 64-byte alignment.
size_t gemm_workspace(const Gemm&, int threads);
void gemm(Team, const Gemm&, std::byte* workspace);

/// Throws unless the groups are the rows 0 .. rows in order.
void check_groups(const RowGroups&, int64_t rows);
/// The stable order of rows by their group: row order[i] of the input comes i-th; offsets is [groups + 1].
void group_rows(const int64_t* ids, int64_t rows, int64_t groups, int64_t* offsets, int64_t* order);

// ---- what a level provides ----

/// Rows [row0, row0 + rows) of one product times `panels` panels of B.
struct GemmBlock {
  int64_t k = 0;
  const void* a = nullptr;  // packed tiles [tile][k][tile_rows], the last tile with its own row count, or
  int64_t a_row_bytes = 0;  // unless 0, rows that lie so far apart, their numbers neighbours
  int tile_rows = 0;
  int64_t rows = 0;
  const void* b = nullptr;  // first panel
  int64_t panels = 0;
  bool paired = false;
  DType b_dtype = DType::f32;
  int64_t row0 = 0, column0 = 0;  // of the result, for the epilogue
  int64_t columns = 0;            // valid result columns from column0 on
  void* c = nullptr;              // element (0, 0) of the whole result
  DType c_dtype = DType::f32;
  int64_t c_row_stride = 0;
  const Epilogue* epilogue = nullptr;
  int64_t batch_index = 0;
  void* scratch = nullptr;  // sums of `rows` for the panels of one pass, scratch_bytes at most
};

struct GemmKernels {
  int max_tile_rows, panel;  // f32, f16, bf16; c64 uses panel / 2 complex columns
  int max_tile_rows_f64, panel_f64;
  int panels_together[16];  // panels one pass over a tile of i + 1 rows covers
  int64_t max_block_rows;   // rows a block may have
  int64_t depth;            // of a panel that stays near for all rows of a block
  int64_t chunk_bytes;      // of panels that stay in L2 for all tiles; 0: one panel, in L1
  int64_t max_panels;       // that one pass may cover
  size_t scratch_bytes;     // of the largest block
  void (*block_f32)(const GemmBlock&);
  void (*block_f64)(const GemmBlock&);
  void (*block_c64)(const GemmBlock&);
  /// A whole product of f32 whose B is packed or has rows of neighbours; scratch for one panel of its rows.
  void (*small_f32)(const Gemm&, void* scratch);
  /// rows x k of A into tiles; c64 rows become pairs (real, imaginary).
  void (*pack_a)(const Matrix& a, int64_t row0, int64_t rows, int64_t k, int tile_rows, void* out);
  /// One panel of B: columns [column0, column0 + columns), columns <= panel; c64: real columns, then
  /// imaginary.
  void (*pack_b)(const Matrix& b, int64_t column0, int64_t columns, int64_t k, DType stored, void* out);
};

}  // namespace rlx::cpu
