#include "rlx/backend/executable.h"

#include "rlx/base/pool_watch.h"

namespace rlx::backend {

// Steps do not write to their operands, so the contents of the graph stay what they are.
std::byte* Executable::constant(int index) const {
  if (!constant_blocks_.empty()) return constant_blocks_[size_t(index)].get();
  return const_cast<std::byte*>(constants_[size_t(index)].bytes().data());
}

std::byte* Executable::resolve(const Frame& f, const Address& a) const {
  switch (a.kind) {
    case BufferKind::leaf:
      return f.leaves[a.index] == nullptr ? nullptr : f.leaves[a.index] + a.offset;
    case BufferKind::output:
      return f.outputs[a.index] + a.offset;
    case BufferKind::constant:
      return constant(a.index) + a.offset;
    case BufferKind::activation:
    case BufferKind::workspace:
      return f.arena + a.offset;
  }
  return nullptr;
}

void Executable::run(const Frame& f) const {
  auto** const addresses = f.addresses ? f.addresses : reinterpret_cast<std::byte**>(f.arena + scratch_);
  size_t at = 0;
  try {
    for (; at < steps_.size(); ++at) {
      const Bound& b = steps_[at];
      std::byte** next = addresses;
      Launch launch{.team = f.team, .stream = f.stream, .stop = f.stop, .observer = f.observer};
      launch.in = next;
      for (const Address& a : b.in) *next++ = resolve(f, a);
      launch.out = next;
      for (const Address& a : b.out) *next++ = resolve(f, a);
      launch.workspace = f.arena + b.workspace;
      const auto packed = const_cast<const void**>(reinterpret_cast<void**>(next));
      for (size_t i = 0; i < b.forms.size(); ++i) {
        const int form = b.forms[i];
        packed[i] = form >= 0 ? f.packed[form] : constant_forms_[size_t(-1 - form)].get();
      }
      launch.packed = packed;
      if (f.stop && f.stop->stop_requested()) [[unlikely]]
        throw invalid("run: stopped before ", plan_.steps[at].op);
      if (f.observer) [[unlikely]] {
        f.observer->before(plan_.steps[at], launch);
        {
          const WatchedPool watched(f.observer->pool_watch());
          b.step->run(launch);
        }
        f.observer->after(plan_.steps[at], launch);
      } else {
        b.step->run(launch);
      }
    }
  } catch (Error& e) {
    const Plan::Step& s = plan_.steps[at];
    if (e.node().empty() && s.node != ir::kNoNode) e.set_node(cat(s.name, " ", s.op));
    if (e.origin().empty()) e.set_origin(s.origin);
    throw;
  }
}

}  // namespace rlx::backend
