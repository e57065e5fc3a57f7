// Linear systems with square and triangular matrices, and determinants.
#include "rlx/ops/linalg/solve.h"
#include "rlx/backend/cuda/fault.h"
#include "rlx/backend/cuda/kernels/eliminate.h"
#include "rlx/backend/cuda/nodes/element_kernel.h"
#include "rlx/backend/cuda/nodes/matrices.h"
#include "rlx/base/options.h"
#include "rlx/ops/linalg/det.h"
#include "rlx/ops/linalg/triangular_solve.h"

namespace rlx::cuda {
namespace {

// ---- triangular matrices ----

std::unique_ptr<Step> prepare_triangular(const Request& r) {
  const auto& attrs = r.node.as<ops::TriangularSolve>();
  const DType t = r.in[0].dtype(), wide = matrix_type(t);
  const Systems p = Systems::of(r.in[0].shape, r.in[1].shape);
  if (r.out[0].shape.elements() == 0) return make_gpu_step("empty", [](Stream&, const Launch&) {});
  const bool apart = t != wide;  // x stays wide on the way
  const Substitution solve(device_of(r), t, wide,
                           {.a = "X", .b = "X", .unit = attrs.unit_diagonal, .result = apart});
  const uint64_t fault = new_fault(cat("triangular_solve: matrix % of a: ", r.in[0].shape,
                                       " has a zero at [%, %]; the diagonal must not vanish"),
                                   uint64_t(p.n));
  // The rows that depend on no other come first: the last ones of an upper triangle, walked backwards.
  const bool forward = attrs.lower != attrs.transpose;
  const int64_t step = forward ? 1 : -1, last = forward ? 0 : p.n - 1;
  const int64_t bytes = int64_t(dtype_size(t)), wide_bytes = int64_t(dtype_size(wide));
  const Lies a_lies{step * (attrs.transpose ? 1 : p.n), step * (attrs.transpose ? p.n : 1), p.n * p.n};
  const Lies b_lies{step * p.k, 1, p.n * p.k};
  Places places;
  if (apart) places.take(p.batch * p.n * p.k, dtype_size(wide));
  return make_gpu_step(
      "a block for 32 columns",
      [=](Stream& s, const Launch& l) {
        std::byte* const x = apart ? l.workspace : l.out[0];
        solve(s, p.n, p.k, p.batch,
              {.a = l.in[0] + last * (p.n + 1) * bytes,
               .a_lies = a_lies,
               .b = l.in[1] + last * p.k * bytes,
               .b_lies = b_lies,
               .x = x + last * p.k * wide_bytes,
               .x_lies = b_lies,
               .y = l.out[0] + last * p.k * bytes,
               .y_lies = b_lies},
              !forward, fault);
      },
      places.bytes());
}

// ---- elimination ----

enum class Asked { solution, inverse, determinant, logarithm };

bool is_determinant(Asked a) { return a == Asked::determinant || a == Asked::logarithm; }

constexpr int64_t kMemoryColumns = 32;  // of a panel in memory

bool only_in_memory() { return option("RLX_CUDA_PANELS").value_or("1") == "0"; }

// [a | b] of n rows in shared memory, rows a little longer where that spares conflicts of banks.
int64_t row_of(const Systems& p) { return (p.n + p.k) | 1; }
size_t bytes_in_block(const Systems& p, DType wide) { return size_t(p.n * row_of(p)) * dtype_size(wide); }
// Columns of a panel whose n rows fit a block; 0 where not even four do, so that panels lie in memory.
int64_t panel_columns(int64_t n, DType wide, size_t room) {
  if (only_in_memory()) return 0;
  for (const int64_t columns : {32, 16, 8, 4}) {
    if (size_t(n * columns) * dtype_size(wide) <= room) return columns;
  }
  return 0;
}

Systems systems_of(const Request& r, Asked asked) {
  Systems p =
      asked == Asked::solution ? Systems::of(r.in[0].shape, r.in[1].shape) : Systems::of(r.in[0].shape);
  if (asked == Asked::inverse) p.k = p.n;
  return p;
}

// One matrix, one block.
template <Asked asked>
std::unique_ptr<Step> in_blocks(const Request& r, const Systems& p, DType wide, uint64_t fault) {
  const int threads = threads_for_rows(p.n);
  const FunctionRef f = device_of(r).functions().get(
      {"eliminate", cat(matrix_numbers(r.in[0].dtype(), wide), kPivotText,
                        "constexpr int kThreads = ", threads, ";\nconstexpr bool kDeterminant = ",
                        is_determinant(asked) ? "true" : "false", ";\n", kEliminateKernel)});
  const size_t shared = bytes_in_block(p, wide);
  return make_gpu_step("a block for each matrix", [=](Stream& s, const Launch& l) {
    const std::byte* const b = asked == Asked::solution ? l.in[1] : nullptr;
    std::byte* const logarithm = asked == Asked::logarithm ? l.out[1] : nullptr;
    (*f)(s.handle, {p.batch}, {threads}, shared, l.in[0], b, l.out[0], logarithm, int(p.n), int(p.k),
         int(row_of(p)), s.fault, fault);
  });
}

// Panels in one block, what is right of them in tiles over all processors.
template <Asked asked>
class InPanels {
 public:
  InPanels(const Request& r, const Systems& p, DType wide, uint64_t fault)
      : p_(p),
        bytes_(int64_t(dtype_size(wide))),
        out_bytes_(int64_t(dtype_size(r.in[0].dtype()))),
        fault_(fault),
        columns_(panel_columns(p.n, wide, block_memory(device_of(r)))),
        in_memory_(columns_ == 0),
        rows_above_(device_of(r), wide, wide, {.unit = true}),
        subtract_(device_of(r), wide, false),
        back_(device_of(r), r.in[0].dtype(), wide, {.result = true}) {
    const std::string numbers = matrix_numbers(r.in[0].dtype(), wide) + kPivotText;
    const auto get = [&](const char* name, std::string_view text) {
      return device_of(r).functions().get({name, cat(numbers, text)});
    };
    if (in_memory_) columns_ = kMemoryColumns;
    join_ = get("join", kJoinKernel);
    panel_ =
        get("panel", cat("constexpr bool kInMemory = ", in_memory_ ? "true" : "false", ";\n", kPanelKernel));
    exchange_ = get("exchange", kExchangeKernel);
    end_ = is_determinant(asked) ? get("determinant", kPivotsKernel) : get("singular", kSingularKernel);
    work_ = places_.take(p.batch * p.n * (p.n + p.k), size_t(bytes_));
    pivots_ = places_.take(p.batch * p.n, sizeof(int32_t));
    zero_ = places_.take(p.batch, sizeof(int32_t));
    if (in_memory_) room_ = places_.take(p.batch * p.n * columns_, size_t(bytes_));
  }
  size_t workspace() const { return places_.bytes(); }
  bool in_memory() const { return in_memory_; }

