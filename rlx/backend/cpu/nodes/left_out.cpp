// Families that a build for dense networks is without (cmake/rlx_dense.cmake): each takes no node.
#include "rlx/backend/cpu/nodes/conv_codes.h"
#include "rlx/backend/cpu/nodes/families.h"
#include "rlx/backend/cpu/nodes/fused_conv.h"
#include "rlx/backend/cpu/nodes/product_groups.h"

namespace rlx::cpu {

void add_conv(KernelTable&) {}
void add_conv_codes(KernelTable&) {}
void add_conv_gathered(KernelTable&) {}
void add_dequantize(KernelTable&) {}
void add_factorize(KernelTable&) {}
void add_fft(KernelTable&) {}
void add_fused_conv(KernelTable&) {}
void add_group_norm(KernelTable&) {}
void add_grouped(KernelTable&) {}
void add_pool(KernelTable&) {}
void add_product_groups(KernelTable&) {}
void add_quant(KernelTable&) {}
void add_quant_conv(KernelTable&) {}
void add_resize(KernelTable&) {}
void add_sequence(KernelTable&) {}
void add_solve(KernelTable&) {}
void add_splat(KernelTable&) {}
void add_windows(KernelTable&) {}

std::vector<backend::NodeGroup> product_groups(const ir::Graph&) { return {}; }

}  // namespace rlx::cpu
