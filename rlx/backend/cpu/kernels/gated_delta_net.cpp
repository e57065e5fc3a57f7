#include "rlx/backend/cpu/kernels/gated_delta_net.h"

#include "rlx/backend/cpu/isa_table.h"
#include "rlx/backend/cpu/kernels/sizes.h"

namespace rlx::cpu {

RLX_ISA_TABLE(GatedDeltaNetKernels, gated_delta_net_kernels)
RLX_ISA_TABLE(GatedDeltaNetBackwardKernels, gated_delta_net_backward_kernels)

namespace {

// A chunk costs about the same however few of its steps are taken: below this share of one, single steps win.
bool few_steps(const GatedDeltaNet& p) { return p.length * 4 <= gated_delta_net_kernels().chunk; }

/// body(batch, head, scratch) for every head, each thread with `bytes` of the workspace.
template <class Body>
void each_head(Team team, const GatedDeltaNet& p, size_t bytes, std::byte* workspace, Body body) {
  const int64_t tasks = p.batch * p.heads;
  std::atomic<int64_t> next{0};
  team.run(int(std::min<int64_t>(team.threads(), tasks)), [&](int thread) {
    for (int64_t i; (i = next.fetch_add(1, std::memory_order_relaxed)) < tasks;) {
      body(i / p.heads, i % p.heads, workspace + size_t(thread) * bytes);
    }
  });
}

}  // namespace

size_t gated_delta_net_workspace(const GatedDeltaNet& p, int threads) {
  return round_up(gated_delta_net_kernels().scratch_bytes(p)) * size_t(threads);
}

void gated_delta_net(Team team, const GatedDeltaNet& p, std::byte* workspace) {
  const GatedDeltaNetKernels& k = gated_delta_net_kernels();
  const size_t bytes = round_up(k.scratch_bytes(p));
  if (!few_steps(p)) {
    return each_head(team, p, bytes, workspace, [&](int64_t batch, int64_t head, std::byte* scratch) {
      k.chunks(p, batch, head, scratch);
    });
  }
  // Step after step, a thread takes the same heads, whose states its own cache may still hold.
  const int64_t heads = p.batch * p.heads, parts = std::min<int64_t>(team.threads(), heads);
  team.run(int(parts), [&](int part) {
    for (int64_t i = heads * part / parts; i < heads * (part + 1) / parts; ++i) {
      k.steps(p, i / p.heads, i % p.heads);
    }
  });
}

size_t gated_delta_net_backward_workspace(const GatedDeltaNetBackward& p, int threads) {
  return round_up(gated_delta_net_backward_kernels().scratch_bytes(p)) * size_t(threads);
}

void gated_delta_net_backward(Team team, const GatedDeltaNetBackward& p, std::byte* workspace) {
  const GatedDeltaNetBackwardKernels& k = gated_delta_net_backward_kernels();
  each_head(team, p.forward, round_up(k.scratch_bytes(p)), workspace,
            [&](int64_t batch, int64_t head, std::byte* scratch) { k.head(p, batch, head, scratch); });
}

}  // namespace rlx::cpu