  void operator()(const Stream& s, const Launch& l) const {
    const int64_t n = p_.n, width = p_.n + p_.k, count = p_.batch * n * width;
    std::byte* const work = l.workspace + work_;
    std::byte* const pivots = l.workspace + pivots_;
    std::byte* const zero = l.workspace + zero_;
    const Lies lies{width, 1, n * width};
    const auto at = [&](int64_t row, int64_t column) { return work + (row * width + column) * bytes_; };
    (*join_)(s.handle, blocks_for(count), {256}, 0, l.in[0], asked == Asked::solution ? l.in[1] : nullptr,
             work, int(n), int(p_.k), count);
    for (int64_t j = 0; j < n; j += columns_) {
      const int64_t columns = std::min(columns_, n - j), next = j + columns, rest = width - next;
      (*panel_)(s.handle, {p_.batch}, {1024}, in_memory_ ? 0 : size_t((n - j) * columns * bytes_), work,
                l.workspace + room_, int(n), int(width), int(j), int(columns), pivots, zero);
      if (rest == 0) break;
      (*exchange_)(s.handle, blocks_for(p_.batch * rest, 128), {128}, 0, work, int(n), int(width), int(j),
                   int(columns), pivots, p_.batch* rest);
      rows_above_(
          s, columns, rest, p_.batch,
          {.a = at(j, j), .a_lies = lies, .b = at(j, next), .b_lies = lies, .x = at(j, next), .x_lies = lies},
          false, 0);
      if (next < n)
        subtract_(s, n - next, rest, columns, p_.batch, {at(next, j), lies}, {at(j, next), lies},
                  {at(next, next), lies});
    }
    if (is_determinant(asked)) {
      (*end_)(s.handle, {p_.batch}, {32}, 0, work, pivots, zero, l.out[0],
              asked == Asked::logarithm ? l.out[1] : nullptr, int(n));
      return;
    }
    (*end_)(s.handle, blocks_for(p_.batch, 32), {32}, 0, zero, int(n), int(p_.batch), s.fault, fault_);
    // The upper triangle, from its last row on.
    const Lies up{-width, -1, n * width}, right{-width, 1, n * width}, out{-p_.k, 1, n * p_.k};
    back_(s, n, p_.k, p_.batch,
          {.a = at(n - 1, n - 1),
           .a_lies = up,
           .b = at(n - 1, n),
           .b_lies = right,
           .x = at(n - 1, n),
           .x_lies = right,
           .y = l.out[0] + (n - 1) * p_.k * out_bytes_,
           .y_lies = out},
          true, 0);
  }

