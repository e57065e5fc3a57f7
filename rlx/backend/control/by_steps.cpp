#include "rlx/backend/control/by_steps.h"

#include <cstring>

#include "rlx/backend/control/body.h"
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
  // Results may lie where operands do, which the kernel reads before it writes; steps read them as long as they go on.
  size_t bytes = step->workspace;
  std::vector<size_t> places;
  for (const Arg& a : out_) {
    places.push_back(bytes = aligned_size(bytes));
    bytes += size_t(a.shape.size_bytes());
  }
  const Block memory(host_memory(), bytes);
  std::vector<std::byte*> results;
  for (const size_t at : places) results.push_back(memory.get() + at);
  Launch own = l;
  own.out = results.data();
  own.workspace = memory.get();
  step->run(own);
  for (size_t i = 0; i < results.size(); ++i) {
    if (const auto size = size_t(out_[i].shape.size_bytes()); size > 0)
      std::memcpy(l.out[i], results[i], size);
  }
}

}  // namespace rlx::backend
