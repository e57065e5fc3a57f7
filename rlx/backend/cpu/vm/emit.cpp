#include "rlx/backend/cpu/vm/emit.h"

#include <algorithm>
#include <utility>

#include "rlx/backend/cpu/vm/join_end.h"
#include "rlx/base/error.h"

namespace rlx::cpu::vm {

Code Emitter::emit(const std::vector<int>& instructions, const std::function<int(int)>& reduce_into,
                   const std::function<std::optional<int>(int)>& kept) {
  out_.clear();
  uses_.assign(code_.size(), 0);
  slot_.assign(code_.size(), -1);
  stored_.assign(code_.size(), -1);
  joined_.assign(code_.size(), false);
  free_ = slots_;
  accumulator_ = -1;
  pending_ = false;
  keeps_ = last_ = nullptr;
  for (const int n : instructions) {
    for (int k = 0; k < region::arity(code_[size_t(n)].op); ++k) ++uses_[size_t(operand(n, k))];
  }
  find_joined(instructions);
  for (const int n : instructions) {
    if (joined_[size_t(n)]) continue;
    if (region::is_reduction(code_[size_t(n)].op)) {
      reduce(n, reduce_into(n));
    } else {
      step(n);
    }
    if (const auto place = kept(n)) keep_at(*place);
  }
  return finish();
}

// Values that one instruction needs and nothing else. No result may be stored between the two: it could take the
// place of an operand, which is read later than where the value stands.
void Emitter::find_joined(const std::vector<int>& instructions) {
  std::vector<int> left;
  const auto is_left = [&](int v) { return std::find(left.begin(), left.end(), v) != left.end(); };
  for (const int n : instructions) {
    const Instruction& i = code_[size_t(n)];
    if (i.op == Op::store) left.clear();
    if (uses_[size_t(n)] == 1 && !resident_(n)) left.push_back(n);
    for (int k = 0; k < region::arity(i.op); ++k) {
      const int v = operand(n, k);
      if (!is_left(v) || !joins(n, v)) continue;
      joined_[size_t(v)] = true;
      // The difference whose squares are added up.
      const int d = operand(v, 0);
      if (code_[size_t(v)].op == Op::square && is_left(d) && code_[size_t(d)].op == Op::sub &&
          stays(operand(d, 0)) && is_one(operand(d, 1)))
        joined_[size_t(d)] = true;
      break;  // of two such operands the second is computed alone
    }
  }
}

bool Emitter::stays(int v) const {
  const auto r = resident_(v);
  return r.has_value() && !r->one;
}
bool Emitter::is_one(int v) const {
  const auto r = resident_(v);
  return r.has_value() && r->one;
}

bool Emitter::joins(int n, int v) const {
  const Instruction &i = code_[size_t(n)], &of = code_[size_t(v)];
  if (of.op == Op::load) return narrow(n, v) != nullptr;
  if (of.op != Op::mul && of.op != Op::square) return false;
  if (i.op == Op::reduce_sum && plan_.schedule != Schedule::columns) {
    const auto& sums = plan_.functions->reduce[int(i.lane)][reduction_index(Op::reduce_sum)];
    if (of.op == Op::square) return sums[int(Reduced::square)][0] != nullptr;
    // A product that reads an operand of a narrow type itself stands alone.
    if (joined_[size_t(operand(v, 0))] || joined_[size_t(operand(v, 1))]) return false;
    return sums[int(Reduced::product)][0] != nullptr && (stays(operand(v, 0)) || stays(operand(v, 1)));
  }
  return (i.op == Op::add || i.op == Op::sub) && of.op == Op::mul &&
         plan_.functions->product[int(i.lane)][0][0][0] != nullptr && stays(operand(v, 0)) &&
         resident_(operand(v, 1));
}

const Function* Emitter::narrow(int n, int load) const {
  const Instruction &i = code_[size_t(n)], &l = code_[size_t(load)];
  const DType t = plan_.region.arguments[size_t(l.argument)].dtype;
  if (l.lane != Lane::f32 || (i.op != Op::add && i.op != Op::mul) || (t != DType::bf16 && t != DType::f16))
    return nullptr;
  const NarrowForm form = t == DType::bf16 ? (i.op == Op::add ? NarrowForm::add_bf16 : NarrowForm::mul_bf16)
                                           : (i.op == Op::add ? NarrowForm::add_f16 : NarrowForm::mul_f16);
  return plan_.functions->narrow[int(form)];
}

void Emitter::push(Function f, int a, int b, Function keeps, Function last) {
  RLX_CHECK(f != nullptr, "vm: no function for an instruction");
  out_.push_back({.run = f, .a = in_bytes(a), .b = in_bytes(b)});
  keeps_ = keeps;
  last_ = last;
  loops_ = false;
}

Code Emitter::finish() {
  if (out_.empty()) return {};
  if (const Function joined = join_end(out_, *plan_.functions, wide())) {
    last_ = joined;
    loops_ = true;
  }
  if (last_ == nullptr) {
    push(plan_.functions->end);
  } else {
    out_.back().run = last_;
  }
  out_.back().before = uint32_t(out_.size() - 1);
  const bool alone = loops_ && (out_.size() == 1 || (out_.size() == 2 && out_[0].before != 0));
  return {out_, alone ? INT64_MAX : kBlocksPerTurn};
}

Resident Emitter::where(int v) const {
  if (const auto r = resident_(v)) return *r;
  if (stored_[size_t(v)] >= 0) return {stored_[size_t(v)], false};
  RLX_CHECK(slot_[size_t(v)] >= 0, "vm: %", v, " is not in memory");
  return {slot_[size_t(v)], false};
}

void Emitter::accumulate(int v) {
  accumulator_ = v;
  pending_ = false;
}

void Emitter::need_registers() {
  if (pending_) push(plan_.functions->fetch, where(accumulator_).place);
  pending_ = false;
}

void Emitter::keep_at(int place) {
  need_registers();
  if (keeps_ != nullptr) {
    out_.back().run = keeps_;
    out_.back().c = in_bytes(place);
    keeps_ = nullptr;
  } else {
    push(plan_.functions->keep[0], place, kNoStreaming, nullptr, plan_.functions->keep[1]);
  }
}

void Emitter::spill(bool needed_in_memory) {
  if (accumulator_ < 0 || in_memory(accumulator_)) return;
  if (uses_[size_t(accumulator_)] == 0 && !needed_in_memory) return;
  int slot = -1;
  if (free_.empty()) {
    slot = new_slot_();
    slots_.push_back(slot);
  } else {
    slot = free_.back();
    free_.pop_back();
  }
  slot_[size_t(accumulator_)] = slot;
  keep_at(slot);
}

void Emitter::bring(int v) {
  if (accumulator_ == v) return;
  spill();
  const Resident r = where(v);
  accumulate(v);
  pending_ = !r.one;
  if (r.one) push(plan_.functions->spread[wide()], r.place);
}

void Emitter::use_up(int n) {
  for (int k = 0; k < region::arity(code_[size_t(n)].op); ++k) --uses_[size_t(operand(n, k))];
  release(n);
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

void Emitter::step(int n) {
  const Instruction& i = code_[size_t(n)];
  switch (i.op) {
    case Op::load:
      return load(n);
    case Op::constant:
      return bring(n);
    case Op::store:
      return store(n);
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
  accumulate(n);
}

void Emitter::store(int n) {
  const Instruction& i = code_[size_t(n)];
  const Argument& a = plan_.region.arguments[size_t(i.argument)];
  const ArgumentPlan& to = plan_.arguments[size_t(i.argument)];
  bring(operand(n, 0));
  if (is_native(a.dtype, i.lane) && to.flag == kNoStreaming) {
    keep_at(to.place);
    stored_[size_t(operand(n, 0))] = to.place;
  } else {
    need_registers();
    const auto& forms = plan_.functions->store[wide()][int(i.lane)][int(a.dtype)];
    push(forms[0], to.place, to.flag, nullptr, forms[1]);
  }
  use_up(n);
}

// The accumulator stays as it is.
void Emitter::reduce_vector(int n, int place) {
  const Instruction& i = code_[size_t(n)];
  const int v = operand(n, 0);
  const auto& forms = plan_.functions->reduce[int(i.lane)][reduction_index(i.op)];
  Reduced what = Reduced::accumulator;
  int b = 0, c = 0;  // places
  if (!joined_[size_t(v)]) {
    bring(v);
    if (pending_ && forms[int(Reduced::memory)][0] != nullptr) {
      what = Reduced::memory;
      b = where(v).place;
    }
  } else if (const int d = operand(v, 0); joined_[size_t(d)]) {
    what = Reduced::about;
    b = where(operand(d, 0)).place;
    c = where(operand(d, 1)).place;
    use_up(d);
  } else {
    const bool square = code_[size_t(v)].op == Op::square;
    const int factor = square ? 0 : int(stays(operand(v, 1)));
    bring(operand(v, square ? 0 : 1 - factor));
    what = pending_ ? Reduced::two_memories : square ? Reduced::square : Reduced::product;
    if (pending_) c = where(accumulator_).place;
    if (what != Reduced::square) b = where(operand(v, factor)).place;
  }
  if (what < Reduced::memory) need_registers();
  push(forms[int(what)][0], place, b, nullptr, forms[int(what)][1]);
  out_.back().c = in_bytes(c);
  loops_ = what >= Reduced::memory;
  if (joined_[size_t(v)]) use_up(v);
  use_up(n);
}

void Emitter::reduce(int n, int place) {
  const Instruction& i = code_[size_t(n)];
  if (plan_.schedule != Schedule::columns) return reduce_vector(n, place);
  bring(operand(n, 0));
  const Op join = i.op == Op::reduce_sum    ? Op::add
                  : i.op == Op::reduce_prod ? Op::mul
                  : i.op == Op::reduce_max  ? Op::max
                                            : Op::min;
  need_registers();
  consume(n);
  const auto& form = plan_.functions->binary[int(i.lane)][binary_index(join)][int(Form::memory)];
  push(form[0], place, 0, form[1]);
  accumulate(-1);
  keep_at(place);
}

void Emitter::unary(int n) {
  const Instruction& i = code_[size_t(n)];
  bring(operand(n, 0));
  const auto& products = plan_.functions->binary[int(i.lane)][binary_index(Op::mul)][int(Form::two_memories)];
  if (pending_ && i.op == Op::square && products[0] != nullptr) {
    const int place = where(operand(n, 0)).place;
    consume(n);
    push(products[0], place, place, products[1]);
    return accumulate(n);
  }
  need_registers();
  consume(n);
  if (i.op == Op::convert) {
    push(plan_.functions->convert[wide()][int(code_[size_t(operand(n, 0))].lane)][int(i.lane)]);
  } else {
    const auto& form = plan_.functions->unary[int(i.lane)][unary_index(i.op)];
    push(form[0], 0, 0, form[1]);
  }
  accumulate(n);
}

void Emitter::binary(int n) {
  const Instruction& i = code_[size_t(n)];
  const int a = operand(n, 0), b = operand(n, 1);
  for (const int v : {a, b}) {
    if (joined_[size_t(v)])
      return code_[size_t(v)].op == Op::load ? with_narrow(n, v) : sum_of_products(n, v);
  }
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
  if (where(other).one && forms[int(Form::scalar)][0] == nullptr) {  // masks: commutative, both from memory
    need_registers();
    spill(true);
    const int was = accumulator_;
    bring(other);
    other = was;
    first = !first;
  }
  const Resident r = where(other);
  if (pending_ && forms[int(Form::two_memories)][0] != nullptr) {
    int x = where(accumulator_).place, y = r.place;
    if (!r.one && first) std::swap(x, y);
    const Form form = !r.one ? Form::two_memories : first ? Form::scalar_memory : Form::memory_scalar;
    consume(n);
    push(forms[int(form)][0], y, x, forms[int(form)][1]);
  } else {
    need_registers();
    consume(n);
    const auto& form = forms[(r.one ? 2 : 0) + int(first)];
    push(form[0], r.place, 0, form[1]);
  }
  accumulate(n);
}

void Emitter::sum_of_products(int n, int product) {
  const bool first = operand(n, 0) == product;
  bring(operand(n, first ? 1 : 0));
  need_registers();
  const Resident x = where(operand(product, 0)), y = where(operand(product, 1));
  use_up(product);
  consume(n);
  const ProductForm form = code_[size_t(n)].op == Op::add ? ProductForm::add
                           : first                        ? ProductForm::sub_first
                                                          : ProductForm::sub;
  const auto& forms = plan_.functions->product[int(code_[size_t(n)].lane)][int(form)][int(y.one)];
  push(forms[0], y.place, x.place, forms[1]);
  accumulate(n);
}

void Emitter::with_narrow(int n, int load) {
  bring(operand(n, operand(n, 0) == load ? 1 : 0));
  need_registers();
  consume(n);
  const Function* forms = narrow(n, load);
  push(forms[0], 0, plan_.arguments[size_t(code_[size_t(load)].argument)].place, forms[1]);
  accumulate(n);
}

void Emitter::select(int n) {
  const int mask = operand(n, 0), yes = operand(n, 1), no = operand(n, 2);
  const auto& forms = plan_.functions->select[wide()];
  const bool takes_side = accumulator_ >= 0 && accumulator_ != mask &&
                          (accumulator_ == yes || accumulator_ == no) && !where(mask).one;
  if (takes_side) {
    const bool is_yes = accumulator_ == yes;
    const Resident m = where(mask), other = where(is_yes ? no : yes);
    need_registers();
    consume(n);
    push(forms[(is_yes ? 4 : 6) + int(other.one)], m.place, other.place);
    return accumulate(n);
  }
  if (accumulator_ != mask) {
    if (accumulator_ == yes || accumulator_ == no) spill(true);
    bring(mask);
  }
  need_registers();
  if (yes == mask || no == mask) spill(true);
  const Resident y = where(yes), z = where(no);
  consume(n);
  push(forms[int(y.one) + 2 * int(z.one)], y.place, z.place);
  accumulate(n);
}

}  // namespace rlx::cpu::vm
