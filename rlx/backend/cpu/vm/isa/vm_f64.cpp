// Plan: see rlx/backend/cpu/vm/micro.h; the functions on f64.
#include "rlx/backend/cpu/vm/isa/floats.h"
#include "rlx/backend/cpu/vm/isa/sets.h"

namespace rlx::cpu::RLX_ISA::machine {

void set_f64(Functions& to) { set_floats<F64>(to, Lane::f64); }

}  // namespace rlx::cpu::RLX_ISA::machine
