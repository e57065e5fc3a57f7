// Rows and the sums over all rows of what is made of them as one kernel (groups/groups.h): the gradient of a norm with those of its scale, its shift and the
// bias in front of it.
//
// The parts are laid open as one region of rows, in which what is summed over rows is an element result that has no memory: each warp takes rows in turn and gathers it by column in
// registers, each block writes what its warps found, and a second kernel joins the blocks, always in the same order.
#include <algorithm>

#include "rlx/backend/cuda/groups/groups.h"
#include "rlx/backend/cuda/nodes/families.h"
#include "rlx/backend/cuda/nodes/on_first_use.h"
#include "rlx/backend/cuda/region/printer.h"
#include "rlx/ir/clone.h"
#include "rlx/ir/inline.h"
#include "rlx/ops/control/fused.h"
#include "rlx/ops/elementwise/cast.h"
#include "rlx/ops/reduce/reduce.h"
#include "rlx/region/from_graph.h"

namespace rlx::cuda {
namespace {

constexpr int64_t kMostBlocks =
    132;  // one for each processor of an H100 or H200: its registers have no room for more
constexpr int64_t kWarps = 8;           // of a block
constexpr int64_t kMostGathered = 128;  // numbers of a thread: of sums, and of rows that are kept
constexpr int64_t kSharedBytes = 48 << 10;
constexpr int64_t kLeastRows = 2048;  // fewer are not worth two launches

/// Results of the group: elements come first in the region, then what is summed.
struct Reading {
  std::optional<region::Region> region;
  std::vector<int> elements, sums;  // results of the group
  std::string problem;
};

class Reader {
 public:
  explicit Reader(const Request& r) : r_(r), flat_("fused") {}

  Reading run() {
    Reading out;
    out.problem = read(out);
    return out;
  }

 private:
  std::string read(Reading& out) {
    lay_open();
    ir::Values elements, summed;
    const auto& outputs = flat_.outputs();
    for (size_t i = 0; i < outputs.size(); ++i) {
      const ir::Value sum = sum_behind(outputs[i]);
      if (sum.node == ir::kNoNode) {
        elements.push_back(outputs[i]);
        out.elements.push_back(int(i));
        continue;
      }
      summed.push_back(ops::cast({&flat_, flat_.node(sum).inputs[0]}, DType::f32));
      out.sums.push_back(int(i));
    }
    if (summed.empty()) return "no sums over rows";
    const Shape& rows = flat_.shape(summed[0]);
    for (const ir::Value v : summed) {
      if (flat_.shape(v) != rows) return "sums of several shapes";
    }
    elements.insert(elements.end(), summed.begin(), summed.end());
    flat_.set_outputs(elements);
    flat_.erase_dead();
    for (const ir::Node* n : flat_.nodes()) {
      if (n->is<ops::Reduce>() && n->as<ops::Reduce>().axes != std::vector<int>{rows.rank() - 1})
        return "sums over other axes";
    }
    std::vector<region::Layout> in;
    for (const Arg& a : r_.in) in.push_back({a.layout.strides});
    region::Built built = region::from_graph(flat_, in);
    if (!built) return built.refusal;
    const region::Region& r = *built.region;
    const int64_t columns = rows.dim(-1).value();
    if (!r.has_reduction() || r.row_rank < 1 || r.columns() != columns || r.rows() < kLeastRows)
      return "no long box of rows";
    const int64_t values = int64_t(summed.size()) + r.count(region::Role::scratch);
    if ((columns + 31) / 32 * values > kMostGathered ||
        columns * kWarps * int64_t(sizeof(float)) > kSharedBytes)
      return "rows that are too long";
    out.region = std::move(built.region);
    return {};
  }

  // Members become one body, with the operands of the group as leaves in their order.
  void lay_open() {
    const ir::Graph& body = *r_.node.as<ops::Fused>().body;
    ir::Cloner inside(flat_);
    for (const ir::NodeId leaf : body.leaves()) inside.copy(body.node(leaf));
    for (const ir::Node* n : body.nodes()) {
      if (n->op->traits.leaf) continue;
      if (!n->is<ops::Fused>()) {
        inside.copy(*n);
        continue;
      }
      const ir::Values results = ir::inline_graph(flat_, *n->as<ops::Fused>().body, inside.at(n->inputs));
      inside.set_results(*n, results);
    }
    flat_.set_outputs(inside.at(body.outputs()));
  }

  // The sum over all rows that an output is, at most rounded once behind it; none where it is something else.
  ir::Value sum_behind(ir::Value v) const {
    const ir::Node* n = &flat_.node(v);
    if (n->is<ops::Cast>() && flat_.shape(n->inputs[0]).dtype() == DType::f32) n = &flat_.node(n->inputs[0]);
    if (!n->is<ops::Reduce>()) return {};
    const auto& a = n->as<ops::Reduce>();
    const Shape& x = flat_.shape(n->inputs[0]);
    const DType t = x.dtype();
    const bool real = t == DType::f32 || t == DType::f16 || t == DType::bf16;
    if (a.kind != ops::ReduceOp::sum || !real || int(a.axes.size()) != x.rank() - 1) return {};
    for (int i = 0; i + 1 < x.rank(); ++i) {
      if (a.axes[size_t(i)] != i) return {};
    }
    return n->result();
  }

