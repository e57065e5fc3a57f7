// Fused regions, and single elementwise operators as regions of one.
#include "rlx/ops/control/fused.h"

#include "rlx/backend/cpu/nodes/families.h"
#include "rlx/backend/cpu/vm/program.h"
#include "rlx/ops/elementwise/cast.h"
#include "rlx/region/of_node.h"

namespace rlx::cpu {
namespace {

/// Regions of the last requests of a thread. A backend asks whether a kernel accepts a node and has it prepared next, mostly as
/// it asked; and pieces that do the same, such as the updates of the weights of a model, have one body.
class RecentRegions {
 public:
  const region::Built& of(const Request& r) {
    Key key{.op = r.node.op, .body = r.node.attrs};
    if (r.node.is<ops::Fused>()) key.body = r.node.as<ops::Fused>().body;
    for (const Arg& a : r.in) key.types.push_back(a.shape), key.strides.push_back(a.layout.strides);
    for (const Arg& a : r.out) key.strides.push_back(a.layout.strides);
    for (const Entry& e : entries_) {
      if (e.key == key) return e.built;
    }
    std::vector<region::Layout> layouts;
    for (const auto& s : key.strides) layouts.push_back({s});
    region::Built built = region::of_node(r.node, key.types, std::span(layouts).first(r.in.size()),
                                          std::span(layouts).subspan(r.in.size()));
    next_ = (next_ + 1) % kMost;
    if (entries_.size() < kMost) {
      entries_.emplace_back();
      next_ = entries_.size() - 1;
    }
    Entry& e = entries_[next_];
    e = {std::move(key), std::move(built)};
    return e.built;
  }

 private:
  static constexpr size_t kMost = 16;
  struct Key {
    const ir::OpDef* op = nullptr;
    std::shared_ptr<const void> body;  // or attributes; held, so that nothing else has its address
    Shapes types;
    std::vector<std::vector<int64_t>> strides;  // of operands, then of results
    bool operator==(const Key&) const = default;
  };
  struct Entry {
    Key key;
    region::Built built;
  };
  std::vector<Entry> entries_;
  size_t next_ = 0;  // the last one written, the oldest of a full list behind it
};

const region::Built& region_of(const Request& r) {
  static thread_local RecentRegions recent;
  return recent.of(r);
}

Support accepts(const Request& r) {
  if (!r.node.is<ops::Fused>() && !r.node.op->traits.elementwise && !r.node.is<ops::Cast>())
    return Support::no("not elementwise");
  const region::Built& built = region_of(r);
  if (!built) return Support::no(built.refusal);
  if (const auto why = RegionProgram::refuses(*built.region)) return Support::no(*why);
  return Support::yes();
}

class RegionStep final : public Step {
 public:
  RegionStep(const Request& r, const region::Region& region) : program_(region) {
    workspace = program_.workspace(r.threads);
    for (int y = 0; y < int(r.out.size()); ++y) {
      for (int x = 0; x < int(r.in.size()); ++x) {
        if (program_.may_overwrite(y, x)) in_place.push_back({x, y});
      }
    }
    note = cat(program_.schedule(), ", ", region.code.size(), " operations");
    inputs_ = r.in.size();
    results_ = r.out.size();
  }

  // Addresses of operands and results follow each other in a launch.
  void run(const Launch& l) const override {
    program_.run(l.team, std::span(l.in, inputs_ + results_), l.workspace);
  }

 private:
  RegionProgram program_;
  size_t inputs_ = 0, results_ = 0;
};

std::unique_ptr<Step> prepare(const Request& r) {
  return std::make_unique<RegionStep>(r, *region_of(r).region);
}

// Results without elements need no work, whatever the operator.
Support accepts_nothing(const Request& r) {
  if (!r.node.op->traits.pure) return Support::no("it has effects");
  for (size_t i = 0; i < r.out.size(); ++i) {
    if (r.out[i].shape.elements() > 0) return Support::no();  // no reader would have expected it
  }
  return Support::yes();
}

std::unique_ptr<Step> prepare_nothing(const Request&) {
  return make_step([](const Launch&) {});
}

}  // namespace

void add_regions(KernelTable& table) {
  table.add<ops::Fused>({"region", accepts, prepare});
  table.add_general({"nothing", accepts_nothing, prepare_nothing});
  table.add_general({"region", accepts, prepare});
}

}  // namespace rlx::cpu
