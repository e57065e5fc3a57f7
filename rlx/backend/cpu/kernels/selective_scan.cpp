#include "rlx/backend/cpu/kernels/selective_scan.h"

#include "rlx/backend/cpu/isa_table.h"
#include "rlx/backend/cpu/kernels/sizes.h"
#include "rlx/base/error.h"

namespace rlx::cpu {

RLX_ISA_TABLE(SelectiveScanKernels, selective_scan_kernels)

namespace {

// db and dc are sums over channels: so many partial sums, added in order, whatever the number of threads.
constexpr int64_t kParts = 16;

int64_t groups(const SelectiveScan& p) { return ceil_div(p.channels, selective_scan_kernels().channels); }
int64_t parts(const SelectiveScan& p) { return std::max<int64_t>(1, std::min(kParts, groups(p))); }
size_t part_floats(const SelectiveScan& p) { return round_up(size_t(p.batch * p.length * p.states) * 4) / 4; }

}  // namespace

size_t selective_scan_workspace(const SelectiveScan& p, int threads) {
  return round_up(selective_scan_kernels().scratch_bytes(p)) * size_t(threads);
}

void selective_scan(Team team, const SelectiveScan& p, std::byte* workspace) {
  const SelectiveScanKernels& k = selective_scan_kernels();
  const size_t scratch = round_up(k.scratch_bytes(p));
  const int64_t count = groups(p), per_row = ceil_div(count, kScanGroups), tasks = p.batch * per_row;
  std::atomic<int64_t> next{0};
  team.run(int(std::min<int64_t>(team.threads(), tasks)), [&](int thread) {
    for (int64_t i; (i = next.fetch_add(1, std::memory_order_relaxed)) < tasks;) {
      const int64_t begin = i % per_row * kScanGroups;
      k.forward(p, i / per_row, begin, std::min(count, begin + kScanGroups),
                workspace + size_t(thread) * scratch);
    }
  });
}

size_t selective_scan_backward_workspace(const SelectiveScanBackward& p, int threads) {
  return 2 * size_t(parts(p.forward)) * part_floats(p.forward) * 4 +
         round_up(selective_scan_kernels().backward_scratch_bytes(p.forward)) * size_t(threads);
}

void selective_scan_backward(Team team, const SelectiveScanBackward& p, std::byte* workspace) {
  const SelectiveScan& f = p.forward;
  RLX_CHECK(f.state == nullptr, "the gradient of selective_scan starts from zeros");
  const SelectiveScanKernels& k = selective_scan_kernels();
  const int64_t count = groups(f), pieces = parts(f);
  const size_t part = part_floats(f), scratch = round_up(k.backward_scratch_bytes(f));
  float* partial = reinterpret_cast<float*>(workspace);  // [piece][db, dc]
  std::byte* memory = workspace + 2 * size_t(pieces) * part * 4;
  std::atomic<int64_t> next{0};
  team.run(int(std::min<int64_t>(team.threads(), pieces)), [&](int thread) {
    for (int64_t i; (i = next.fetch_add(1, std::memory_order_relaxed)) < pieces;) {
      const Range range = split_range(count, 1, int(pieces), int(i));
      float* db = partial + 2 * size_t(i) * part;
      k.backward(p, range.begin, range.end, db, db + part, memory + size_t(thread) * scratch);
    }
  });
  team.parallel_for(f.batch * f.length * f.states, 4096, [&](int64_t begin, int64_t end) {
    for (int which = 0; which < 2; ++which) {
      float* to = which == 0 ? p.db : p.dc;
      const float* from = partial + size_t(which) * part;
      std::copy(from + begin, from + end, to + begin);
      for (int64_t s = 1; s < pieces; ++s) {
        const float* next_part = from + 2 * size_t(s) * part;
        for (int64_t i = begin; i < end; ++i) to[i] += next_part[i];
      }
    }
  });
}

}  // namespace rlx::cpu
