// Plan: see rlx/backend/cpu/vm/micro.h; the functions on f32.
#include "rlx/backend/cpu/vm/isa/floats.h"
#include "rlx/backend/cpu/vm/isa/sets.h"

namespace rlx::cpu::RLX_ISA::machine {

void set_f32(Functions& to) {
  set_floats<F32>(to, Lane::f32);
  set_narrow<Add, Bf16>(to.narrow[int(NarrowForm::add_bf16)]);
  set_narrow<Mul, Bf16>(to.narrow[int(NarrowForm::mul_bf16)]);
  set_narrow<Add, F16>(to.narrow[int(NarrowForm::add_f16)]);
  set_narrow<Mul, F16>(to.narrow[int(NarrowForm::mul_f16)]);
}

}  // namespace rlx::cpu::RLX_ISA::machine
