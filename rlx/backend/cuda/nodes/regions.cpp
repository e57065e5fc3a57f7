// Fused regions, single elementwise operators and reductions as generated kernels.
#include "rlx/backend/cuda/nodes/regions.h"

#include <algorithm>
#include <mutex>

#include "rlx/backend/cuda/nodes/few_rows.h"
#include "rlx/backend/cuda/nodes/on_first_use.h"
#include "rlx/backend/cuda/region/printer.h"
#include "rlx/ops/control/fused.h"
#include "rlx/ops/elementwise/cast.h"
#include "rlx/ops/reduce/reduce.h"
#include "rlx/region/of_node.h"

namespace rlx::cuda {
namespace {

region::Built region_of(const Request& r) {
  std::vector<Shape> types;
  std::vector<region::Layout> in, out;
  for (const Arg& a : r.in) types.push_back(a.shape), in.push_back({a.layout.strides});
  for (const Arg& a : r.out) out.push_back({a.layout.strides});
  return region::of_node(r.node, types, in, out);
}

Support accepts(const Request& r) {
  const bool reduce = r.node.is<ops::Reduce>();
  if (!r.node.is<ops::Fused>() && !r.node.op->traits.elementwise && !r.node.is<ops::Cast>() && !reduce)
    return Support::no("neither elementwise nor a reduction");
  if (reduce && r.node.as<ops::Reduce>().kind == ops::ReduceOp::mean && !is_float(r.in[0].dtype()))
    return Support::no("no mean of ", r.in[0].dtype());
  const region::Built built = region_of(r);
  return built ? Support::yes() : Support::no(built.refusal);
}

/// Kernels of a printed region, ready to launch.
struct Loaded {
  PrintedRegion printed;
  std::vector<FunctionRef> functions;
};

class RegionStep final : public Step {
 public:
  RegionStep(const Device& device, const Request& r, region::Region region)
      : device_(device), region_(std::move(region)) {
    count_ = r.in.size() + r.out.size();
    aligned_ = load(true);
    if (!has_vectors()) {
      workspace = aligned_.printed.workspace;
    } else {
      // Which one runs is known when the addresses are.
      workspace =
          std::max(aligned_.printed.workspace, print_region(region_, schedule_of(region_, false)).workspace);
    }
    find_places();
    load_phase();
    note = cat(aligned_.printed.schedule.text(), ", ", region_.code.size(), " operations");
  }

  void run(const Launch& l) const override {
    const Loaded& use = fits(l) ? aligned_ : unaligned();
    std::vector<std::byte*> addresses(l.in, l.in + count_);
    addresses.push_back(l.workspace);
    Chain* const chain = phase_ && std::all_of(l.in, l.in + count_, [](auto* p) { return is_aligned(p); })
                             ? chain_of(l)
                             : nullptr;
    if (!chain) return launch(use, stream_of(l), addresses);
    chain->add(phase_, words_of(std::span(addresses).first(count_)),
               [this, &use, addresses, &s = *static_cast<Stream*>(l.stream)] { launch(use, s, addresses); });
  }

 private:
  void launch(const Loaded& use, const Stream& s, std::vector<std::byte*> addresses) const {
    std::vector<void*> parameters;
    for (std::byte*& p : addresses) parameters.push_back(&p);
    for (size_t k = 0; k < use.functions.size(); ++k) {
      const auto& kernel = use.printed.kernels[k];
      use.functions[k]->launch(s.handle, kernel.grid, kernel.block, 0, parameters.data());
    }
  }

  // A few rows, a block for each.
  void load_phase() {
    if (!makes_phases(device_.functions()) || !region_.has_reduction() || region_.rows() > most_few_rows())
      return;
    const Schedule s = block_schedule(region_, kChainThreads, true);
    if (region_.count(region::Role::scratch) > 0 && !s.in_registers) return;
    std::string fields, call;
    for (size_t i = 0; i < count_; ++i) {
      const region::Argument& a = region_.arguments[i];
      fields += cat(a.role == region::Role::in ? "const " : "", memory_type(a.dtype), "* m", i, "; ");
      call += cat("p.m", i, ", ");
    }
    const std::vector<bool> by_all(region_.arguments.size(), false);
    phase_ = std::make_shared<const Phase>(Phase{
        .text = cat("struct Words { ", fields, "};\n", print_row_function(region_, s, "rows_region", by_all),
                    "inline void run(const Words& p, Ring&, u8*) {\n  for (int row = blockIdx.x; row < ",
                    region_.rows(), "; row += kBlocks) rows_region(", call, "row);\n}\n")});
  }

  Loaded load(bool aligned) const {
    Loaded out{print_region(region_, schedule_of(region_, aligned)), {}};
    for (const auto& kernel : out.printed.kernels)
      out.functions.push_back(device_.functions().get(kernel.source));
    return out;
  }

  // Elements of an operand are read before those of a result are written over them, by the same thread.
  void find_places() {
    if (region_.has_reduction()) return;
    const auto role_of = [&](size_t i) { return region_.arguments[i].role; };
    size_t first = 0;
    while (role_of(first) == region::Role::in) ++first;
    for (size_t k = first; k < count_ && role_of(k) == region::Role::out; ++k) {
      const region::Argument& y = region_.arguments[k];
      for (size_t i = 0; i < first; ++i) {
        const region::Argument& x = region_.arguments[i];
        if (x.dtype == y.dtype && x.strides == y.strides) in_place.push_back({int(i), int(k - first)});
      }
    }
  }

  bool has_vectors() const {
    const Schedule& s = aligned_.printed.schedule;
    return s.vector > 1 || s.row_vector > 1;
  }
  bool fits(const Launch& l) const {
    for (size_t i = 0; has_vectors() && i < count_; ++i) {
      const region::Argument& a = region_.arguments[i];
      const auto bytes = size_t(together(region_, a, aligned_.printed.schedule)) * dtype_size(a.dtype);
      if (!is_aligned(l.in[i], bytes)) return false;
    }
    return true;
  }

  const Loaded& unaligned() const {
    std::call_once(once_, [&] { unaligned_ = load(false); });
    return unaligned_;
  }

  const Device& device_;
  region::Region region_;
  size_t count_ = 0;
  Loaded aligned_;
  PhaseRef phase_;
  mutable std::once_flag once_;
  mutable Loaded unaligned_;
};

std::unique_ptr<Step> prepare(const Request& r) { return region_step(r, *region_of(r).region); }

// Results without elements need no work, whatever the operator.
Support accepts_nothing(const Request& r) {
  for (size_t i = 0; i < r.out.size(); ++i) {
    if (r.out[i].shape.elements() > 0) return Support::no();  // no reader would have expected it
  }
  return Support::yes();
}
std::unique_ptr<Step> prepare_nothing(const Request&) {
  return make_gpu_step("no elements", [](Stream&, const Launch&) {});
}

}  // namespace

std::unique_ptr<Step> region_step(const Request& r, region::Region region) {
  return std::make_unique<RegionStep>(device_of(r), r, std::move(region));
}

void add_regions(KernelTable& table) {
  table.add_general({"nothing", accepts_nothing, prepare_nothing});
  table.add<ops::Fused>({"region", accepts, prepare});
  table.add_general({"region", accepts, prepare});
}

}  // namespace rlx::cuda
