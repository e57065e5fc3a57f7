// One thread's part of a run.
#pragma once

#include <span>

#include "rlx/backend/cpu/kernels/copy.h"
#include "rlx/backend/cpu/vm/plan.h"

namespace rlx::cpu::vm {

class Runner {
 public:
  Runner(const Plan& plan, const CopyKernels& copies, std::span<std::byte* const> arguments,
         std::byte* workspace);

  /// Schedules tiles and rows: all phases of `rows` rows from `row` on, over the columns [begin, end).
  void run_group(int64_t row, int64_t rows, int64_t begin, int64_t end);
  /// Schedule columns: lanes [lane, lane + lanes) of the rows that share all but the last row dimension.
  void run_lines(int64_t outer, int64_t lane, int64_t lanes);
  void finish();

 private:
  /// Where a place points at the start of a line.
  char*& place(int n) { return n < plan_.moving ? places_[n] : work_[n]; }
  void start_line();
  void run(const Code&, int64_t blocks);
  char* base(int argument) const { return reinterpret_cast<char*>(arguments_[size_t(argument)]); }
  char* in_workspace(int64_t offset) const { return reinterpret_cast<char*>(workspace_) + offset; }
  const Argument& argument(int n) const { return plan_.region.arguments[size_t(n)]; }
  int64_t argument_count() const { return int64_t(plan_.arguments.size()); }

  int64_t offset_in(int argument, int first_dim, int last_dim, int64_t index) const;
  void find_row_offsets(int64_t row, int64_t rows);
  template <class OffsetOf>
  void row_values(const Pass&, int64_t n, OffsetOf offset_of);

  // Schedules tiles and rows.
  bool run_straight(const Pass&, int64_t rows, int64_t begin, int64_t end);
  void run_row(const Pass&, int64_t r, int64_t begin, int64_t end);
  void bind_row(const Pass&, int64_t r, int64_t outer, int64_t column, int64_t n);
  void bind_elements(const Pass&, int64_t r);
  void scatter_row(const Pass&, int64_t r, int64_t outer, int64_t column, int64_t n) const;
  static void start_sum(const Reduction&, char* total);
  void finish_sum(const Reduction&, const char* total, char* lane) const;
  void start_reductions(const Pass&);
  void fold_reductions(const Pass&);
  void finish_reductions(const Pass&, int64_t r);
  void run_panels(const Pass&, int64_t rows, int64_t begin, int64_t end);
  void move_panel(int argument, int64_t rows, int64_t column, int64_t n, bool back) const;

  // Schedule columns.
  void join_lines(const Pass&, int64_t lanes);

  /// Code over n lanes; the last, partial block goes through staging memory.
  void line(const Pass&, int64_t n);
  void tail(const Pass&, int64_t full, int64_t n);
  int64_t blocks(int64_t lanes) const { return (lanes + plan_.block - 1) / plan_.block; }
  void gather(int argument, const char* from, int64_t stride, char* to, int64_t n) const;
  void scatter(int argument, const char* from, char* to, int64_t stride, int64_t n) const;

  const Plan& plan_;
  const CopyKernels& copies_;
  std::span<std::byte* const> arguments_;
  std::byte* workspace_;
  char **places_, **work_;         // at the start of a line; as the code moves them
  int64_t* offsets_;               // [row of the group][argument], in elements
  int64_t* list_;                  // offsets of one argument, row after row
  int64_t inner_ = 1, outer_ = 1;  // sizes of the innermost column dimension, of the others together
};

}  // namespace rlx::cpu::vm
