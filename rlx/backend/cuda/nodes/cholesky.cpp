// Cholesky factors: of one matrix in one block, or panel by panel.
#include "rlx/backend/cuda/kernels/cholesky.h"

#include "rlx/backend/cuda/fault.h"
#include "rlx/backend/cuda/nodes/element_kernel.h"
#include "rlx/backend/cuda/nodes/matrices.h"
#include "rlx/ops/linalg/cholesky.h"

namespace rlx::cuda {
namespace {

constexpr int64_t kColumns = 64;  // of a panel

size_t bytes_in_block(int64_t n, DType wide) { return size_t(n * (n | 1)) * dtype_size(wide); }

FunctionRef factor_kernel(const Device& device, DType memory, DType wide, std::string_view a,
                          std::string_view y, int threads) {
  return device.functions().get(
      {"cholesky", cat(matrix_numbers(memory, wide), "typedef ", a, " A;\ntypedef ", y,
                       " Y;\nconstexpr int kThreads = ", threads, ";\n", kCholeskyKernel)});
}

// The lower triangle of work[n, n], from the left: a part on the diagonal by one block, the rows below it by solving
// with that part, and what is right of them less the product of these rows with themselves.
class InPanels {
 public:
  InPanels(const Device& device, DType memory, const Systems& p, uint64_t fault)
      : p_(p),
        wide_(matrix_type(memory)),
        fault_(fault),
        apart_(memory != wide_),
        below_(device, wide_, wide_, {.conjugate = is_complex(wide_)}),
        subtract_(device, wide_, true) {
    diagonal_ = factor_kernel(device, wide_, wide_, "W", "W", threads_for_rows(kColumns));
    const std::string numbers = matrix_numbers(memory, wide_);
    hermitian_ = device.functions().get({"hermitian", numbers + kHermitianKernel});
    lower_ = device.functions().get({"lower", numbers + kLowerKernel});
  }
  size_t workspace() const { return apart_ ? size_t(count()) * dtype_size(wide_) : 0; }

  void operator()(const Stream& s, const Launch& l) const {
    const int64_t n = p_.n;
    std::byte* const work = apart_ ? l.workspace : l.out[0];
    const Lies rows{n, 1, n * n}, columns{1, n, n * n};
    const auto at = [&](int64_t row, int64_t column) {
      return work + (row * n + column) * int64_t(dtype_size(wide_));
    };
    (*hermitian_)(s.handle, blocks_for(count()), {256}, 0, l.in[0], work, int(n), count());
    for (int64_t j = 0; j < n; j += kColumns) {
      const int64_t size = std::min(kColumns, n - j), next = j + size, rest = n - next;
      (*diagonal_)(s.handle, {p_.batch}, {threads_for_rows(kColumns)}, bytes_in_block(size, wide_), at(j, j),
                   at(j, j), int(size), rows, int(j), int(n), s.fault, fault_);
      if (rest == 0) break;
      // conj(L) X^T = A^T for the rows A below.
      below_(s, size, rest, p_.batch,
             {.a = at(j, j),
              .a_lies = rows,
              .b = at(next, j),
              .b_lies = columns,
              .x = at(next, j),
              .x_lies = columns},
             false, 0);
      subtract_(s, rest, rest, size, p_.batch, {at(next, j), rows}, {at(next, j), columns},
                {at(next, next), rows});
    }
    (*lower_)(s.handle, blocks_for(count()), {256}, 0, work, l.out[0], int(n), count());
  }

 private:
  int64_t count() const { return p_.batch * p_.n * p_.n; }

  Systems p_;
  DType wide_;
  uint64_t fault_;
  bool apart_;  // work is not where the result goes
  Substitution below_;
  Subtraction subtract_;
  FunctionRef diagonal_, hermitian_, lower_;
};

std::unique_ptr<Step> prepare(const Request& r) {
  const DType t = r.in[0].dtype(), wide = matrix_type(t);
  const Systems p = Systems::of(r.in[0].shape);
  if (r.out[0].shape.elements() == 0) return make_gpu_step("empty", [](Stream&, const Launch&) {});
  const uint64_t fault = new_fault(cat("cholesky: matrix % of a: ", r.in[0].shape,
                                       " is not positive definite, its leading % x % part has no factor"),
                                   uint64_t(p.n) + 1);
  if (bytes_in_block(p.n, wide) > block_memory(device_of(r))) {
    InPanels panels(device_of(r), t, p, fault);
    const size_t workspace = panels.workspace();
    return make_gpu_step(
        "panels of 64 columns, the rest in tiles",
        [panels = std::move(panels)](Stream& s, const Launch& l) { panels(s, l); }, workspace);
  }
  const int threads = threads_for_rows(p.n);
  const FunctionRef f = factor_kernel(device_of(r), t, wide, "X", "X", threads);
  return make_gpu_step("a block for each matrix", [=](Stream& s, const Launch& l) {
    (*f)(s.handle, {p.batch}, {threads}, bytes_in_block(p.n, wide), l.in[0], l.out[0], int(p.n),
         Lies{p.n, 1, p.n * p.n}, 0, int(p.n), s.fault, fault);
  });
}

}  // namespace

void add_cholesky(KernelTable& table) {
  table.add<ops::Cholesky>({"cholesky_blocks", accepts_matrices, prepare});
}

}  // namespace rlx::cuda
