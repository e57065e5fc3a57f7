// Products of a few rows on kernels of their own.
#pragma once

#include <optional>

#include "rlx/backend/cuda/nodes/families.h"

namespace rlx::cuda {

/// c [m, n] = a [m, k] b [k, n]; strides in elements. Rows of a and c are runs.
struct FewRows {
  DType dtype = DType::f32;
  int64_t m = 0, n = 0, k = 0;
  int64_t a_row = 0, c_row = 0;
  int64_t b_row = 0, b_column = 0;
  bool b_is_fixed =
      false;  // no kernel of the program makes it: it may be read before those in front have ended
};

/// How `column_products` (kernels/few_rows.h) gets at its operands.
struct ColumnHooks {
  std::string text;  // Params, weights_of, row_of, make_rows, finish
  int sides = 1;
  bool wide = true, kept = false;
  int threads = 256;  // of the blocks that make_rows is written for
};
struct ColumnProducts {
  FunctionRef function;  // takes Params first
  Grid grid, block{256};
  size_t shared = 0;
};
/// Bytes of shared memory that a block of this processor may have.
int64_t shared_memory_of(const std::string& architecture);
inline int64_t shared_memory_of(const Device& d) { return shared_memory_of(d.functions().architecture()); }
/// The threads of a block for packed weights [columns, row_bytes] of each side: more where they are worth streaming through shared memory
/// (kernels/streamed_rows.h).
int packed_block_threads(const Device&, int64_t row_bytes, int64_t columns, int sides);
/// `text` holds what stands before kStreamedRows but sizes of blocks and rings; `extra` bytes lie behind the rings.
ColumnProducts streamed_rows(const Device&, const FewRows&, const ColumnHooks&, std::string text,
                             int64_t chunk_bytes, size_t extra);
/// Of `p` the type and the sizes count.
ColumnProducts column_products(const Device&, const FewRows& p, const ColumnHooks&);
/// Products of more rows are none of few.
int64_t most_few_rows();

class FewRowsKernel {
 public:
  /// Nothing where another kernel is to be taken: many rows, odd sizes, other types, a matrix without runs.
  static std::optional<FewRowsKernel> make(const Device&, const FewRows&);

  /// Whether these addresses are multiples of what it reads at once.
  bool fits(const void* a, const void* b) const {
    return (reinterpret_cast<uintptr_t>(a) | reinterpret_cast<uintptr_t>(b)) % 16 == 0;
  }
  void run(const Stream&, const void* a, const void* b, void* c) const;

 private:
  FewRows p_;
  ColumnProducts kernel_;
};

}  // namespace rlx::cuda
