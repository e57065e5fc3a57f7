// Plan: see rlx/backend/cpu/vm/micro.h; the functions on i64.
#include "rlx/backend/cpu/vm/isa/integers.h"
#include "rlx/backend/cpu/vm/isa/sets.h"

namespace rlx::cpu::RLX_ISA::machine {

void set_i64(Functions& to) { set_integers<I64>(to, Lane::i64); }

}  // namespace rlx::cpu::RLX_ISA::machine
