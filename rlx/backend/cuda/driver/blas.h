// Matrix products of NVIDIA's cuBLASLt, opened at the first product.
#pragma once

#include <memory>
#include <string>

#include "rlx/backend/cuda/driver/gpu.h"
#include "rlx/base/dtype.h"

namespace rlx::cuda {

/// "cuBLASLt 13.1", or why there is none.
std::string blas_version();

/// A matrix in memory: rows x columns with one of the two strides 1.
struct BlasMatrix {
  bool transposed = false;  // its columns, not its rows, are runs
  int64_t leading = 0;      // from run to run, in elements
  int64_t batch_stride = 0;
};

/// c [m, n] = a [m, k] b [k, n], all of one type, `batch` times; c is row-major. Floats narrower than f32
/// are summed in f32; products of f32 are true f32 unless RLX_CUDA_TF32 is 1.
struct BlasProduct {
  DType dtype = DType::f32;
  int64_t m = 0, n = 0, k = 0, batch = 1;
  BlasMatrix a, b, c;
};

/// A product with its algorithm chosen. Immutable; null when the library has no algorithm for it.
class BlasPlan {
 public:
  static std::shared_ptr<const BlasPlan> make(const Gpu&, const BlasProduct&);
  ~BlasPlan();
  BlasPlan(const BlasPlan&) = delete;
  BlasPlan& operator=(const BlasPlan&) = delete;

  size_t workspace() const { return workspace_; }
  /// Whether these addresses are aligned as the algorithm needs it.
  bool fits(const void* a, const void* b, const void* c) const;
  void run(Stream_*, const void* a, const void* b, void* c, void* workspace) const;

 private:
  BlasPlan() = default;
  struct Descriptors;
  std::unique_ptr<Descriptors> d_;
  size_t workspace_ = 0;
  uint32_t alignment_[3] = {};  // of a, b, c
  bool wide_ = false;           // scalars are f64
};

}  // namespace rlx::cuda
