#include "rlx/backend/cuda/region/printer.h"

#include "rlx/backend/cuda/region/rows_printer.h"

namespace rlx::cuda {
namespace {

PrintedRegion print_elements(const region::Region& r, const Schedule& s) {
  PrintedRegion out;
  out.schedule = s;
  const int64_t each = int64_t(256) * s.vector, count = r.rows() * r.columns();
  out.kernels.push_back(
      {{"region", BodyPrinter(r, s).elements_kernel()}, {(count + each - 1) / each}, {256}});
  return out;
}

PrintedRegion print_rows(const region::Region& r, const Schedule& s) {
  using Stage = RowsPrinter::Stage;
  PrintedRegion out;
  out.schedule = s;
  RowsPrinter printer(r, s);
  const int64_t blocks = (r.rows() + s.rows_per_block - 1) / s.rows_per_block;
  const Grid block = s.threads_along_rows ? Grid{32, s.lanes} : Grid{s.threads};
  if (s.spread == Spread::split) {
    out.workspace = size_t(printer.partials_bytes());
    out.kernels.push_back(
        {{"region_parts", printer.rows_kernel("region_parts", Stage::parts)}, {blocks, s.splits}, block});
    out.kernels.push_back(
        {{"region_join", printer.rows_kernel("region_join", Stage::join)}, {(r.rows() + 3) / 4}, {128}});
    return out;
  }
  out.workspace = s.in_registers ? 0 : size_t(printer.scratch_bytes());
  out.kernels.push_back({{"region", printer.rows_kernel("region", Stage::whole)}, {blocks}, block});
  return out;
}

}  // namespace

PrintedRegion print_region(const region::Region& r, const Schedule& s) {
  return s.spread == Spread::elements ? print_elements(r, s) : print_rows(r, s);
}

Source print_rows_with_sums(const region::Region& r, const Schedule& s, const std::vector<bool>& summed,
                            int64_t blocks) {
  return {"rows_with_sums", RowsPrinter(r, s).rows_with_sums("rows_with_sums", summed, blocks)};
}

std::string print_row_function(const region::Region& r, const Schedule& s, const std::string& name,
                               const std::vector<bool>& once) {
  return RowsPrinter(r, s).row_function(name, once);
}

std::string print_element_function(const region::Region& r, const std::string& name,
                                   const std::vector<bool>& values) {
  const Schedule one;
  return BodyPrinter(r, one).element_function(name, values);
}

std::string print_vector_function(const region::Region& r, const Schedule& s, const std::string& name,
                                  const std::vector<bool>& values) {
  return BodyPrinter(r, s).element_function(name, values);
}

}  // namespace rlx::cuda
