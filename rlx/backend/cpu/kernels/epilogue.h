// What a matrix product does to its result before it leaves the registers: a short program of steps.
#pragma once

#include <cstdint>

#include "rlx/backend/cpu/kernels/unary.h"
#include "rlx/base/dtype.h"

namespace rlx::cpu {

enum class EpilogueKind : uint8_t {
  scale,         // v *= value
  column_scale,  // v *= data[j], f32
  row_scale,     // v *= data[i], f32
  column_bias,   // v += data[j], f32
  row_bias,      // v += data[i], f32
  unary,         // v = function(v)
  add,           // v += value * data[i, j], of dtype
  multiply,      // v *= data[i, j], of dtype
  gate,          // v = function(v) * u, where u is the second product of a paired matrix
  store,         // data[i, j] = v, of dtype: a second result
};

struct EpilogueStep {
  EpilogueKind kind;
  Unary function = Unary::identity;
  DType dtype = DType::f32;  // f32, f16 or bf16
  float value = 1;
  void* data = nullptr;      // read only, except by `store`
  int64_t row_stride = 0;    // in elements; the columns of a row are neighbours
  int64_t batch_stride = 0;  // of columns and matrices, in batched and grouped products
};

/// Steps run in order on the f32 accumulators; the result is then converted to the type of C.
struct Epilogue {
  static constexpr int kMaxSteps = 8;
  EpilogueStep steps[kMaxSteps];
  int count = 0;

  Epilogue& then(const EpilogueStep& step);  // throws when the program is full
};

}  // namespace rlx::cpu