  const Request& r_;
  ir::Graph flat_;
};

class SumsStep final : public Step {
 public:
  SumsStep(const Request& r, Reading reading)
      : device_(device_of(r)), region_(std::move(*reading.region)), reading_(std::move(reading)) {
    summed_.assign(region_.arguments.size(), false);
    for (size_t k = 0; k < reading_.sums.size(); ++k)
      summed_[r.in.size() + reading_.elements.size() + k] = true;
    blocks_ = std::min(kMostBlocks, (region_.rows() + kWarps - 1) / kWarps);
    operands_ = r.in.size();
    aligned_ = load(true);
    join_ = device_.functions().get(join_source(r));
    workspace = size_t(int64_t(reading_.sums.size()) * blocks_ * region_.columns()) * sizeof(float);
    note = cat("a warp for each row, ", blocks_, " blocks, ", reading_.sums.size(),
               " sums over rows, vectors of ", aligned_.schedule.vector, ", ", region_.code.size(),
               " operations");
  }

  void run(const Launch& l) const override {
    std::vector<std::byte*> addresses(l.in, l.in + operands_);
    for (const int i : reading_.elements) addresses.push_back(l.out[i]);
    const Loaded& use = fits(addresses) ? aligned_ : unaligned_.get([&] { return load(false); });
    std::byte* parts = l.workspace;
    addresses.push_back(parts);
    std::vector<void*> parameters;
    for (std::byte*& a : addresses) parameters.push_back(&a);
    Stream_* const stream = stream_of(l).handle;
    use.function->launch(stream, {blocks_}, {kWarps * 32}, 0, parameters.data());
    std::vector<std::byte*> sums{parts};
    for (const int i : reading_.sums) sums.push_back(l.out[i]);
    parameters.clear();
    for (std::byte*& a : sums) parameters.push_back(&a);
    join_->launch(stream, {(region_.columns() + 31) / 32, int64_t(reading_.sums.size())}, {32, 16}, 0,
                  parameters.data());
  }

 private:
  struct Loaded {
    Schedule schedule;
    FunctionRef function;
  };

  Loaded load(bool aligned) const {
    const Schedule s = warp_schedule(region_, int(kWarps), aligned);
    return {s, device_.functions().get(print_rows_with_sums(region_, s, summed_, blocks_))};
  }

  bool fits(const std::vector<std::byte*>& addresses) const {
    for (size_t a = 0; a < addresses.size(); ++a) {
      const region::Argument& x = region_.arguments[a];
      if (!is_aligned(addresses[a], size_t(together(region_, x, aligned_.schedule)) * dtype_size(x.dtype)))
        return false;
    }
    return true;
  }

  Source join_source(const Request& r) const {
    std::string parameters, puts;
    for (size_t k = 0; k < reading_.sums.size(); ++k) {
      parameters += cat(", ", memory_type(r.out[size_t(reading_.sums[k])].dtype()), "* y", k);
      puts += cat("  if (live && blockIdx.y == ", k, ") put(y", k, "[c], sum);\n");
    }
    return {
        "sums_join",
        cat("extern \"C\" __global__ void __launch_bounds__(512) sums_join(const f32* parts", parameters,
            ") {\n  __shared__ f32 shared[512];\n  const int c = blockIdx.x * 32 + threadIdx.x;\n  f32 r = 0.0f;\n",
            "  if (c < ", region_.columns(), ") {\n    #pragma unroll 4\n    for (int b = threadIdx.y; b < ",
            blocks_, "; b += 16) r = r + parts[(blockIdx.y * ", blocks_, " + b) * ", region_.columns(),
            " + c];\n  }\n  const f32 sum = over_y<Sum, 16>(r, shared);\n  const bool live = c < ",
            region_.columns(), " && threadIdx.y == 0;\n", puts, "}\n")};
  }

  const Device& device_;
  region::Region region_;
  Reading reading_;
  std::vector<bool> summed_;  // by argument
  int64_t blocks_ = 0;
  size_t operands_ = 0;
  Loaded aligned_;
  OnFirstUse<Loaded> unaligned_;
  FunctionRef join_;
};

Support accepts(const Request& r) {
  if (r.node.as<ops::Fused>().body->name() != kSumsGroup) return Support::no("no group of rows and sums");
  const Reading reading = Reader(r).run();
  return reading.problem.empty() ? Support::yes() : Support::no(reading.problem);
}

std::unique_ptr<Step> prepare(const Request& r) { return std::make_unique<SumsStep>(r, Reader(r).run()); }

}  // namespace

void add_sums_groups(KernelTable& table) { table.add<ops::Fused>({"sums_group", accepts, prepare}); }

}  // namespace rlx::cuda
