// Fused regions, and single elementwise operators as regions of one.
#include "rlx/ops/control/fused.h"

#include "rlx/backend/cpu/nodes/families.h"
#include "rlx/backend/cpu/vm/program.h"
#include "rlx/ops/elementwise/cast.h"
#include "rlx/region/of_node.h"

namespace rlx::cpu {
namespace {

region::Built region_of(const Request& r) {
  Shapes types;
  std::vector<region::Layout> in, out;
  for (const Arg& a : r.in) types.push_back(a.shape), in.push_back({a.layout.strides});
  for (const Arg& a : r.out) out.push_back({a.layout.strides});
  return region::of_node(r.node, types, in, out);
}

Support accepts(const Request& r) {
  if (!r.node.is<ops::Fused>() && !r.node.op->traits.elementwise && !r.node.is<ops::Cast>())
    return Support::no("not elementwise");
  const region::Built built = region_of(r);
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
    if (r.out[i].shape.elements() > 0) return Support::no("result ", i, " has elements");
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
