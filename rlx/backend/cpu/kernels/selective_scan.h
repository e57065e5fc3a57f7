// The selective state-space recurrence of Mamba, for each batch row and channel:
//
//   S[t] = exp(delta[t] a) S[t-1] + delta[t] b[t] x[t]      y[t] = sum over states of c[t] S[t]
#pragma once

#include <cstddef>
#include <cstdint>

#include "rlx/base/pool.h"

namespace rlx::cpu {

struct SelectiveScan {
  int64_t batch = 1, length = 0, channels = 0, states = 0;
  const float* x = nullptr;      // [batch, length, channels]
  const float* delta = nullptr;  // as x
  const float* a = nullptr;      // [channels, states]
  const float* b = nullptr;      // [batch, length, states]
  const float* c = nullptr;      // as b
  float* y = nullptr;            // as x
  const float* state = nullptr;  // [batch, channels, states], the start; null: zeros
  float* final_state = nullptr;  // the same after the last step; null to drop it; may be `state`
};

size_t selective_scan_workspace(const SelectiveScan&, int threads);
void selective_scan(Team, const SelectiveScan&, std::byte* workspace);

struct SelectiveScanBackward {
  SelectiveScan forward;  // x, delta, a, b, c; starts from zeros
  const float* dy = nullptr;
  float* dx = nullptr;
  float* ddelta = nullptr;
  float* da = nullptr;
  float* db = nullptr;
  float* dc = nullptr;
};

/// Results are bit-equal for every number of threads.
size_t selective_scan_backward_workspace(const SelectiveScanBackward&, int threads);
void selective_scan_backward(Team, const SelectiveScanBackward&, std::byte* workspace);

// ---- what a level provides ----

/// Neighbouring groups of channels share the pages of x, delta and y: so many make a task.
inline constexpr int64_t kScanGroups = 4;

struct SelectiveScanKernels {
  int channels;  // of one group: the lanes of a vector
  size_t (*scratch_bytes)(const SelectiveScan&);
  /// Groups [begin, end) of one batch row.
  void (*forward)(const SelectiveScan&, int64_t batch, int64_t begin, int64_t end, std::byte* scratch);
  size_t (*backward_scratch_bytes)(const SelectiveScan&);
  /// Groups [begin, end) of all batch rows; db and dc [batch, length, states] receive the sum over them.
  void (*backward)(const SelectiveScanBackward&, int64_t begin, int64_t end, float* db, float* dc,
                   std::byte* scratch);
};

}  // namespace rlx::cpu
