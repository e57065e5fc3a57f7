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

/// Params of a launch as words of a phase.
std::vector<uint64_t> words_of(std::span<const std::byte* const> params);

/// How `column_products` (kernels/few_rows.h) gets at its operands.
struct ColumnHooks {
  std::string text;  // Params, weights_of, row_of, make_rows, finish
  int sides = 1;
  bool wide = true, kept = false;
  bool asks_ahead = false;  // the text says what `finish` needs from memory
  int threads = 256;        // of the blocks that make_rows is written for
};
/// The whole of it.
std::string hooks_text(const ColumnHooks&);
struct ColumnProducts {
  FunctionRef function;  // takes Params first
  Grid grid, block{256};
  size_t shared = 0;
};
/// The threads of a block for packed weights [columns, row_bytes] of each side: more where they are worth streaming through shared memory
/// (kernels/streamed_rows.h).
int packed_block_threads(const Device&, int64_t row_bytes, int64_t columns, int sides);
/// `text` holds what stands before kStreamedRows but sizes of blocks and rings; `extra` bytes lie behind the rings.
ColumnProducts streamed_rows(const Device&, const FewRows&, const ColumnHooks&, std::string text,
                             int64_t chunk_bytes, size_t extra);
/// Of `p` the type and the sizes count.
ColumnProducts column_products(const Device&, const FewRows& p, const ColumnHooks&);
/// Such products as a phase of a chain, or null where they are none: weights of `row_bytes` a column, in pieces of `chunk_bytes`. `text` and `extra` are meant as for streamed_rows, and make_rows
/// is written for kChainThreads.
PhaseRef product_phase(const Device&, const FewRows&, const ColumnHooks&, const std::string& text,
                       int64_t row_bytes, int64_t chunk_bytes, size_t extra);
/// The same for weights as they are.
PhaseRef column_phase(const Device&, const FewRows&, const ColumnHooks&);
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
  /// Queues it, or lets it wait for the steps behind it.
  void run(const Launch&, const void* a, const void* b, void* c) const;

 private:
  FewRows p_;
  ColumnProducts kernel_;
  PhaseRef phase_;
};

}  // namespace rlx::cuda
