// Sorting along an axis: a block for each line, in shared memory.
#include "rlx/backend/cuda/kernels/sort.h"

#include "rlx/backend/cuda/nodes/element_kernel.h"
#include "rlx/ops/reduce/sort.h"

namespace rlx::cuda {
namespace {

constexpr int64_t kLongest = 2048;  // 12 bytes each in shared memory, 48 KiB at most without asking for more

Support accepts(const Request& r) {
  const Arg& x = r.in[0];
  if (!x.is_row_major()) return Support::no("operand 0 is strided");
  const int64_t length = x.shape.dim(r.node.as<ops::Sort>().axis).value();
  if (length > kLongest)
    return Support::no("lines of ", length, " elements; at most ", kLongest, " fit a block");
  return Support::yes();
}

std::unique_ptr<Step> prepare(const Request& r) {
  const auto& a = r.node.as<ops::Sort>();
  const DType t = r.in[0].dtype();
  const AxisView v = axis_view(r.in[0].shape, a.axis);
  if (r.in[0].shape.elements() == 0) return make_gpu_step("empty", [](Stream&, const Launch&) {});
  int64_t size = 2;
  while (size < v.length) size *= 2;
  const int threads = int(std::clamp<int64_t>(size / 2, 32, 512));
  const char* wide = is_float(t) ? "f64" : "i64";
  // NaN is above everything.
  const char* below = "b != b ? a == a : a < b";
  const char* above = "a != a ? b == b : b < a";
  const std::string text = cat("typedef ", memory_type(t), " X;\ntypedef ", wide, " Wide;\n#define WIDEN as_",
                               wide, "\nconstexpr int kSize = ", size, ", kThreads = ", threads,
                               ";\ninline bool first(Wide a, Wide b) { return ", a.descending ? above : below,
                               "; }\n", kSortKernel);
  const FunctionRef f = device_of(r).functions().get({"sort", text});
  const int64_t lines = v.outer * v.inner, length = v.length, inner = v.inner;
  return make_gpu_step("a block for each line", [=](Stream& s, const Launch& l) {
    (*f)(s.handle, {lines}, {threads}, 0, l.in[0], l.out[0], l.out[1], length, inner);
  });
}

}  // namespace

void add_sort(KernelTable& table) { table.add<ops::Sort>({"sort_bitonic", accepts, prepare}); }

}  // namespace rlx::cuda
