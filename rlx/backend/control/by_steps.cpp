#include "rlx/backend/control/by_steps.h"

#include "rlx/backend/control/loops.h"
#include "rlx/backend/memory.h"
#include "rlx/ops/control/custom_fn.h"
#include "rlx/ops/control/if.h"
#include "rlx/ops/control/scan.h"
#include "rlx/ops/control/while.h"

namespace rlx::backend {

bool BySteps::has_steps(const ir::Node& n) {
  return n.is<ops::Scan>() || n.is<ops::While>() || n.is<ops::If>() || n.is<ops::CustomFn>();
}

// Operands count as new in every run: then no step asks for a packed form, which this run would not get.
BySteps::BySteps(const Request& r) : node_(r.node), builder_(*r.builder) {
  node_.uses.clear();
  for (const Arg& a : r.in) in_.push_back({.shape = a.shape, .layout = a.layout});
  for (const Arg& a : r.out) out_.push_back({.shape = a.shape, .layout = a.layout});
}

void BySteps::run(const Launch& l) const {
  const Request r{.node = node_, .in = in_, .out = out_, .threads = builder_.threads(), .builder = &builder_};
  const std::unique_ptr<Step> step = node_.is<ops::Scan>()    ? prepare_scan(r)
                                     : node_.is<ops::While>() ? prepare_while(r)
                                     : node_.is<ops::If>()    ? prepare_if(r)
                                                              : prepare_call(r);
  const Block memory(host_memory(), step->workspace);
  Launch own = l;
  own.workspace = memory.get();
  step->run(own);
}

}  // namespace rlx::backend
