// Factors of matrices: QR, eigenvalues of Hermitian matrices, singular values. In f64 whatever the operand's type, as
// their reference rules do: a factor of f32 that was found in f32 may differ in its third digit.
#include "rlx/backend/cuda/kernels/factor_numbers.h"
#include "rlx/backend/cuda/kernels/factor_results.h"
#include "rlx/backend/cuda/kernels/jacobi.h"
#include "rlx/backend/cuda/kernels/reflections.h"
#include "rlx/backend/cuda/kernels/scaled_columns.h"
#include "rlx/backend/cuda/nodes/element_kernel.h"
#include "rlx/backend/cuda/nodes/matrices.h"
#include "rlx/ops/linalg/eigh.h"
#include "rlx/ops/linalg/qr.h"
#include "rlx/ops/linalg/svd.h"

namespace rlx::cuda {
namespace {

constexpr size_t kDouble = sizeof(double);

// Bytes of a number in which factors are found.
size_t number_bytes(DType t) { return is_complex(t) ? 2 * kDouble : kDouble; }

struct Rectangles {
  int64_t m = 0, n = 0, k = 0, batch = 1;
  explicit Rectangles(const Shape& a) : m(a.dim(-2).value()), n(a.dim(-1).value()), k(std::min(m, n)) {
    for (int i = 0; i + 2 < a.rank(); ++i) batch *= a.dim(i).value();
  }
};

std::string constant(const char* type, const char* name, const auto& value) {
  return cat("constexpr ", type, " ", name, " = ", value, ";\n");
}
std::string constant(const char* name, bool value) {
  return constant("bool", name, value ? "true" : "false");
}

// Columns of matrices at one scale: both kernels that make them.
class ScaledColumns {
 public:
  /// work[.., count, rows] of a[height, width], each in a batch of matrices of `size` elements.
  struct Sizes {
    int64_t batch = 0, size = 0, height = 0, width = 0, rows = 0, count = 0;
    Lies lies;
  };
  enum class Change { none, conjugated, symmetric };
  ScaledColumns(const Device& device, const std::string& numbers, const Sizes& sizes, Change change)
      : p_(sizes) {
    scale_ = device.functions().get(
        {"scale", numbers + constant("int", "kScaleThreads", scale_threads()) + kScaleKernel});
    columns_ = device.functions().get(
        {"columns", numbers + constant("kSymmetric", change == Change::symmetric) +
                        constant("kConjugate", change == Change::conjugated) + kColumnsKernel});
  }
  void operator()(const Stream& s, const std::byte* a, std::byte* exponents, std::byte* work,
                  std::byte* vectors, std::byte* turned, int sweeps) const {
    (*scale_)(s.handle, {p_.batch}, {scale_threads()}, 0, a, p_.size, exponents);
    const int64_t total = p_.batch * p_.count * std::max(p_.rows, p_.count);
    (*columns_)(s.handle, blocks_for(total), {256}, 0, a, p_.lies, int(p_.height), int(p_.width),
                int(p_.rows), int(p_.count), exponents, work, vectors, turned, sweeps, total);
  }

 private:
  int scale_threads() const { return p_.size <= 1024 ? 32 : 1024; }

  Sizes p_;
  FunctionRef scale_, columns_;
};

std::string factor_numbers(DType t) { return matrix_numbers(t, DType::f64) + kScaledText + kFactorNumbers; }

// ---- QR ----

class Reflections {
 public:
  Reflections(const Request& r, const Rectangles& p)
      : p_(p),
        number_(number_bytes(r.in[0].dtype())),
        room_(block_memory(device_of(r)) / number_),
        scaled_(device_of(r), factor_numbers(r.in[0].dtype()),
                {.batch = p.batch,
                 .size = p.m * p.n,
                 .height = p.m,
                 .width = p.n,
                 .rows = p.m,
                 .count = p.n,
                 .lies = {p.n, 1, p.m * p.n}},
                ScaledColumns::Change::none) {
    // All columns in one block, or as many as fit; in memory where not even four do.
    columns_ = p.n;
    if (!fits(p.m * p.n)) columns_ = std::min<int64_t>({32, p.n, int64_t(room_) / p.m});
    panel_shared_ = fits(p.m * columns_) && columns_ >= std::min<int64_t>(4, p.n);
    if (!panel_shared_) columns_ = 16;
    warps_ = std::clamp<int64_t>(int64_t(room_) / p.m, 1, 8);
    column_shared_ = fits(p.m);
    threads_ = p.m * p.n <= 64 ? 32 : p.m * p.n <= 4096 ? 256 : 1024;
    const std::string numbers = factor_numbers(r.in[0].dtype()) + kReflectionsText;
    const auto get = [&](const char* name, const char* text, int64_t threads, bool shared) {
      return device_of(r).functions().get(
          {name, numbers + constant("int", "kThreads", threads) + constant("kShared", shared) +
                     constant("int", "kMostNormals", std::min(columns_, p.k)) + text});
    };
    panel_ = get("panel", kReflectKernel, threads_, panel_shared_);
    apply_ = get("apply", kApplyKernel, warps_ * 32, column_shared_);
    form_ = get("form", kFormKernel, warps_ * 32, column_shared_);
    triangle_ = get("triangle", kTriangleKernel, 256, false);
    exponents_ = places_.take(p.batch, sizeof(int32_t));
    work_ = places_.take(p.batch * p.m * p.n, number_);
    normals_ = places_.take(p.batch * p.m * p.k, number_);
    if (!column_shared_) forming_ = places_.take(p.batch * p.m * p.k, number_);
  }
  size_t workspace() const { return places_.bytes(); }

