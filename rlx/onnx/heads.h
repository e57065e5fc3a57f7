// Heads of attention, as operators of several domains need them.
#pragma once

#include <optional>

#include "rlx/onnx/call.h"

namespace rlx::onnx {

/// [batch, seq, heads * size] as [batch, heads, seq, size].
Tensor split_heads(const Call&, const Tensor& x, int64_t heads);
/// And back.
Tensor joined_heads(const Tensor& x);
/// Each head of x [batch, few, seq, size] repeated for the heads of q that it serves.
Tensor repeated_heads(const Tensor& x, Dim heads);

/// 0 where m holds, `otherwise` elsewhere.
Tensor zero_where(const Call&, const Tensor& m, DType type, double otherwise);

struct AttendSpec {
  double scale = 0;  // 0: 1 / sqrt(size of a head)
  double softcap = 0;
  bool causal = false;                 // queries are the last of the keys
  std::optional<int64_t> window = {};  // keys that a query sees, itself included; causal
  Tensor bias;                         // [batch or 1, heads or 1, queries or 1, keys], added to the scores
  Tensor sink;                         // [heads]: exp(sink) joins the sum of the softmax
};

/// softmax(scale q k^T + bias) v of q [batch, heads, queries, size] and k, v [batch, kv heads, keys, ..].
Tensor attended(const Call&, const Tensor& q, const Tensor& k, const Tensor& v, const AttendSpec&);

}  // namespace rlx::onnx
