// Equal regions of elements over different memory as one launch (groups/groups.h): the updates of all weights, the casts of all weights.
//
// Blocks are given to the members in order, as many to each as its elements need. Where the members lie is a table among the parameters of
// the kernel, so that a recording holds it and nothing is sent; as many members as fit into the parameters are one launch.
#include <algorithm>
#include <map>

#include "rlx/backend/cuda/groups/groups.h"
#include "rlx/backend/cuda/nodes/families.h"
#include "rlx/backend/cuda/nodes/flat_region.h"
#include "rlx/backend/cuda/nodes/on_first_use.h"
#include "rlx/base/error.h"
#include "rlx/ops/control/fused.h"

namespace rlx::cuda {
namespace {

constexpr size_t kTableBytes = 4000;  // every driver takes 4 KB of parameters
constexpr size_t kMostMembers = 128;  // what the search in the kernel reaches
constexpr int64_t kThreads = 256;

struct Member {
  std::vector<int> arguments;  // an operand of the node, or -1 - a result
  int64_t count = 0;
};

struct Reading {
  std::optional<FlatRegion> region;
  std::vector<Member> members;
  std::string problem;
};

Reading read(const Request& r) {
  const ir::Graph& body = *r.node.as<ops::Fused>().body;
  Reading out;
  std::map<ir::NodeId, int> operand_of;
  for (const ir::NodeId leaf : body.leaves()) operand_of.emplace(leaf, int(operand_of.size()));
  const auto refuse = [&](std::string why) {
    out.problem = std::move(why);
    return out;
  };
  for (const ir::Node* n : body.nodes()) {
    if (n->op->traits.leaf) continue;
    Member m;
    std::vector<Shape> types;
    std::vector<region::Layout> layouts;
    for (const ir::Value v : n->inputs) {
      const auto operand = operand_of.find(v.node);
      if (operand == operand_of.end()) return refuse("a member waits for another one");
      m.arguments.push_back(operand->second);
      types.push_back(body.shape(v));
      layouts.push_back({r.in[size_t(operand->second)].layout.strides});
    }
    for (uint32_t i = 0; i < n->shapes.size(); ++i) {
      const auto& outputs = body.outputs();
      const auto at = std::find(outputs.begin(), outputs.end(), n->result(i));
      if (at == outputs.end()) return refuse("a result that nobody reads");
      m.arguments.push_back(-1 - int(at - outputs.begin()));
    }
    auto flat = flat_region(*n, types, layouts);
    if (!flat) return refuse("elements that do not lie one behind the other");
    if (out.region && flat->text != out.region->text) return refuse("members that differ");
    m.count = flat->count;
    if (!out.region) out.region = std::move(flat);
    out.members.push_back(std::move(m));
  }
  if (out.members.empty()) return refuse("no members");
  return out;
}

/// The kernel for so many members, of which each has memory of its own for some arguments.
class ManyRegions final : public Step {
 public:
  ManyRegions(const Device& device, Reading reading)
      : device_(device), region_(std::move(reading.region->region)), members_(std::move(reading.members)) {
    for (size_t a = 0; a < region_.arguments.size(); ++a) {
      const bool common = std::all_of(members_.begin(), members_.end(), [&](const Member& m) {
        return m.arguments[a] == members_[0].arguments[a];
      });
      (common && members_[0].arguments[a] >= 0 ? common_ : own_).push_back(a);
    }
    row_ = 2 + own_.size();
    capacity_ = std::min(kMostMembers, (kTableBytes / 8 - 1 - common_.size()) / row_);
    RLX_CHECK(capacity_ > 0, "a table for ", region_.arguments.size(), " arguments");
    aligned_ = load(true);
    find_places();
    note = cat(members_.size(), " regions, ", (members_.size() + capacity_ - 1) / capacity_, " launches, ",
               aligned_.schedule.text(), ", ", region_.code.size(), " operations");
  }

  void run(const Launch& l) const override {
    const Loaded& use = fits(l) ? aligned_ : unaligned_.get([&] { return load(false); });
    const int64_t each = kThreads * use.schedule.vector;
    std::vector<uint64_t> table(1 + common_.size() + capacity_ * row_);
    for (size_t begin = 0; begin < members_.size(); begin += capacity_) {
      const size_t end = std::min(begin + capacity_, members_.size());
      uint64_t* at = table.data();
      *at++ = end - begin;
      for (const size_t a : common_) *at++ = address(l, members_[0], a);
      int64_t blocks = 0;
      for (size_t m = begin; m < end; ++m) {
        *at++ = uint64_t(blocks);
        *at++ = uint64_t(members_[m].count);
        for (const size_t a : own_) *at++ = address(l, members_[m], a);
        blocks += (members_[m].count + each - 1) / each;
      }
      void* parameters[] = {table.data(), nullptr};
      use.function->launch(stream_of(l).handle, {blocks}, {kThreads}, 0, parameters);
    }
  }

