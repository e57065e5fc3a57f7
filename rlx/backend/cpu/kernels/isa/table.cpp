#include "rlx/backend/cpu/isa.h"
#include "rlx/backend/cpu/kernels/isa/tables.h"

namespace rlx::cpu::RLX_ISA {

const KernelTable& kernel_table() {
  static const KernelTable table = {.unary = unary_kernels(),
                                    .gemm = gemm_kernels(),
                                    .rows = row_kernels(),
                                    .copy = copy_kernels(),
                                    .attention = attention_kernels(),
                                    .quant_product = quant_product_kernels()};
  return table;
}

}  // namespace rlx::cpu::RLX_ISA
