// What the kernels of dense linear algebra share: their numbers, triangular solves and products in place.
#pragma once

#include "rlx/backend/cuda/nodes/families.h"

namespace rlx::cuda {

/// Where the elements of the matrices of a batch lie, as kernels take it (kernels/matrix_numbers.h).
struct Lies {
  int64_t row = 0, column = 1, batch = 0;
};

/// The type in which matrices of t are computed with, and its text: f32 for narrower ones.
DType matrix_type(DType t);
/// What stands before the text of a kernel: types X in memory and W of numbers, with what is done with them.
std::string matrix_numbers(DType memory, DType wide);

/// Float or c64, row-major; why not otherwise.
Support accepts_matrices(const Request&);

/// Bytes of shared memory for the matrix of a block: what it may have on this processor less what kernels declare
/// themselves.
size_t block_memory(const Device&);
/// Threads of a block for matrices of n rows, a warp for each row at a time.
int threads_for_rows(int64_t n);

/// The sizes of square matrices a[.., n, n] in a batch, and of right sides with k columns each.
struct Systems {
  int64_t n = 0, k = 0, batch = 0;
  static Systems of(const Shape& a);
  static Systems of(const Shape& a, const Shape& b);
};

/// L X = B for triangular matrices (kernels/substitute.h). `a` and `b` name the types in memory, "X" or "W".
class Substitution {
 public:
  struct Options {
    std::string_view a = "W", b = "W";
    bool unit = false, conjugate = false, result = false;
  };
  struct Where {
    const void* a = nullptr;
    Lies a_lies;
    const void* b = nullptr;
    Lies b_lies;
    void* x = nullptr;  // W; may be b
    Lies x_lies;
    void* y = nullptr;  // X, where a result is asked for
    Lies y_lies;
  };
  Substitution(const Device&, DType memory, DType wide, const Options&);
  /// `backwards`: the strides walk the matrix from its last row on; a zero on its diagonal is told with its own row.
  void operator()(const Stream&, int64_t n, int64_t k, int64_t batch, const Where&, bool backwards,
                  uint64_t fault) const;

 private:
  FunctionRef kernel_;
};

/// C <- C - A B for matrices of W, B conjugated when asked.
class Subtraction {
 public:
  struct Matrix {
    void* at = nullptr;
    Lies lies;
  };
  Subtraction(const Device&, DType wide, bool conjugate);
  void operator()(const Stream&, int64_t m, int64_t n, int64_t k, int64_t batch, const Matrix& a,
                  const Matrix& b, const Matrix& c) const;

 private:
  FunctionRef kernel_;
  size_t bytes_;  // of an element
};

/// Places in the workspace of a step, one behind the other.
class Places {
 public:
  size_t take(int64_t elements, size_t bytes) {
    const size_t at = used_;
    used_ += (size_t(elements) * bytes + 255) / 256 * 256;
    return at;
  }
  size_t bytes() const { return used_; }

 private:
  size_t used_ = 0;
};

}  // namespace rlx::cuda
