#include "rlx/backend/cuda/nodes/packed_format.h"

#include <algorithm>

#include "rlx/backend/cuda/kernels/block_decoders.h"
#include "rlx/backend/cuda/kernels/packed_product.h"
#include "rlx/backend/cuda/region/words.h"
#include "rlx/base/text.h"

namespace rlx::cuda {
namespace {

constexpr std::string_view kPlainDecoders[] = {"q4_0",  "q4_1",  "q5_0",  "q5_1",  "q8_0",   "q8_1",
                                               "q2_k",  "q3_k",  "q4_k",  "q5_k",  "q6_k",   "q8_k",
                                               "tq1_0", "tq2_0", "mxfp4", "nvfp4", "iq4_nl", "iq4_xs"};

std::string upper_case(std::string_view name) {
  std::string out(name);
  std::transform(out.begin(), out.end(), out.begin(),
                 [](char c) { return c >= 'a' && c <= 'z' ? char(c - 'a' + 'A') : c; });
  return out;
}

}  // namespace

std::vector<uint32_t> codebook_words(const quant::GridFormat& f) {
  std::vector<uint32_t> out(f.numbers.size() / 4);
  const int more = f.has_signs() ? 0 : 8;  // those of iq1 may be negative
  for (size_t i = 0; i < f.numbers.size(); ++i)
    out[i / 4] |= uint32_t(uint8_t(f.numbers[i] + more)) << (8 * (i % 4));
  return out;
}

std::optional<std::string> decoder_text(const quant::BlockFormat& format, int align) {
  std::string text = cat("constexpr int kAlign = ", align, ";\n", kBlockDecoders);
  if (const quant::GridFormat* grid = quant::find_grid_format(format.name)) {
    text += "__device__ const u32 points[] = {";
    for (const uint32_t word : codebook_words(*grid)) text += cat(word, "u,");
    text += cat("};\n", kGridDecoders);
  } else if (std::find(std::begin(kPlainDecoders), std::end(kPlainDecoders), format.name) ==
             std::end(kPlainDecoders)) {
    return std::nullopt;
  }
  return cat(text, "typedef ", upper_case(format.name), " Format;\n");
}

std::string packed_text(const quant::BlockFormat& format, DType type, int64_t k, int align) {
  return cat(*decoder_text(format, align), "constexpr int kFeatures = ", k, ";\ntypedef ", memory_type(type),
             " T;\n", kPackedShared);
}

}  // namespace rlx::cuda