 private:
  Systems p_;
  int64_t bytes_, out_bytes_;  // of an element of work and of x
  uint64_t fault_;
  int64_t columns_;  // of a panel
  bool in_memory_;
  Substitution rows_above_;
  Subtraction subtract_;
  Substitution back_;
  FunctionRef join_, panel_, exchange_, end_;
  Places places_;
  size_t work_ = 0, pivots_ = 0, zero_ = 0, room_ = 0;
};

template <class Op, Asked asked>
std::unique_ptr<Step> prepare_elimination(const Request& r) {
  const Systems p = systems_of(r, asked);
  const DType wide = matrix_type(r.in[0].dtype());
  if (r.out[0].shape.elements() == 0) return make_gpu_step("empty", [](Stream&, const Launch&) {});
  const uint64_t fault = is_determinant(asked)
                             ? 0
                             : new_fault(cat(Op::name, ": matrix % of a: ", r.in[0].shape,
                                             " is singular, column % has no pivot; a must be invertible"),
                                         uint64_t(p.n));
  if (!only_in_memory() && bytes_in_block(p, wide) <= block_memory(device_of(r)))
    return in_blocks<asked>(r, p, wide, fault);
  InPanels<asked> panels(r, p, wide, fault);
  const size_t workspace = panels.workspace();
  return make_gpu_step(
      panels.in_memory() ? "panels in memory, the rest in tiles" : "panels in a block, the rest in tiles",
      [panels = std::move(panels)](Stream& s, const Launch& l) { panels(s, l); }, workspace);
}

template <class Op, Asked asked>
void add(KernelTable& table, std::string_view name) {
  table.add<Op>({name, accepts_matrices, prepare_elimination<Op, asked>});
}

}  // namespace

void add_solve(KernelTable& table) {
  table.add<ops::TriangularSolve>({"triangular_solve_tiles", accepts_matrices, prepare_triangular});
  add<ops::BatchedDenseSolve, Asked::solution>(table, "solve_elimination");
  add<ops::DenseSolve, Asked::solution>(table, "solve_elimination");
  add<ops::Inverse, Asked::inverse>(table, "inverse_elimination");
  add<ops::Det, Asked::determinant>(table, "det_elimination");
  add<ops::Slogdet, Asked::logarithm>(table, "slogdet_elimination");
}

}  // namespace rlx::cuda
