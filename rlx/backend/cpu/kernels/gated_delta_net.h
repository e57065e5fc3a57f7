// The gated delta rule, for each batch row and head, with S a size x size matrix of key lanes by value lanes:
//
//   S = e^g S        d = beta (v - S' k)        S = S + k d'        y = S' q / sqrt(size)
#pragma once

#include <cstddef>
#include <cstdint>

#include "rlx/base/pool.h"

namespace rlx::cpu {

struct GatedDeltaNet {
  int64_t batch = 1, length = 0, heads = 1, size = 0;
  const float* q = nullptr;  // [batch, length, heads, size], as k, v and y
  const float* k = nullptr;
  const float* v = nullptr;
  const float* g = nullptr;  // log gate [batch, length, heads], as beta
  const float* beta = nullptr;
  const float* state = nullptr;  // [batch, heads, size, size], the start; null: zeros
  float* y = nullptr;
  float* final_state = nullptr;  // after the last step; may be `state`
};

/// Few steps run one by one, many in chunks as matrix products; the choice depends on the length alone.
size_t gated_delta_net_workspace(const GatedDeltaNet&, int threads);
void gated_delta_net(Team, const GatedDeltaNet&, std::byte* workspace);

struct GatedDeltaNetBackward {
  GatedDeltaNet forward;  // y and final_state are not read
  const float* dy = nullptr;
  const float* dfinal_state = nullptr;  // null: zeros
  float* dq = nullptr;
  float* dk = nullptr;
  float* dv = nullptr;
  float* dg = nullptr;
  float* dbeta = nullptr;
  float* dstate = nullptr;  // null to drop it
};

size_t gated_delta_net_backward_workspace(const GatedDeltaNetBackward&, int threads);
void gated_delta_net_backward(Team, const GatedDeltaNetBackward&, std::byte* workspace);

// ---- what a level provides; each works on one head of one batch row ----

struct GatedDeltaNetKernels {
  int64_t chunk;  // steps
  size_t (*scratch_bytes)(const GatedDeltaNet&);
  void (*steps)(const GatedDeltaNet&, int64_t batch, int64_t head);
  void (*chunks)(const GatedDeltaNet&, int64_t batch, int64_t head, std::byte* scratch);
};

struct GatedDeltaNetBackwardKernels {
  size_t (*scratch_bytes)(const GatedDeltaNetBackward&);
  void (*head)(const GatedDeltaNetBackward&, int64_t batch, int64_t head, std::byte* scratch);
};

}  // namespace rlx::cpu
