#include <cstdint>

#include "rlx/base/float16.h"

namespace rlx::cpu {

float f16_to_f32_call(uint16_t);
uint16_t f32_to_f16_call(float);

float f16_to_f32_call(uint16_t h) { return f16_to_f32(h); }
uint16_t f32_to_f16_call(float v) { return f32_to_f16(v); }

}  // namespace rlx::cpu
