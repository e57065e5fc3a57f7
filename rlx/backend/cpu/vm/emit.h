// From instructions of a region to code of the register machine.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "rlx/backend/cpu/vm/plan.h"

namespace rlx::cpu::vm {

/// A value that memory holds already.
struct Resident {
  int place = 0;
  bool one = false;  // one element for all lanes
};

/// Walks instructions in order with one accumulator. A value that is needed again after the next operation has
/// taken its registers goes to a slot, one block in the first-level cache.
class Emitter {
 public:
  /// `resident` tells where a value lies that the code need not compute; `new_slot` makes the place of a slot.
  Emitter(const Plan& plan, std::function<std::optional<Resident>(int)> resident,
          std::function<int()> new_slot)
      : plan_(plan),
        code_(plan.region.code),
        resident_(std::move(resident)),
        new_slot_(std::move(new_slot)) {}

  /// Code for these instructions. `reduce_into` is the place of a reduction.
  std::vector<Micro> emit(const std::vector<int>& instructions, const std::function<int(int)>& reduce_into,
                          const std::function<std::optional<int>(int)>& keep_at);

 private:
  void step(int n);
  void load(int n);
  void reduce(int n, int place);
  void unary(int n);
  void binary(int n);
  void select(int n);

  int operand(int n, int k) const { return code_[size_t(n)].operands[size_t(k)]; }
  bool in_memory(int v) const { return resident_(v).has_value() || slot_[size_t(v)] >= 0; }
  Resident where(int v) const;
  void push(Function f, int a = 0, int b = 0);
  void spill(bool needed_in_memory = false);
  void bring(int v);
  /// The operands of n are used up; keeps the accumulator's value if anyone needs it later.
  void consume(int n);
  void release(int n);
  void computed(int n);
  int wide() const { return plan_.width == 8; }

  const Plan& plan_;
  const std::vector<Instruction>& code_;
  std::function<std::optional<Resident>(int)> resident_;
  std::function<int()> new_slot_;
  std::vector<Micro> out_;
  std::vector<int> uses_, slot_, slots_, free_;
  int accumulator_ = -1;
};

}  // namespace rlx::cpu::vm