  void operator()(const Stream& s, const Launch& l) const {
    std::byte *const exponents = l.workspace + exponents_, *const x = l.workspace + work_,
                     *const normals = l.workspace + normals_;
    const int m = int(p_.m), n = int(p_.n), k = int(p_.k);
    scaled_(s, l.in[0], exponents, x, nullptr, nullptr, 0);
    for (int64_t first = 0; first < p_.k; first += columns_) {
      const int64_t columns = std::min(columns_, p_.n - first), rest = p_.n - first - columns;
      const int64_t height = p_.m - first, used = std::min(columns, p_.k - first);
      (*panel_)(s.handle, {p_.batch}, {threads_}, panel_shared_ ? size_t(height * columns) * number_ : 0, x,
                normals, m, n, k, int(first), int(columns));
      (*apply_)(s.handle, blocks_for(p_.batch * rest, warps_), {warps_ * 32},
                column_shared_ ? size_t(warps_ * height) * number_ : 0, x, normals, m, n, k, int(first),
                int(used), int(rest), p_.batch* rest);
    }
    (*form_)(s.handle, blocks_for(p_.batch * p_.k, warps_), {warps_ * 32},
             column_shared_ ? size_t(warps_ * p_.m) * number_ : 0, x, normals, l.workspace + forming_, m, n,
             k, exponents, l.out[0], p_.batch * p_.k);
    const int64_t total = p_.batch * p_.k * p_.n;
    (*triangle_)(s.handle, blocks_for(total), {256}, 0, x, m, n, k, exponents, l.out[1], total);
  }

 private:
  bool fits(int64_t elements) const { return size_t(elements) <= room_; }

  Rectangles p_;
  size_t number_;  // bytes
  size_t room_;    // numbers in shared memory
  ScaledColumns scaled_;
  int64_t columns_ = 0, warps_ = 0, threads_ = 0;
  bool panel_shared_ = false, column_shared_ = false;
  FunctionRef panel_, apply_, form_, triangle_;
  Places places_;
  size_t exponents_ = 0, work_ = 0, normals_ = 0, forming_ = 0;
};

// ---- Jacobi ----

constexpr int64_t kMostPair = 64, kMostComplexPair = 32;  // columns of one small problem

// Sizes, kernels and places of both: eigenvalues of [n, n], singular values of columns that are `rows` long.
class Jacobi {
 public:
  Jacobi(const Request& r, int64_t columns, int64_t rows, int64_t batch, bool gram)
      : batch_(batch),
        n_(columns),
        number_(number_bytes(r.in[0].dtype())),
        pair_(std::min(is_complex(r.in[0].dtype()) ? kMostComplexPair : kMostPair,
                       (std::max<int64_t>(columns, 1) + 3) / 4 * 4)),
        count_((columns + pair_ - 1) / pair_ * pair_),
        rows_(gram ? rows : count_),
        gram_(gram),
        whole_(count_ == pair_) {
    const DType t = r.in[0].dtype();
    // A rotation is worth while where it moves more than rounding does.
    const double converged = t != DType::f64 ? 1e-12
                             : gram          ? std::max(1e-15, 2.4e-16 * std::sqrt(double(rows)))
                                             : 1e-15;
    threads_ = pair_ <= 8 ? 32 : pair_ <= 32 ? 128 : 512;
    numbers_ = cat(factor_numbers(t), constant("int", "kPair", pair_), constant("int", "kThreads", threads_),
                   constant("double", "kConverged", converged), constant("kGram", gram),
                   constant("kWhole", whole_), kJacobiText);
    rotations_ = get(r, "rotations", kRotationsKernel);
    if (!whole_) turn_ = get(r, "turn", kTurnKernel);
    order_ = get(r, "order", kOrderKernel);
    vectors_ = get(r, "vectors", kVectorsKernel);
    exponents_at = places_.take(batch, sizeof(int32_t));
    turned_at = places_.take(batch * kSweeps, sizeof(int32_t));
    idle_at = places_.take(batch * pairs(), sizeof(int32_t));
    places_at = places_.take(batch * count_, sizeof(int32_t));
    values_at = places_.take(batch * count_, kDouble);
    work_at = places_.take(batch * count_ * rows_, number_);
    vectors_at = places_.take(batch * count_ * count_, number_);
    found_at = places_.take(whole_ ? 0 : batch * count_ * pair_, number_);
  }

