// How a convolution that is cut into tasks runs: each thread has a worker with memory of its own and takes
// the next task until none is left. A cut has `tasks` and the bytes `thread` of a worker.
#pragma once

#include <algorithm>
#include <atomic>

#include "rlx/backend/cpu/kernels/conv/conv.h"

namespace rlx::cpu {

/// Fewer threads get larger parts, so what is enough for `threads` must also be enough for fewer.
template <class CutFor>
size_t conv_tasks_workspace(const Conv& p, int threads, CutFor cut) {
  size_t bytes = 0;
  for (int t = 1; t <= threads; ++t) bytes = std::max(bytes, size_t(t) * cut(p, t).thread);
  return bytes;
}

template <class Worker, class Cut>
void run_conv_tasks(Team team, const Conv& p, const Cut& cut, std::byte* workspace) {
  std::atomic<int64_t> next{0};
  team.run(int(std::min<int64_t>(team.threads(), cut.tasks)), [&](int thread) {
    Worker worker(p, cut, workspace + size_t(thread) * cut.thread);
    for (int64_t task; (task = next.fetch_add(1, std::memory_order_relaxed)) < cut.tasks;) worker.run(task);
  });
}

}  // namespace rlx::cpu
