// Runs an epilogue program over a tile of sums and writes it to C.
#pragma once

#include "rlx/backend/cpu/kernels/epilogue.h"
#include "rlx/backend/cpu/simd/vec.h"

namespace rlx::cpu::RLX_ISA {

struct EpilogueTile {
  float* values;        // [rows][2 vectors], rows values_stride apart, overwritten
  const float* second;  // sums of the paired matrix, or null
  int64_t rows;
  int columns;  // valid ones, at most 2 vectors
  int64_t row0, column0, batch_index;
  void* c;
  DType c_dtype;
  int64_t c_row_stride;
  int64_t values_stride = 2 * kLanes;
};

/// Runs the program from step `first` on and writes the values to C, unless they lie there already.
void finish_tile(const EpilogueTile&, const Epilogue&, int first = 0);

}  // namespace rlx::cpu::RLX_ISA