  FunctionRef get(const Request& r, const char* name, const char* text) const {
    return device_of(r).functions().get({name, numbers_ + text});
  }
  ScaledColumns::Sizes columns_of(int64_t height, int64_t size, Lies lies) const {
    return {.batch = batch_,
            .size = size,
            .height = height,
            .width = n_,
            .rows = rows_,
            .count = count_,
            .lies = lies};
  }

  void rotate(const Stream& s, std::byte* w) const {
    const int rows = int(rows_), count = int(count_);
    const size_t square = size_t(pair_ * (pair_ + 1)), strip = size_t(pair_ * 33);
    const size_t rows_of_tile = 64 * size_t(pair_ + 1);
    const size_t shared = (rows_of_tile + std::max(square, strip)) * number_,
                 tile = (rows_of_tile + square) * number_;
    const int64_t tiles = (rows_ + 63) / 64, vector_tiles = (count_ + 63) / 64;
    for (int sweep = 0; sweep < (whole_ ? 1 : kSweeps); ++sweep) {
      for (int round = 0; round < 2 * pairs() - 1; ++round) {
        (*rotations_)(s.handle, {batch_ * pairs()}, {threads_}, shared, w + work_at, w + vectors_at, rows,
                      count, round, sweep, kSweeps, w + turned_at, w + found_at, w + idle_at);
        if (whole_) return;
        for (const int transposed : {0, 1}) {
          if (transposed && gram_) break;
          (*turn_)(s.handle, {batch_ * pairs() * (tiles + (transposed ? 0 : vector_tiles))}, {256}, tile,
                   w + work_at, w + vectors_at, rows, count, transposed, round, sweep, kSweeps, w + turned_at,
                   w + found_at, w + idle_at);
        }
      }
    }
  }
  void put_in_order(const Stream& s, std::byte* w, std::byte* values) const {
    (*order_)(s.handle, {batch_}, {512}, 0, w + work_at, int(rows_), int(count_), int(n_), w + exponents_at,
              w + values_at, w + places_at, values);
  }
  /// Columns in memory; `places`: in the order of values.
  struct Columns {
    const std::byte* at = nullptr;
    int64_t rows = 0, stride = 0;
    const std::byte* places = nullptr;
  };
  void put_vectors(const Stream& s, std::byte* w, const Columns& left, const Columns& right, std::byte* y,
                   std::byte* z) const {
    (*vectors_)(s.handle, blocks_for(batch_ * n_, 4), {128}, 0, left.at, left.stride* count_, int(left.rows),
                int(left.stride), left.places, right.at, right.stride* count_, int(right.rows),
                int(right.stride), right.places, int(n_), int(count_), w + exponents_at, y, z, batch_ * n_);
  }

  int64_t pairs() const { return count_ / pair_; }
  int64_t count() const { return count_; }
  int64_t rows() const { return rows_; }
  int64_t batch() const { return batch_; }
  size_t number() const { return number_; }
  const std::string& numbers() const { return numbers_; }
  Places& places() { return places_; }
  const Places& places() const { return places_; }

  static constexpr int kSweeps = 14;
  size_t exponents_at, turned_at, idle_at, places_at, values_at, work_at, vectors_at, found_at;

