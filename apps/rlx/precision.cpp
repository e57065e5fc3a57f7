#include "apps/rlx/precision.h"

#include <cstdlib>

#include "rlx/base/error.h"

namespace rlx::cli {

void add_precision(Command command, std::string& precision) {
  command
      .add_option(
          "--precision", precision,
          "of numbers between operators: f32, bf16, f16, or tf32 (f32 with products of 11 bits, on cuda)")
      .one_of({"f32", "tf32", "bf16", "f16"});
}

std::optional<PrecisionPolicy> read_precision(const std::string& precision, const std::string& device) {
  if (precision == "bf16") return PrecisionPolicy::auto_mixed_bf16();
  if (precision == "f16") return PrecisionPolicy::auto_mixed();
  if (precision == "tf32") {
    if (device != "cuda" && device != "auto")
      throw invalid("--precision tf32: device '", device,
                    "' has no products of tf32; take --device cuda, or f32");
    setenv("RLX_CUDA_TF32", "1", 1);  // before the device is opened
  }
  return std::nullopt;
}

}  // namespace rlx::cli
