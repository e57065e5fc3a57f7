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
/// taken its registers goes to a slot, one block in the first-level cache. What the machine does in one
/// instruction is joined: loading an operand, keeping a result, the product in a sum of products.
class Emitter {
 public:
  /// `resident` tells where a value lies that the code need not compute; `new_slot` makes the place of a slot.
  Emitter(const Plan& plan, std::function<std::optional<Resident>(int)> resident,
          std::function<int()> new_slot)
      : plan_(plan),
        code_(plan.region.code),
        resident_(std::move(resident)),
        new_slot_(std::move(new_slot)) {}

  /// Code for these instructions. `reduce_into` is the place of a reduction, `kept` where a value is put, if
  /// anywhere.
  Code emit(const std::vector<int>& instructions, const std::function<int(int)>& reduce_into,
            const std::function<std::optional<int>(int)>& kept);

 private:
  void step(int n);
  void load(int n);
  void store(int n);
  void reduce(int n, int place);
  void reduce_vector(int n, int place);
  void unary(int n);
  void binary(int n);
  void sum_of_products(int n, int product);
  void with_narrow(int n, int load);
  void select(int n);

  int operand(int n, int k) const { return code_[size_t(n)].operands[size_t(k)]; }
  bool in_memory(int v) const {
    return resident_(v).has_value() || slot_[size_t(v)] >= 0 || stored_[size_t(v)] >= 0;
  }
  Resident where(int v) const;
  /// Which values are left to the instruction that needs them: products of a sum, loads of narrow types.
  void find_joined(const std::vector<int>& instructions);
  bool joins(int n, int v) const;
  /// Forms of n that read its operand from memory of a narrow type; null if there are none.
  const Function* narrow(int n, int load) const;
  /// Whether v lies in memory all the time, element by element.
  bool stays(int v) const;
  bool is_one(int v) const;

  /// Forms of a function: alone, and with the accumulator kept at c or as the last instruction.
  void push(Function f, int a = 0, int b = 0, Function keeps = nullptr, Function last = nullptr);
  Code finish();
  /// The value of the accumulator, which its registers hold or which is yet to be loaded.
  void accumulate(int v);
  void need_registers();
  void keep_at(int place);
  void spill(bool needed_in_memory = false);
  void bring(int v);
  /// The operands of n are used up; keeps the accumulator's value if anyone needs it later.
  void consume(int n);
  void use_up(int n);
  void release(int n);
  int wide() const { return plan_.width == 8; }

  const Plan& plan_;
  const std::vector<Instruction>& code_;
  std::function<std::optional<Resident>(int)> resident_;
  std::function<int()> new_slot_;
  std::vector<Micro> out_;
  std::vector<int> uses_, slot_, slots_, free_;
  std::vector<int> stored_;  // place of the result or scratch row that holds a value, else -1
  std::vector<bool> joined_;
  int accumulator_ = -1;
  bool pending_ = false;                       // the accumulator's value lies in memory and is not loaded yet
  Function keeps_ = nullptr, last_ = nullptr;  // other forms of the last instruction
  bool loops_ = false;                         // which goes round itself while it is alone
};

}  // namespace rlx::cpu::vm
