// Sorting along an axis: a block for each line, in shared memory; longer lines in tiles that are merged.
#include "rlx/backend/cuda/kernels/sort.h"

#include "rlx/backend/control/body.h"
#include "rlx/backend/cuda/kernels/merge_sort.h"
#include "rlx/backend/cuda/nodes/element_kernel.h"
#include "rlx/backend/cuda/nodes/sort_lines.h"
#include "rlx/ops/reduce/sort.h"

namespace rlx::cuda {
namespace {

constexpr int64_t kTile = 2048;  // 12 bytes each in shared memory, 48 KiB at most without asking for more
constexpr int kMergeThreads = 256;

std::string order_text(DType t, bool descending) {
  const char* wide = is_float(t) ? "f64" : "i64";
  // NaN is above everything.
  const char* below = "b != b ? a == a : a < b";
  const char* above = "a != a ? b == b : b < a";
  return cat("typedef ", memory_type(t), " X;\ntypedef ", wide, " Wide;\n#define WIDEN as_", wide,
             "\ninline bool first(Wide a, Wide b) { return ", descending ? above : below, "; }\n");
}

Support accepts(const Request& r) {
  return r.in[0].is_row_major() ? Support::yes() : Support::no("operand 0 is strided");
}

std::unique_ptr<Step> prepare(const Request& r) {
  const auto& a = r.node.as<ops::Sort>();
  const AxisView v = axis_view(r.in[0].shape, a.axis);
  if (r.in[0].shape.elements() == 0) return make_gpu_step("empty", [](Stream&, const Launch&) {});
  const LineSorter sorter(device_of(r), r.in[0].dtype(), a.descending, v.outer * v.inner, v.length, v.inner);
  return make_gpu_step(
      sorter.note(),
      [sorter](Stream& s, const Launch& l) { sorter.run(s, l.in[0], l.out[0], l.out[1], l.workspace); },
      sorter.workspace());
}

}  // namespace

LineSorter::LineSorter(const Device& device, DType t, bool descending, int64_t lines, int64_t length,
                       int64_t inner)
    : lines_(lines), length_(length), inner_(inner) {
  while (tile_ < length && tile_ < kTile) tile_ *= 2;
  tiles_ = (length + tile_ - 1) / tile_;
  while ((int64_t(1) << passes_) < tiles_) ++passes_;
  threads_ = int(std::clamp<int64_t>(tile_ / 2, 32, 512));
  const std::string order = order_text(t, descending);
  const auto yes = [](bool b) { return b ? "true" : "false"; };
  sort_ = device.functions().get(
      {"sort", cat(order, "constexpr int kSize = ", tile_, ", kThreads = ", threads_,
                   ";\nconstexpr bool kRuns = ", yes(passes_ > 0), ";\n", kSortKernel)});
  if (passes_ == 0) return;
  const auto merge = [&](bool last) {
    return device.functions().get(
        {"merge_runs", cat(order, "constexpr int kTile = ", tile_, ", kThreads = ", kMergeThreads,
                           ";\nconstexpr bool kLast = ", yes(last), ";\n", kMergeKernel)});
  };
  merge_ = merge(false), last_ = merge(true);
  values_bytes_ = backend::aligned_size(size_t(lines * length) * dtype_size(t));
  place_bytes_ = values_bytes_ + backend::aligned_size(size_t(lines * length) * sizeof(int32_t));
  workspace_ = (inner == 1 ? 1 : 2) * place_bytes_;
}

std::string LineSorter::note() const {
  return passes_ == 0 ? "a block for each line" : cat("tiles of ", tile_, ", merged in ", passes_, " passes");
}

// Passes alternate between the results and one place beside them, so that the last one ends in the results; where lines are not
// runs there, between two places.
std::byte* LineSorter::place_of(int pass, std::byte* result, std::byte* workspace, size_t offset) const {
  const int left = passes_ - pass;
  if (left == 0 || (inner_ == 1 && left % 2 == 0)) return result;
  return workspace + (left % 2 == 0 ? place_bytes_ : 0) + offset;
}

void LineSorter::run(const Stream& s, const std::byte* x, std::byte* values, std::byte* places,
                     std::byte* workspace) const {
  const auto value_of = [&](int pass) { return place_of(pass, values, workspace, 0); };
  const auto index_of = [&](int pass) { return place_of(pass, places, workspace, values_bytes_); };
  const Grid grid{lines_ * tiles_};
  (*sort_)(s.handle, grid, {threads_}, 0, x, value_of(0), index_of(0), length_, inner_);
  for (int pass = 1; pass <= passes_; ++pass) {
    (*(pass == passes_ ? last_ : merge_))(s.handle, grid, {kMergeThreads}, 0, value_of(pass - 1),
                                          index_of(pass - 1), value_of(pass), index_of(pass), length_, inner_,
                                          tile_ << (pass - 1));
  }
}

void add_sort(KernelTable& table) { table.add<ops::Sort>({"sort", accepts, prepare}); }

}  // namespace rlx::cuda
