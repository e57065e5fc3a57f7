#include "rlx/backend/cuda/driver/blas.h"

#include <cstdlib>
#include <map>
#include <mutex>

#include "rlx/backend/cuda/driver/fastest.h"
#include "rlx/backend/cuda/driver/library.h"
#include "rlx/base/error.h"
#include "rlx/base/options.h"

namespace rlx::cuda {
namespace {

using Opaque = void*;

// cublasLtMatmulAlgo_t and cublasLtMatmulHeuristicResult_t.
struct Algorithm {
  uint64_t data[8];
};
struct Candidate {
  Algorithm algorithm;
  size_t workspace;
  int status;
  float waves;
  int reserved[4];
};

struct Blas {
  size_t (*GetVersion)();
  int (*Create)(Opaque*);
  int (*MatmulDescCreate)(Opaque*, int compute_type, int scale_type);
  int (*MatmulDescDestroy)(Opaque);
  int (*MatmulDescSetAttribute)(Opaque, int attribute, const void*, size_t);
  int (*MatrixLayoutCreate)(Opaque*, int type, uint64_t rows, uint64_t columns, int64_t leading);
  int (*MatrixLayoutDestroy)(Opaque);
  int (*MatrixLayoutSetAttribute)(Opaque, int attribute, const void*, size_t);
  int (*MatmulPreferenceCreate)(Opaque*);
  int (*MatmulPreferenceDestroy)(Opaque);
  int (*MatmulPreferenceSetAttribute)(Opaque, int attribute, const void*, size_t);
  int (*MatmulAlgoGetHeuristic)(Opaque handle, Opaque desc, Opaque a, Opaque b, Opaque c, Opaque d,
                                Opaque preference, int wanted, Candidate*, int* found);
  int (*Matmul)(Opaque handle, Opaque desc, const void* alpha, const void* a, Opaque a_layout, const void* b,
                Opaque b_layout, const void* beta, const void* c, Opaque c_layout, void* d, Opaque d_layout,
                const Algorithm*, void* workspace, size_t workspace_bytes, Stream_*);
};

// Values of cublasComputeType_t, cudaDataType and of the attributes.
constexpr int kCompute32F = 68, kCompute64F = 70, kComputeTf32 = 77;
constexpr int kReal32F = 0, kReal64F = 1, kReal16F = 2, kReal16BF = 14;
constexpr int kTransA = 3, kTransB = 4;
constexpr int kBatchCount = 5, kBatchOffset = 6;
constexpr int kMaxWorkspace = 1, kMinAlignmentA = 5;
constexpr int kTransposed = 1;
constexpr uint64_t kWorkspaceBytes = 32 << 20;

struct Opened {
  Blas functions{};
  std::string problem;
};

const Opened& opened() {
  static const Opened o = [] {
    Opened made;
    Blas& f = made.functions;
    const Library library({"libcublasLt.so.13", "libcublasLt.so.12", "libcublasLt.so.11"});
    if (!library.found()) {
      made.problem = cat("no cuBLASLt: ", library.reason());
      return made;
    }
    std::vector<std::string> missing;
    library.load(f.GetVersion, "cublasLtGetVersion", missing);
    library.load(f.Create, "cublasLtCreate", missing);
    library.load(f.MatmulDescCreate, "cublasLtMatmulDescCreate", missing);
    library.load(f.MatmulDescDestroy, "cublasLtMatmulDescDestroy", missing);
    library.load(f.MatmulDescSetAttribute, "cublasLtMatmulDescSetAttribute", missing);
    library.load(f.MatrixLayoutCreate, "cublasLtMatrixLayoutCreate", missing);
    library.load(f.MatrixLayoutDestroy, "cublasLtMatrixLayoutDestroy", missing);
    library.load(f.MatrixLayoutSetAttribute, "cublasLtMatrixLayoutSetAttribute", missing);
    library.load(f.MatmulPreferenceCreate, "cublasLtMatmulPreferenceCreate", missing);
    library.load(f.MatmulPreferenceDestroy, "cublasLtMatmulPreferenceDestroy", missing);
    library.load(f.MatmulPreferenceSetAttribute, "cublasLtMatmulPreferenceSetAttribute", missing);
    library.load(f.MatmulAlgoGetHeuristic, "cublasLtMatmulAlgoGetHeuristic", missing);
    library.load(f.Matmul, "cublasLtMatmul", missing);
    if (!missing.empty()) made.problem = cat("cuBLASLt has no ", join(missing));
    return made;
  }();
  return o;
}

void blas_check(int status, const char* what) {
  if (status != 0) throw environment_error("cuda: cuBLASLt: ", what, " failed with status ", status);
}

Opaque handle(const Gpu& gpu) {
  static std::mutex mutex;
  static std::map<const Gpu*, Opaque> handles;
  const std::lock_guard lock(mutex);
  Opaque& h = handles[&gpu];
  if (!h) {
    gpu.use();
    blas_check(opened().functions.Create(&h), "opening");
  }
  return h;
}

int type_of(DType t) {
  return t == DType::f64 ? kReal64F : t == DType::f16 ? kReal16F : t == DType::bf16 ? kReal16BF : kReal32F;
}

int compute_type_of(DType t) {
  if (t == DType::f64) return kCompute64F;
  return t == DType::f32 && option("RLX_CUDA_TF32").value_or("0") == "1" ? kComputeTf32 : kCompute32F;
}

// What the strides keep of an alignment to 16 bytes.
uint32_t alignment_of(const BlasMatrix& x, DType t) {
  uint32_t bytes = 16;
  const auto fit = [&](int64_t stride) {
    while (bytes > dtype_size(t) && stride * int64_t(dtype_size(t)) % bytes != 0) bytes /= 2;
  };
  fit(x.leading);
  fit(x.batch_stride);
  return bytes;
}

// The heuristic's first answer is mostly the best; what large products gain by trying others is worth some milliseconds.
constexpr int kCandidates = 8;
constexpr int64_t kFewRows = 64;  // of which the weights come from memory, not from a cache
constexpr double kLargeProduct = 1e8, kMostBytes = 3e9;

size_t bytes_of(const BlasProduct& p, const BlasMatrix& x, int64_t rows, int64_t columns) {
  const int64_t runs = x.transposed ? columns : rows;
  return size_t(x.leading * runs + std::abs(x.batch_stride) * (p.batch - 1)) * dtype_size(p.dtype);
}

bool is_worth_timing(const BlasProduct& p) {
  const double work = 2.0 * double(p.m) * double(p.n) * double(p.k) * double(p.batch);
  const double bytes = double(bytes_of(p, p.a, p.m, p.k)) + double(bytes_of(p, p.b, p.k, p.n)) +
                       double(bytes_of(p, p.c, p.m, p.n));
  const bool heavy = work >= kLargeProduct || bytes >= 4e6;
  return heavy && bytes <= kMostBytes && p.dtype != DType::f64;
}

std::string key_of(const BlasProduct& p) {
  const auto matrix = [](const BlasMatrix& x) {
    return cat(x.transposed ? "t" : "n", x.leading, "+", x.batch_stride);
  };
  return cat("product ", p.dtype, compute_type_of(p.dtype) == kComputeTf32 ? " (tf32) " : " ", p.m, " ", p.n,
             " ", p.k, " x", p.batch, " ", matrix(p.a), " ", matrix(p.b), " ", matrix(p.c), " of ",
             opened().functions.GetVersion());
}

}  // namespace

// The library says 130100 for 13.1.0.
std::string blas_version() {
  if (!opened().problem.empty()) return opened().problem;
  const size_t version = opened().functions.GetVersion();
  return cat("cuBLASLt ", version / 10000, ".", version % 10000 / 100);
}

struct BlasPlan::Descriptors {
  Opaque handle = nullptr, product = nullptr, a = nullptr, b = nullptr, c = nullptr;
  Algorithm algorithm{};
  ~Descriptors() {
    const Blas& f = opened().functions;
    if (product) f.MatmulDescDestroy(product);
    for (const Opaque layout : {a, b, c}) {
      if (layout) f.MatrixLayoutDestroy(layout);
    }
  }
};

BlasPlan::~BlasPlan() = default;

// The library counts by columns. A row-major matrix is its transpose read by columns, so it is given c^T =
// b^T a^T.
std::shared_ptr<const BlasPlan> BlasPlan::make(const Gpu& gpu, const BlasProduct& p) {
  if (!opened().problem.empty()) return nullptr;
  const Blas& f = opened().functions;
  std::shared_ptr<BlasPlan> plan(new BlasPlan());
  plan->wide_ = p.dtype == DType::f64;
  plan->d_ = std::make_unique<Descriptors>();
  Descriptors& d = *plan->d_;
  d.handle = handle(gpu);
  const int type = type_of(p.dtype);
  blas_check(f.MatmulDescCreate(&d.product, compute_type_of(p.dtype), plan->wide_ ? kReal64F : kReal32F),
             "describing a product");
  const int first = p.b.transposed ? kTransposed : 0, second = p.a.transposed ? kTransposed : 0;
  f.MatmulDescSetAttribute(d.product, kTransA, &first, sizeof first);
  f.MatmulDescSetAttribute(d.product, kTransB, &second, sizeof second);
  const auto layout = [&](Opaque* out, const BlasMatrix& x, int64_t rows, int64_t columns) {
    const bool t = x.transposed;
    blas_check(f.MatrixLayoutCreate(out, type, uint64_t(t ? rows : columns), uint64_t(t ? columns : rows),
                                    x.leading),
               "describing a matrix");
    const int32_t batch = int32_t(p.batch);
    f.MatrixLayoutSetAttribute(*out, kBatchCount, &batch, sizeof batch);
    f.MatrixLayoutSetAttribute(*out, kBatchOffset, &x.batch_stride, sizeof x.batch_stride);
  };
  layout(&d.a, p.b, p.k, p.n);
  layout(&d.b, p.a, p.m, p.k);
  layout(&d.c, p.c, p.m, p.n);
  Opaque preference = nullptr;
  blas_check(f.MatmulPreferenceCreate(&preference), "stating a preference");
  f.MatmulPreferenceSetAttribute(preference, kMaxWorkspace, &kWorkspaceBytes, sizeof kWorkspaceBytes);
  const BlasMatrix* const matrices[] = {&p.a, &p.b, &p.c};
  for (int i = 0; i < 3; ++i) plan->alignment_[i] = alignment_of(*matrices[i], p.dtype);
  const uint32_t* const order[] = {&plan->alignment_[1], &plan->alignment_[0], &plan->alignment_[2],
                                   &plan->alignment_[2]};
  for (int i = 0; i < 4; ++i)
    f.MatmulPreferenceSetAttribute(preference, kMinAlignmentA + i, order[i], sizeof *order[i]);
  Candidate candidates[kCandidates] = {};
  int found = 0;
  const int status = f.MatmulAlgoGetHeuristic(d.handle, d.product, d.a, d.b, d.c, d.c, preference,
                                              kCandidates, candidates, &found);
  f.MatmulPreferenceDestroy(preference);
  if (status != 0 || found == 0) return nullptr;
  const auto take = [&](const Candidate& c) { d.algorithm = c.algorithm, plan->workspace_ = c.workspace; };
  take(candidates[0]);
  if (found == 1 || !is_worth_timing(p)) return plan;
  try {
    const backend::Memory& memory = gpu.memory();
    const backend::Block a(memory, bytes_of(p, p.a, p.m, p.k)), b(memory, bytes_of(p, p.b, p.k, p.n)),
        c(memory, bytes_of(p, p.c, p.m, p.n)), workspace(memory, kWorkspaceBytes);
    const int best = fastest(gpu, key_of(p), found, p.m <= kFewRows ? Trials::cold : Trials::warm, {},
                             [&](Stream_* stream, int way) {
                               take(candidates[way]);
                               plan->run(stream, a.get(), b.get(), c.get(), workspace.get());
                             });
    take(candidates[best]);
  } catch (const Error&) {
    take(candidates[0]);  // too little memory to try
  }
  return plan;
}

bool BlasPlan::fits(const void* a, const void* b, const void* c) const {
  const void* const addresses[] = {a, b, c};
  for (int i = 0; i < 3; ++i) {
    if (reinterpret_cast<uintptr_t>(addresses[i]) % alignment_[i] != 0) return false;
  }
  return true;
}

void BlasPlan::run(Stream_* stream, const void* a, const void* b, void* c, void* workspace) const {
  const float one = 1, zero = 0;
  const double wide_one = 1, wide_zero = 0;
  const void* const alpha = wide_ ? static_cast<const void*>(&wide_one) : &one;
  const void* const beta = wide_ ? static_cast<const void*>(&wide_zero) : &zero;
  const Descriptors& d = *d_;
  blas_check(opened().functions.Matmul(d.handle, d.product, alpha, b, d.a, a, d.b, beta, c, d.c, c, d.c,
                                       &d.algorithm, workspace, workspace_, stream),
             "a product");
}

}  // namespace rlx::cuda
