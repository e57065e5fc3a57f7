// Plan: see rlx/backend/cpu/vm/micro.h; the functions on i32.
#include "rlx/backend/cpu/vm/isa/integers.h"
#include "rlx/backend/cpu/vm/isa/sets.h"

namespace rlx::cpu::RLX_ISA::machine {

void set_i32(Functions& to) { set_integers<I32>(to, Lane::i32); }

}  // namespace rlx::cpu::RLX_ISA::machine
