#include "rlx/backend/backend.h"

namespace rlx::backend {

const Kernels& KernelTable::of(const ir::OpDef& op) const {
  static const Kernels none;
  const auto it = kernels_.find(&op);
  return it == kernels_.end() ? none : it->second;
}

Choice Backend::choose(const Request& request, bool last_resort) const {
  Choice choice;
  const auto ask = [&](const Kernels& kernels) {
    for (const Kernel& k : kernels) {
      if (choice.kernel) return;
      if (const Support answer = k.accepts(request)) {
        choice.kernel = &k;
      } else if (!answer.reason().empty()) {
        choice.declined.push_back({k.name, answer.reason()});
      }
    }
  };
  ask(kernels_.of(*request.node.op));
  ask(kernels_.general());
  if (last_resort) ask(kernels_.last_resort());
  return choice;
}

Support Backend::accepts(const ir::Node& node, std::span<const Shape> types, std::span<const Layout> in,
                         std::span<const Layout> out) const {
  std::vector<Arg> args, results;
  for (size_t i = 0; i < in.size(); ++i) args.push_back({.shape = types[i], .layout = in[i]});
  for (size_t i = 0; i < out.size(); ++i) results.push_back({.shape = node.shapes[i], .layout = out[i]});
  const Choice choice = choose({.node = node, .in = args, .out = results}, false);
  if (choice.kernel) return Support::yes();
  if (choice.declined.empty()) return Support::no("no kernel for ", node.op->name);
  std::vector<std::string> reasons;
  for (const Declined& d : choice.declined) reasons.push_back(cat(d.kernel, ": ", d.reason));
  return Support::no(join(reasons, "; "));
}

}  // namespace rlx::backend
