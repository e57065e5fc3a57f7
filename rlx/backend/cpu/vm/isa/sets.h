// The parts of the table of functions, each from a source of its own.
#pragma once

#include "rlx/backend/cpu/vm/micro.h"

namespace rlx::cpu::RLX_ISA::machine {

void set_f32(vm::Functions&);
void set_f64(vm::Functions&);
void set_i32(vm::Functions&);
void set_i64(vm::Functions&);
void set_memory(vm::Functions&);

}  // namespace rlx::cpu::RLX_ISA::machine
