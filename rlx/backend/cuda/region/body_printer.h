// Instructions of a region as statements of CUDA C++: what kernels over elements (printer.cpp) and over rows (rows_printer.h) have in
// common. Names in the text: a0, a1, .. are the addresses of arguments, o0, .. their offsets at this element, b0, .. those of this row;
// v7 is what instruction 7 computes, r7 what a reduction has gathered; p0, q0 are packs of neighbours that were loaded or will be stored;
// k0 is kept in registers from phase to phase.
#pragma once

#include <string>
#include <vector>

#include "rlx/backend/cuda/region/schedule.h"
#include "rlx/backend/cuda/region/words.h"
#include "rlx/base/text.h"

namespace rlx::cuda {

class BodyPrinter {
 public:
  BodyPrinter(const region::Region&, const Schedule&);

  /// One kernel over all elements.
  std::string elements_kernel();
  /// print_element_function and print_vector_function of printer.h.
  std::string element_function(const std::string& name, const std::vector<bool>& values);

 protected:
  using Argument = region::Argument;
  using Instruction = region::Instruction;

  /// What stands between two barriers: values of the row, then of its elements; instructions in order.
  struct Phase {
    std::vector<int> rows, elements;
  };

  const Instruction& at(int n) const { return r_.code[size_t(n)]; }
  const Argument& argument(const Instruction& i) const { return r_.arguments[size_t(i.argument)]; }
  bool is_summed(size_t a) const { return a < summed_.size() && summed_[a]; }
  /// Kept in registers between phases: scratch rows, and inputs whose elements are loaded in the first
  /// phase and again later.
  bool is_kept(size_t a) const;
  bool loads_in_phase(size_t phase, size_t a) const;
  bool later_loads(size_t a) const;

  // Lines.
  void line(const std::string& indent, const std::string& text) { text_ += indent + text + "\n"; }
  void define(const std::string& indent, int n, const std::string& e);
  /// A loop over the rows of a thread, where it has several.
  void begin_rows(const std::string& indent);
  void end_rows(const std::string& indent);
  std::string indent_of_rows() const { return wide_ > 1 ? "    " : "  "; }

  // Expressions. Where a thread has several rows, w counts them: row values and what reductions gather are one number for each.
  std::string of_row(std::string_view name, int n) const { return cat(name, n, wide_ > 1 ? "[w]" : ""); }
  std::string value(int n) const { return at(n).per_row ? of_row("v", n) : cat("v", n); }
  std::string gathered(int n) const { return of_row("r", n); }
  std::string expression(const Instruction& i) const;
  std::string read(const Instruction& i, const std::string& place) const;

  // Places.
  std::string name_of(size_t a) const { return cat("a", a); }
  /// i0, i1, .. of dimensions [from, to) out of a number that counts their elements.
  void print_indices(const std::string& indent, const std::string& name, const std::string& number,
                     size_t from, size_t to);
  std::string offset(const Argument& a, const std::string& name, size_t from, size_t to) const;
  bool in_pack(const Argument& x) const;
  std::string pack_place(std::string_view name, size_t a) const;
  /// What is added to a place for row w of several.
  std::string row_step(const Argument& x) const;
  std::string element_place(const Argument& x, size_t a) const;
  std::string kept_place(size_t a) const;
  /// Results in `once_` are written by the first block alone.
  std::string guard(size_t a) const { return a < once_.size() && once_[a] ? "if (blockIdx.x == 0) " : ""; }

  /// The arguments as parameters, each with a comma behind it; those in `values` are no addresses.
  std::string parameters(const std::vector<bool>& values) const;
  std::string signature(const std::string& entry, int threads) const;

  /// Instructions at the columns c .. c + vector - 1; o0, o1, .. are the offsets of the arguments there.
  /// `phase`: which one it is, for values kept in registers; -1 where none are.
  void print_body(const std::string& indent, const std::vector<int>& list, int phase);
  void print_instruction(const std::string& indent, int n, int phase);

  const region::Region& r_;
  const Schedule& s_;
  std::vector<Phase> phases_;
  std::vector<bool> once_, values_;  // of arguments, in functions
  std::vector<bool> summed_;         // arguments that are summed over all rows
  std::string text_;
  std::string index_;  // the type of offsets
  int wide_ = 1;       // rows of a thread, in the kernel that is being printed

 private:
  void cut_phases();
  void print_elements();
  void print_load(const std::string& indent, int n, int phase);
  void print_store(const std::string& indent, int n, int phase);
};

}  // namespace rlx::cuda
