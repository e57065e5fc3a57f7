#include "rlx/backend/cuda/nodes/few_rows.h"

#include "rlx/backend/cuda/kernels/few_rows.h"
#include "rlx/backend/cuda/region/printer.h"

namespace rlx::cuda {
namespace {

constexpr int64_t kMostRows = 4, kMostElements = int64_t(1) << 30;

std::string sizes_text(const FewRows& p, int64_t leading) {
  return cat("typedef ", memory_type(p.dtype), " T;\nconstexpr int kRows = ", p.m, ", kDepth = ", p.k,
             ", kColumns = ", p.n, ";\nconstexpr i64 kLeading = ", leading, ";\n", kFewRowsShared);
}

// Threads for a column: the fewest idle ones in at most four rounds, else a warp.
int64_t lanes_for(int64_t pieces) {
  int64_t best = 32, least = (pieces + 31) / 32 * 32;
  for (const int64_t lanes : {16, 8, 4}) {
    const int64_t slots = (pieces + lanes - 1) / lanes * lanes;
    if (slots < least && slots / lanes <= 4) least = slots, best = lanes;
  }
  return best;
}

}  // namespace

std::optional<FewRowsKernel> FewRowsKernel::make(const Device& device, const FewRows& p) {
  const bool known = p.dtype == DType::f32 || p.dtype == DType::f16 || p.dtype == DType::bf16;
  if (!known || p.m < 1 || p.m > kMostRows || p.k < 1 || p.n < 1 || p.k > kMostElements ||
      p.n > kMostElements)
    return std::nullopt;
  const int64_t piece = 16 / int64_t(dtype_size(p.dtype));
  if (p.k % piece != 0 || p.a_row % piece != 0) return std::nullopt;
  const int64_t processors = device.gpu() ? device.gpu()->multiprocessors() : 132;
  FewRowsKernel out;
  out.p_ = p;
  if (p.b_row == 1 && p.b_column >= p.k && p.b_column % piece == 0) {
    const int64_t lanes = lanes_for(p.k / piece), teams = 256 / lanes;
    const int64_t each = p.n / (teams * 2) >= 2 * processors ? 2 : 1;
    out.block_ = {256};
    out.grid_ = {(p.n + teams * each - 1) / (teams * each)};
    out.function_ =
        device.functions().get({"few_rows", cat(sizes_text(p, p.b_column), "constexpr int kLanes = ", lanes,
                                                ", kEach = ", each, ";\n", kFewRowsByColumn)});
    return out;
  }
  if (p.b_column == 1 && p.b_row >= p.n && p.b_row % piece == 0 && p.n % piece == 0) {
    // Short runs where there would be few blocks.
    const int64_t across = p.n / (8 * piece) >= processors / 2 ? 8 : 4, span = across * piece;
    out.block_ = {512};
    out.grid_ = {(p.n + span - 1) / span};
    out.function_ = device.functions().get(
        {"few_rows", cat(sizes_text(p, p.b_row), "constexpr int kAcross = ", across, ";\n", kFewRowsByRow)});
    return out;
  }
  return std::nullopt;
}

void FewRowsKernel::run(const Stream& s, const void* a, const void* b, void* c) const {
  (*function_)(s.handle, grid_, block_, 0, a, b, c, p_.a_row, p_.c_row);
}

}  // namespace rlx::cuda