 private:
  struct Loaded {
    Schedule schedule;
    FunctionRef function;
  };

  static uint64_t address(const Launch& l, const Member& m, size_t a) {
    const int at = m.arguments[a];
    return reinterpret_cast<uint64_t>(at >= 0 ? l.in[at] : l.out[-1 - at]);
  }

  Loaded load(bool aligned) const {
    const Schedule s = schedule_of(region_, aligned);
    std::string addresses;
    std::vector<std::string> places(region_.arguments.size());
    for (size_t i = 0; i < common_.size(); ++i) places[common_[i]] = cat("t.common[", i, "]");
    for (size_t i = 0; i < own_.size(); ++i) places[own_[i]] = cat("t.members[m][", 2 + i, "]");
    for (size_t a = 0; a < places.size(); ++a) {
      const region::Argument& x = region_.arguments[a];
      addresses += cat(", reinterpret_cast<", x.role == region::Role::in ? "const " : "",
                       memory_type(x.dtype), "*>(", places[a], ")");
    }
    const int64_t each = kThreads * s.vector;
    std::string text = print_element_function(region_, "one", {});
    if (s.vector > 1) text += print_vector_function(region_, s, "several");
    const std::string common = common_.empty() ? "" : cat(", common[", common_.size(), "]");
    text += cat("struct Table { u64 count", common, ", members[", capacity_, "][", row_, "]; };\n");
    text +=
        cat("extern \"C\" __global__ void __launch_bounds__(", kThreads, ") many_regions(const Table t) {\n",
            "  u32 m = 0;\n  #pragma unroll\n  for (u32 s = ", kMostMembers / 2, "; s > 0; s /= 2) {\n",
            "    if (m + s < t.count && t.members[m + s][0] <= blockIdx.x) m += s;\n  }\n",
            "  const i64 count = i64(t.members[m][1]);\n",
            "  const i64 e = (i64(blockIdx.x) - i64(t.members[m][0])) * ", each, " + threadIdx.x * ",
            s.vector, ";\n");
    if (s.vector > 1) text += cat("  if (e + ", s.vector, " <= count) return several(e", addresses, ");\n");
    text += cat("  for (i64 i = e; i < count && i < e + ", s.vector, "; ++i) one(i", addresses, ");\n}\n");
    return {s, device_.functions().get({"many_regions", std::move(text)})};
  }

  bool fits(const Launch& l) const {
    for (size_t a = 0; a < region_.arguments.size(); ++a) {
      const region::Argument& x = region_.arguments[a];
      const auto bytes = size_t(together(region_, x, aligned_.schedule)) * dtype_size(x.dtype);
      for (const Member& m : members_) {
        if (address(l, m, a) % bytes != 0) return false;
      }
    }
    return true;
  }

  // As in one region, where no other member reads the operand.
  void find_places() {
    std::map<int, int> readers;
    for (const Member& m : members_) {
      for (const int a : m.arguments) readers[a] += a >= 0;
    }
    for (const Member& m : members_) {
      for (size_t k = 0; k < m.arguments.size(); ++k) {
        const region::Argument& y = region_.arguments[k];
        for (size_t i = 0; y.role == region::Role::out && i < k; ++i) {
          const region::Argument& x = region_.arguments[i];
          if (x.role == region::Role::in && x.dtype == y.dtype && x.strides == y.strides &&
              readers[m.arguments[i]] == 1)
            in_place.push_back({m.arguments[i], -1 - m.arguments[k]});
        }
      }
    }
  }

  const Device& device_;
  region::Region region_;
  std::vector<Member> members_;
  std::vector<size_t> common_, own_;  // arguments that all members share, and the others
  size_t row_ = 0, capacity_ = 0;     // words of a member, members of a launch
  Loaded aligned_;
  OnFirstUse<Loaded> unaligned_;
};

Support accepts(const Request& r) {
  if (r.node.as<ops::Fused>().body->name() != kManyRegions) return Support::no("no group of equal regions");
  const Reading reading = read(r);
  return reading.problem.empty() ? Support::yes() : Support::no(reading.problem);
}

std::unique_ptr<Step> prepare(const Request& r) {
  return std::make_unique<ManyRegions>(device_of(r), read(r));
}

}  // namespace

void add_many_regions(KernelTable& table) { table.add<ops::Fused>({"many_regions", accepts, prepare}); }

}  // namespace rlx::cuda
