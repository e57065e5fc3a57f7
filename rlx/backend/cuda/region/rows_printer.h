// Regions with reductions as CUDA C++: rows are spread over warps, blocks or neighbouring threads as the schedule says.
#pragma once

#include "rlx/backend/cuda/region/body_printer.h"

namespace rlx::cuda {

class RowsPrinter : public BodyPrinter {
 public:
  using BodyPrinter::BodyPrinter;

  /// One kernel does all; where a row is split over blocks, one finds the parts and another joins them.
  enum class Stage : uint8_t { whole, parts, join };
  std::string rows_kernel(const std::string& entry, Stage stage);
  /// print_row_function and print_rows_with_sums of printer.h.
  std::string row_function(const std::string& name, const std::vector<bool>& once);
  std::string rows_with_sums(const std::string& name, const std::vector<bool>& summed, int64_t blocks);

  /// What a kernel of one stage needs for rows of scratch, and what parts of reductions take.
  int64_t scratch_bytes() const;
  int64_t partials_bytes() const;

 private:
  int64_t bytes_of_scratch(const Argument& a) const;
  bool along_rows(Stage stage) const { return s_.threads_along_rows && stage != Stage::join; }
  /// The value of a reduction from what threads gathered.
  std::string joined(Stage stage, const Instruction& i, int n) const;
  std::string part_place(int reduction, const std::string& part) const;

  void declare_rows(std::string_view name, int n);
  void print_row_start(Stage stage);
  void print_row_places();
  void print_scratch();
  void print_phases(Stage stage);
  void print_row_values(const std::vector<int>& rows);
  void print_columns(const Phase& phase, int number, Stage stage);
  void print_live_body(const Phase& phase, int number, const std::vector<size_t>& asked);
  void print_loads_ahead();
  /// Arguments whose packs the next round of a phase asks for before this one computes.
  std::vector<size_t> asked_ahead(const Phase& phase, Stage stage) const;
  void print_ask(const std::vector<size_t>& arguments, const std::string& first);
  void print_gathering(int n);
  void print_reductions(const Phase& phase, Stage stage);
  void print_parts_read(int n, int reduction);
  void print_sums_of_block(int warps, int64_t blocks);
};

}  // namespace rlx::cuda
