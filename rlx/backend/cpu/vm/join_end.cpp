#include "rlx/backend/cpu/vm/join_end.h"

namespace rlx::cpu::vm {
namespace {

// Reads code from its end. Instructions whose results stay in registers are the only ones to go: what is kept at a place may be read
// by others before.
class End {
 public:
  End(const std::vector<Micro>& code, const Functions& f, bool wide)
      : code_(code), f_(f), lane_(int(wide ? Lane::f64 : Lane::f32)), at_(code.size()) {
    head.before = in_bytes(kNoStreaming);
    if (code.back().run == f.keep[0]) {
      more.c = code.back().a;
      head.before = code.back().b;
      keeps_ = 0;
      --at_;
    } else {
      more.c = code.back().c;
    }
  }

  // False where the code ends otherwise. From z backwards to x.
  bool read() {
    if (const Micro* m = first(Op::div, Form::memory_scalar, Form::memory_scalar)) {
      parts = kDivided;
      head.c = m->a;
      return true;
    }
    if (shifted_product(false) || shifted_product(true)) return true;
    if (part(Op::add, {Form::memory, Form::memory_first}, {Form::two_memories, Form::two_memories}, kShifted,
             more.b) ||
        part(Op::mul, {Form::memory, Form::memory_first}, {Form::two_memories, Form::two_memories}, kWeighed,
             more.a) ||
        part(Op::mul, {Form::scalar, Form::scalar_first}, {Form::memory_scalar, Form::scalar_memory}, kTimes,
             head.c))
      return true;
    const Micro* m = first(Op::sub, Form::memory_scalar, Form::memory_scalar);
    if (m == nullptr) return false;
    parts |= kMinus;
    head.b = m->a;
    return true;
  }

  Function joined() const { return f_.affine[lane_][parts]; }
  /// Instructions in front of the end.
  size_t at() const { return at_; }

  Micro head, more;
  int parts = 0;

 private:
  struct Forms {
    Form one, same;  // of one operation
  };

  // The instruction before, if it is this operation in one of two forms.
  const Micro* take(Op op, Form form, Form same) {
    if (at_ == 0) return nullptr;
    const Micro& m = code_[at_ - 1];
    const auto& forms = f_.binary[lane_][binary_index(op)];
    if (m.run != forms[int(form)][keeps_] && m.run != forms[int(same)][keeps_]) return nullptr;
    keeps_ = 0;
    --at_;
    return &m;
  }
  // One that also loads x.
  const Micro* first(Op op, Form form, Form same) {
    const Micro* m = take(op, form, same);
    if (m != nullptr) head.a = m->b;
    return m;
  }
  // An operation on the accumulator, or one that begins with x; true in the second case.
  bool part(Op op, Forms behind, Forms beginning, int bit, decltype(Micro::a)& operand) {
    if (const Micro* m = take(op, behind.one, behind.same)) {
      parts |= bit;
      operand = m->a;
      return false;
    }
    const Micro* m = first(op, beginning.one, beginning.same);
    if (m == nullptr) return false;
    parts |= bit;
    operand = m->a;
    return true;
  }
  bool shifted_product(bool one) {
    if (at_ < 2 || code_[at_ - 2].run != f_.fetch ||
        code_[at_ - 1].run != f_.product[lane_][int(ProductForm::add)][int(one)][keeps_])
      return false;
    parts = kShifted | (one ? kTimes : kWeighed);
    more.b = code_[at_ - 2].a;
    head.a = code_[at_ - 1].b;
    (one ? head.c : more.a) = code_[at_ - 1].a;
    at_ -= 2;
    return true;
  }

  const std::vector<Micro>& code_;
  const Functions& f_;
  int lane_;
  size_t at_;
  int keeps_ = 1;  // the next instruction may be one that keeps its result
};

}  // namespace

Function join_end(std::vector<Micro>& code, const Functions& f, bool wide) {
  End end(code, f, wide);
  if (!end.read() || end.joined() == nullptr) return nullptr;
  code.resize(end.at());
  end.head.run = end.joined();
  code.push_back(end.head);
  code.push_back(end.more);
  return end.joined();
}

}  // namespace rlx::cpu::vm
