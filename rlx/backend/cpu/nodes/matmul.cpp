// Matrix products of two operands.
#include "rlx/ops/linalg/matmul.h"

#include <cstring>

#include "rlx/backend/cpu/nodes/products.h"

namespace rlx::cpu {
namespace {

Support accepts(const Request& r) { return accepts_product(r.in[0], r.in[1], r.out[0]); }

std::unique_ptr<Step> prepare(const Request& r) {
  const Arg& c = r.out[0];
  if (c.shape.elements() == 0) return make_step([](const Launch&) {});
  if (r.in[0].shape.dim(-1) == Dim(0)) {
    return make_step(
        [bytes = size_t(c.shape.size_bytes())](const Launch& l) { std::memset(l.out[0], 0, bytes); });
  }
  return prepare_product(r, describe_product(r.in[0], r.in[1], c), {});
}

}  // namespace

void add_matmul(KernelTable& table) { table.add<ops::Matmul>({"matmul_gemm", accepts, prepare}); }

}  // namespace rlx::cpu
