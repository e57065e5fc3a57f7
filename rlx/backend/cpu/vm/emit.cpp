#include "rlx/backend/cpu/vm/emit.h"

#include "rlx/base/error.h"

namespace rlx::cpu::vm {

std::vector<Micro> Emitter::emit(const std::vector<int>& instructions,
                                 const std::function<int(int)>& reduce_into,
                                 const std::function<std::optional<int>(int)>& keep_at) {
  out_.clear();
  uses_.assign(code_.size(), 0);
  slot_.assign(code_.size(), -1);
  free_ = slots_;
  accumulator_ = -1;
  for (const int n : instructions) {
    for (int k = 0; k < region::arity(code_[size_t(n)].op); ++k) ++uses_[size_t(operand(n, k))];
  }
  for (const int n : instructions) {
    if (region::is_reduction(code_[size_t(n)].op)) {
      reduce(n, reduce_into(n));
    } else {
      step(n);
    }
    if (const auto place = keep_at(n)) push(plan_.functions->keep, *place, kNoStreaming);
  }
  if (out_.empty()) return out_;
  push(plan_.functions->end[wide()], int(out_.size()));
  return out_;
}

void Emitter::push(Function f, int a, int b) {
  RLX_CHECK(f != nullptr, "vm: no function for an instruction");
  out_.push_back({f, a, b});
}

Resident Emitter::where(int v) const {
  if (const auto r = resident_(v)) return *r;
  RLX_CHECK(slot_[size_t(v)] >= 0, "vm: %", v, " is not in memory");
  return {slot_[size_t(v)], false};
}

void Emitter::spill(bool needed_in_memory) {
  if (accumulator_ < 0 || in_memory(accumulator_)) return;
  if (uses_[size_t(accumulator_)] == 0 && !needed_in_memory) return;
  int& slot = slot_[size_t(accumulator_)];
  if (free_.empty()) {
    slot = new_slot_();
    slots_.push_back(slot);
  } else {
    slot = free_.back();
    free_.pop_back();
  }
  push(plan_.functions->keep, slot, kNoStreaming);
}

void Emitter::bring(int v) {
  if (accumulator_ == v) return;
  spill();
  const Resident r = where(v);
  push(r.one ? plan_.functions->spread[wide()] : plan_.functions->fetch, r.place);
  accumulator_ = v;
}

void Emitter::consume(int n) {
  for (int k = 0; k < region::arity(code_[size_t(n)].op); ++k) --uses_[size_t(operand(n, k))];
  spill();  // before slots are given back: the instruction still reads them
  release(n);
}

void Emitter::release(int n) {
  for (int k = 0; k < region::arity(code_[size_t(n)].op); ++k) {
    const int v = operand(n, k);
    const bool again = k > 0 && v == operand(n, 0);
    if (uses_[size_t(v)] == 0 && slot_[size_t(v)] >= 0 && !again) free_.push_back(slot_[size_t(v)]);
  }
}

void Emitter::computed(int n) { accumulator_ = n; }

void Emitter::step(int n) {
  const Instruction& i = code_[size_t(n)];
  switch (i.op) {
    case Op::load:
      return load(n);
    case Op::constant:
      return bring(n);
    case Op::store: {
      const Argument& a = plan_.region.arguments[size_t(i.argument)];
      const ArgumentPlan& to = plan_.arguments[size_t(i.argument)];
      bring(operand(n, 0));
      push(plan_.functions->store[wide()][int(i.lane)][int(a.dtype)], to.place, to.flag);
      --uses_[size_t(operand(n, 0))];
      return release(n);
    }
    case Op::select:
      return select(n);
    default:
      return region::is_unary(i.op) ? unary(n) : binary(n);
  }
}

void Emitter::load(int n) {
  if (resident_(n)) return;
  const Instruction& i = code_[size_t(n)];
  spill();
  const Argument& a = plan_.region.arguments[size_t(i.argument)];
  push(plan_.functions->load[wide()][int(i.lane)][int(a.dtype)], plan_.arguments[size_t(i.argument)].place);
  computed(n);
}

void Emitter::reduce(int n, int place) {
  const Instruction& i = code_[size_t(n)];
  bring(operand(n, 0));
  if (plan_.schedule != Schedule::columns) {
    push(plan_.functions->reduce[int(i.lane)][reduction_index(i.op)], place);
    --uses_[size_t(operand(n, 0))];
    return release(n);
  }
  const Op join = i.op == Op::reduce_sum    ? Op::add
                  : i.op == Op::reduce_prod ? Op::mul
                  : i.op == Op::reduce_max  ? Op::max
                                            : Op::min;
  consume(n);
  push(plan_.functions->binary[int(i.lane)][binary_index(join)][int(Form::memory)], place);
  push(plan_.functions->keep, place, kNoStreaming);
  accumulator_ = -1;
}

void Emitter::unary(int n) {
  const Instruction& i = code_[size_t(n)];
  bring(operand(n, 0));
  consume(n);
  if (i.op == Op::convert) {
    push(plan_.functions->convert[wide()][int(code_[size_t(operand(n, 0))].lane)][int(i.lane)]);
  } else {
    push(plan_.functions->unary[int(i.lane)][unary_index(i.op)]);
  }
  computed(n);
}

void Emitter::binary(int n) {
  const Instruction& i = code_[size_t(n)];
  const int a = operand(n, 0), b = operand(n, 1);
  const auto one = [&](int v) { return v != accumulator_ && where(v).one; };
  if (a == b) {
    bring(a);
    spill(true);
  } else if (accumulator_ != a && accumulator_ != b) {
    bring(one(a) && !one(b) ? b : a);
  }
  bool first = accumulator_ != a;  // the other operand is the first
  int other = first ? a : b;
  const auto& forms = plan_.functions->binary[int(code_[size_t(a)].lane)][binary_index(i.op)];
  if (where(other).one && forms[int(Form::scalar)] == nullptr) {  // masks: commutative, both from memory
    spill(true);
    const int was = accumulator_;
    bring(other);
    other = was;
    first = !first;
  }
  const Resident r = where(other);
  consume(n);
  push(forms[(r.one ? 2 : 0) + int(first)], r.place);
  computed(n);
}

void Emitter::select(int n) {
  const int mask = operand(n, 0), yes = operand(n, 1), no = operand(n, 2);
  const auto& forms = plan_.functions->select[wide()];
  const bool takes_side = accumulator_ >= 0 && accumulator_ != mask &&
                          (accumulator_ == yes || accumulator_ == no) && !where(mask).one;
  if (takes_side) {
    const bool is_yes = accumulator_ == yes;
    const Resident m = where(mask), other = where(is_yes ? no : yes);
    consume(n);
    push(forms[(is_yes ? 4 : 6) + int(other.one)], m.place, other.place);
    return computed(n);
  }
  if (accumulator_ != mask) {
    if (accumulator_ == yes || accumulator_ == no) spill(true);
    bring(mask);
  }
  if (yes == mask || no == mask) spill(true);
  const Resident y = where(yes), z = where(no);
  consume(n);
  push(forms[int(y.one) + 2 * int(z.one)], y.place, z.place);
  computed(n);
}

}  // namespace rlx::cpu::vm
