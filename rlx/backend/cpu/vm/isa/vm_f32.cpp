// Plan: see rlx/backend/cpu/vm/micro.h; the functions on f32.
#include "rlx/backend/cpu/vm/isa/floats.h"
#include "rlx/backend/cpu/vm/isa/sets.h"

namespace rlx::cpu::RLX_ISA::machine {

void set_f32(Functions& to) { set_floats<F32>(to, Lane::f32); }

}  // namespace rlx::cpu::RLX_ISA::machine
