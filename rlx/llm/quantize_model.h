// A GGUF model in fewer bits: which tensor is stored how.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "rlx/io/gguf.h"
#include "rlx/llm/imatrix.h"
#include "rlx/quant/format.h"

namespace rlx::llm {

/// A name that users know, as Q4_K_M: one block format for most tensors and finer ones for those that matter most.
struct QuantMix {
  std::string_view name;
  std::string_view base;  // block format
  uint32_t file_type;     // general.file_type
};
/// All that there are.
const std::vector<QuantMix>& quant_mixes();
/// In any letter case; another name is a user error that lists the known ones.
const QuantMix& quant_mix_named(std::string_view name);

/// What a tensor is stored as: its present type where it stays.
const quant::BlockFormat& chosen_format(const io::TensorView& tensor, const QuantMix& mix,
                                        const io::GgufFile& file);

/// What was stored otherwise, and what that costs.
struct QuantizeReport {
  int64_t tensors = 0, changed = 0, bytes_in = 0, bytes_out = 0;
  double error = 0;          // norm of the difference over norm of the values, of what was changed
  int64_t weighed = 0;       // tensors that the importance matrix had an entry for
  double weighed_error = 0;  // theirs, with squares weighed by importance
};

/// What a quantising is told beside the mix.
struct QuantizeOptions {
  const ImportanceMatrix* importance = nullptr;
  std::string importance_name;  // told in the file
  /// Called behind each tensor, with bytes read so far and in all.
  std::function<void(int64_t done, int64_t total)> progress;
};

/// Rows that are no whole number of blocks take the next finer format that fits. An importance matrix of another model is a user error.
QuantizeReport quantize_model(const std::string& in, const std::string& out, const QuantMix& mix,
                              const QuantizeOptions& options = {});

}  // namespace rlx::llm
