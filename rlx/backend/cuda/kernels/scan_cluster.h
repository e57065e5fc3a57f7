// What the kernels of whole loops have in common: two blocks share a row of the state, kWidth columns of which kHalf are theirs, four threads a column. Stands in
// front of kernels/scan_product.h and kernels/scan_between.h, behind kernels/cluster_blocks.h.
#pragma once

namespace rlx::cuda {

inline constexpr char kScanCluster[] = R"cuda(
constexpr int kHalf = (kWidth + 1) / 2, kDepth = (kWidth + 3) / 4;
)cuda";

}  // namespace rlx::cuda