 private:
  int64_t batch_, n_;
  size_t number_;  // bytes
  int64_t pair_, count_, rows_;
  bool gram_, whole_;
  int64_t threads_ = 0;
  std::string numbers_;
  FunctionRef rotations_, turn_, order_, vectors_;
  Places places_;
};

std::unique_ptr<Step> prepare_eigh(const Request& r) {
  const Rectangles p(r.in[0].shape);
  if (r.in[0].shape.elements() == 0) return make_gpu_step("empty", [](Stream&, const Launch&) {});
  const Jacobi jacobi(r, p.n, p.n, p.batch, false);
  const ScaledColumns scaled(device_of(r), jacobi.numbers(),
                             jacobi.columns_of(p.n, p.n * p.n, {p.n, 1, p.n * p.n}),
                             ScaledColumns::Change::symmetric);
  return make_gpu_step(
      cat("rotations, ", jacobi.pairs(), jacobi.pairs() == 1 ? " block" : " blocks", " for each matrix"),
      [=](Stream& s, const Launch& l) {
        std::byte* const w = l.workspace;
        scaled(s, l.in[0], w + jacobi.exponents_at, w + jacobi.work_at, w + jacobi.vectors_at,
               w + jacobi.turned_at, Jacobi::kSweeps);
        jacobi.rotate(s, w);
        jacobi.put_in_order(s, w, l.out[0]);
        jacobi.put_vectors(s, w, {w + jacobi.vectors_at, p.n, jacobi.count(), w + jacobi.places_at}, {},
                           l.out[1], nullptr);
      },
      jacobi.places().bytes());
}

std::unique_ptr<Step> prepare_svd(const Request& r) {
  const Rectangles p(r.in[0].shape);
  if (r.in[0].shape.elements() == 0) return make_gpu_step("empty", [](Stream&, const Launch&) {});
  const bool tall = p.m >= p.n;  // else the columns of a^H are rotated
  Jacobi jacobi(r, p.k, std::max(p.m, p.n), p.batch, true);
  const ScaledColumns scaled(
      device_of(r), jacobi.numbers(),
      jacobi.columns_of(jacobi.rows(), p.m * p.n, {tall ? p.n : 1, tall ? 1 : p.n, p.m * p.n}),
      tall ? ScaledColumns::Change::none : ScaledColumns::Change::conjugated);
  const FunctionRef directions = jacobi.get(r, "directions", kDirectionsKernel);
  const size_t units = jacobi.places().take(p.batch * jacobi.count() * jacobi.rows(), jacobi.number());
  const size_t spent = jacobi.places().take(p.batch * jacobi.rows(), kDouble);
  const size_t dots = jacobi.places().take(p.batch * jacobi.count(), jacobi.number());
  const size_t workspace = jacobi.places().bytes();
  return make_gpu_step(
      cat("rotations, ", jacobi.pairs(), jacobi.pairs() == 1 ? " block" : " blocks", " for each matrix"),
      [=](Stream& s, const Launch& l) {
        std::byte* const w = l.workspace;
        scaled(s, l.in[0], w + jacobi.exponents_at, w + jacobi.work_at, w + jacobi.vectors_at,
               w + jacobi.turned_at, Jacobi::kSweeps);
        jacobi.rotate(s, w);
        jacobi.put_in_order(s, w, l.out[1]);
        (*directions)(s.handle, {p.batch}, {512}, 0, w + jacobi.work_at, int(jacobi.rows()),
                      int(jacobi.count()), int(p.k), w + jacobi.values_at, w + jacobi.places_at, w + units,
                      w + spent, w + dots);
        const Jacobi::Columns longer{w + units, jacobi.rows(), jacobi.rows(), nullptr},
            turned{w + jacobi.vectors_at, p.k, jacobi.count(), w + jacobi.places_at};
        jacobi.put_vectors(s, w, tall ? longer : turned, tall ? turned : longer, l.out[0], l.out[2]);
      },
      workspace);
}

std::unique_ptr<Step> prepare_qr(const Request& r) {
  const Rectangles p(r.in[0].shape);
  if (r.in[0].shape.elements() == 0) return make_gpu_step("empty", [](Stream&, const Launch&) {});
  Reflections reflections(r, p);
  const size_t workspace = reflections.workspace();
  return make_gpu_step(
      "reflections, panels in a block", [=](Stream& s, const Launch& l) { reflections(s, l); }, workspace);
}

}  // namespace

void add_factors(KernelTable& table) {
  table.add<ops::Qr>({"qr_reflections", accepts_matrices, prepare_qr});
  table.add<ops::Eigh>({"eigh_rotations", accepts_matrices, prepare_eigh});
  table.add<ops::Svd>({"svd_rotations", accepts_matrices, prepare_svd});
}

}  // namespace rlx::cuda
