// Slices picked by index.
#include "rlx/backend/cuda/fault.h"
#include "rlx/backend/cuda/kernels/gather.h"
#include "rlx/backend/cuda/nodes/families.h"
#include "rlx/ops/index/gather.h"

namespace rlx::cuda {
namespace {

Support accepts(const Request& r) {
  if (!r.in[0].is_row_major()) return Support::no("the table is strided");
  if (!r.in[1].is_row_major()) return Support::no("the indices are strided");
  const DType t = r.in[1].dtype();
  if (!is_integer(t)) return Support::no("indices are ", t);
  return Support::yes();
}

struct Pick {
  int64_t batch = 1, outer = 1, size = 1, picks = 1, inner = 1;
  bool clamp = false;
};

// The widest piece that rows and addresses are multiples of.
constexpr std::string_view kWords[] = {"uint4", "u64", "u32", "u16", "u8"};
constexpr size_t kWordBytes[] = {16, 8, 4, 2, 1};

std::unique_ptr<Step> prepare(const Request& r, const Pick& p, std::string_view op) {
  const size_t element = dtype_size(r.in[0].dtype());
  const size_t row = size_t(p.inner) * element;
  if (r.out[0].shape.elements() == 0) return make_gpu_step("empty", [](Stream&, const Launch&) {});
  std::vector<FunctionRef> functions(std::size(kWords));
  for (size_t w = 0; w < std::size(kWords); ++w) {
    if (row % kWordBytes[w] != 0) continue;
    const std::string types = cat("typedef ", kWords[w], " Word;\ntypedef ", r.in[1].dtype(), " Index;\n");
    functions[w] = device_of(r).functions().get({"gather", types + kGatherKernel});
    if (kWordBytes[w] <= element) break;
  }
  const uint64_t number =
      new_fault(cat(op, ": element % of indices is out of range; it must be at least 0 and below ", p.size));
  return make_gpu_step(cat("rows of ", row, " bytes"), [=](Stream& s, const Launch& l) {
    const uintptr_t places = reinterpret_cast<uintptr_t>(l.in[0]) | reinterpret_cast<uintptr_t>(l.out[0]);
    size_t w = 0;
    while (!functions[w] || places % kWordBytes[w] != 0) ++w;
    const int64_t inner = int64_t(row / kWordBytes[w]);
    const int64_t count = p.batch * p.outer * p.picks * inner;
    (*functions[w])(s.handle, {(count + 255) / 256}, {256}, 0, l.in[0], l.in[1], l.out[0], count, p.outer,
                    p.size, p.picks, inner, int(p.clamp), s.fault, number);
  });
}

std::unique_ptr<Step> prepare_gather(const Request& r) {
  const auto& a = r.node.as<ops::Gather>();
  const AxisView table = axis_view(r.in[0].shape, a.axis);
  return prepare(r,
                 {.outer = table.outer,
                  .size = table.length,
                  .picks = r.in[1].shape.elements(),
                  .inner = table.inner,
                  .clamp = a.mode == ops::IndexMode::clamp && table.length > 0},
                 "gather");
}

std::unique_ptr<Step> prepare_batched_gather(const Request& r) {
  const auto& a = r.node.as<ops::BatchedGather>();
  const AxisView table = axis_view(r.in[0].shape, a.axis);
  Pick p{.size = table.length,
         .inner = table.inner,
         .clamp = a.mode == ops::IndexMode::clamp && table.length > 0};
  for (int i = 0; i < a.batch_dims; ++i) p.batch *= r.in[0].shape.dim(i).value();
  if (p.batch > 0) {
    p.outer = table.outer / p.batch;
    p.picks = r.in[1].shape.elements() / p.batch;
  }
  return prepare(r, p, "batched_gather");
}

}  // namespace

void add_index(KernelTable& table) {
  table.add<ops::Gather>({"gather", accepts, prepare_gather});
  table.add<ops::BatchedGather>({"batched_gather", accepts, prepare_batched_gather});
}

}  // namespace rlx::cuda
