// How the box of a region is spread over threads.
#pragma once

#include "rlx/region/region.h"

namespace rlx::cuda {

enum class Spread : uint8_t {
  elements,  // no reductions: a thread for each few neighbouring elements
  warp,      // a warp, or a part of it, for each row
  block,     // a block for each row
  columns,   // a thread for each row, rows being neighbours in memory; threadIdx.y shares the columns
  split,     // as block or columns, but several blocks share a row; a second kernel joins what they found
};

struct Schedule {
  Spread spread = Spread::elements;
  bool threads_along_rows = false;  // columns, and split of that kind
  int vector = 1;                   // neighbouring columns that a thread handles together
  int threads = 256;                // of a block
  int lanes = 1;                    // threads that share a row (of one block)
  int rounds = 1;                   // passes of the lanes over the columns of a row, or of a part
  int64_t splits = 1;               // blocks that share a row
  bool in_registers = false;        // scratch rows and inputs of several phases stay in registers
  int rows_per_block = 1;
  int row_vector = 1;  // neighbouring rows that a thread handles together, where threads go along the rows

  std::string text() const;
};

/// `aligned`: addresses allow vectors.
Schedule schedule_of(const region::Region&, bool aligned);

/// A block of so many threads for each row, wherever the region's elements lie.
Schedule block_schedule(const region::Region&, int threads, bool aligned);

/// A warp for each row, so many to a block; what several phases read stays in registers, however much it is.
Schedule warp_schedule(const region::Region&, int warps, bool aligned);

/// Whether element e of the box, counted row by row, is element e of the argument.
bool is_dense(const region::Region&, const region::Argument&);

/// Whether an argument is read or written as vectors of `width` columns.
bool is_vector(const region::Region&, const region::Argument&, int width);
/// The same for vectors of `width` rows, at one column.
bool is_row_vector(const region::Region&, const region::Argument&, int width);
/// Elements of an argument that a thread reads or writes together: its address must be a multiple of their size.
int together(const region::Region&, const region::Argument&, const Schedule&);

}  // namespace rlx::cuda
