// A program on single numbers, for loops whose steps are too small for vectors: regions of one element, one after the other,
// on a row of slots. Every operation gives the bits of its vector form.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "rlx/base/dtype.h"
#include "rlx/region/region.h"

namespace rlx::cpu {

class ScalarProgram {
 public:
  /// A number in the lane of its type; a mask and a bool are 0 or 1 in `i64`.
  union Slot {
    int64_t i64;
    int32_t i32;
    double f64;
    float f32;
  };

  static bool holds(DType);
  static void read(DType, const std::byte* from, Slot& to);
  static void write(DType, const Slot& from, std::byte* to);
  /// In the width it was written in: a wider read would wait until memory has it.
  static void copy(DType, const Slot& from, Slot& to);

  /// Why a region cannot be part of such a program; nothing when it can.
  static std::optional<std::string> refuses(const region::Region&);

  int add_slot();
  int add_constant(DType, const std::byte* value);
  /// Appends a region, operand i of which is in inputs[i]; the slots of its results.
  std::vector<int> add(const region::Region&, std::span<const int> inputs);

  size_t slots() const { return start_.size(); }
  size_t operations() const { return code_.size(); }
  /// The slots of a number that the next run gets in place of the one that this run got.
  struct Carry {
    int old, next;
  };
  /// Once, behind the last region: puts operations in an order in which most of them read what the one before made, which
  /// then goes on in a register instead of waiting for memory.
  void chain(std::span<const Carry> carries);
  /// The operation that made the number in `from` writes it to `to` instead, where the old number is not needed any more by then.
  /// False, and nothing is changed, where it is, or where no operation made it.
  bool redirect(int from, int to);
  /// Constants to their slots.
  void begin(Slot*) const;
  void run(Slot* slots) const {
    Carried last{};
    for (const Code& c : code_) last = c.run(*this, c, slots, last);
  }

 private:
  using Kernel = void (*)();  // of one or two numbers, in the type of the operation
  /// What the operation before made, in the first bytes of a vector register.
  using Carried = double __attribute__((vector_size(16)));
  struct Code;
  using Run = Carried (*)(const ScalarProgram&, const Code&, Slot*, Carried last);
  struct Code {
    Run run = nullptr;
    const Run* forms = nullptr;  // run, by the operands that are the last number: 1 for a, 2 for b, 4 for c
    int to = -1, a = -1, b = -1, c = -1;  // slots; -1: none
    Kernel kernel = nullptr;              // of a function that is more than an instruction
    int rare = -1;                        // of rare_
  };
  struct Rare {  // an operation that its meaning computes (rlx/region/scalar.h)
    region::Instruction instruction;
    region::Lane from;
  };
  struct Forms;
  class Order;

  /// A number in another lane.
  int converted(int slot, region::Lane from, region::Lane to);
  Code code_of(const region::Region&, const region::Instruction&, std::span<const int> places);
  /// A sum or difference with the product that is its operand `which`.
  Code with_product(const region::Region&, const region::Instruction&, int which,
                    std::span<const int> places);

  std::vector<Slot> start_;
  std::vector<Code> code_;
  std::vector<Rare> rare_;
};

}  // namespace rlx::cpu
