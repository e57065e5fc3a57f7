// Convolution over one to three axes in f32, and both of its gradients. Arrays are contiguous:
//   x [N, Ci, size..]   w [Co, Ci / groups, kernel..]   y [N, Co, out..]
//   forward           y[n, co, o] = sum over ci, k of x[n, ci, o stride + k dilation - low] w[co, ci, k] + bias
//   backward_data     dx[n, ci, i] = sum of dy[n, co, o] w[co, ci, k] over o stride + k dilation - low = i
//   backward_weights  dw[co, ci, k] = sum over n, o of x[n, ci, o stride + k dilation - low] dy[n, co, o]
// with zeros outside x. A transposed convolution is backward_data under another name. Padding may be
// negative, which cuts x. Results do not depend on the number of threads.
//
// A plan holds the geometry of one shape; weights are packed for it once and used by many calls.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "rlx/backend/cpu/kernels/gemm.h"
#include "rlx/base/pool.h"

namespace rlx::cpu {

using Extents = std::array<int64_t, 3>;

struct ConvShape {
  int64_t batch = 1, groups = 1;
  int64_t in_channels = 1, out_channels = 1;  // of all groups together
  // Fewer axes than three: leave the first ones as they are.
  Extents size{1, 1, 1}, kernel{1, 1, 1}, stride{1, 1, 1}, dilation{1, 1, 1}, low{0, 0, 0}, high{0, 0, 0};

  /// floor((size + low + high - dilation (kernel - 1) - 1) / stride) + 1
  Extents out() const;
};

enum class ConvPass : uint8_t { forward, backward_data, backward_weights };

struct ConvGeometry;

class ConvPlan {
 public:
  ConvPlan(const ConvShape&, ConvPass);
  ~ConvPlan();
  ConvPlan(ConvPlan&&) noexcept;
  ConvPlan& operator=(ConvPlan&&) noexcept;

  const ConvShape& shape() const { return shape_; }
  ConvPass pass() const { return pass_; }
  const ConvGeometry& geometry() const { return *geometry_; }

 private:
  ConvShape shape_;
  ConvPass pass_;
  std::unique_ptr<ConvGeometry> geometry_;
};

/// w in the order a plan's kernels read it, for the passes that read weights.
class PackedConvWeights {
 public:
  static size_t bytes(const ConvPlan&);
  /// What the order depends on: plans of the same text read one packed form.
  static std::string form(const ConvPlan&);

  explicit PackedConvWeights(const ConvPlan&);
  /// In memory of the caller, of that many bytes and 64-byte alignment.
  PackedConvWeights(const ConvPlan&, std::byte* memory);
  /// May be called again with new weights. `swapped`: the channels of each group stand in the other order,
  /// [Ci, Co / groups, kernel..] with Co and Ci as the plan has them.
  void pack(Team, const float* w, bool swapped = false);
  const float* data() const { return data_; }
  /// All of it, to keep and to fill again from what was kept of the same form.
  std::span<std::byte> contents() const { return {reinterpret_cast<std::byte*>(data_), bytes(*plan_)}; }
  /// Changes with the order of the numbers at any level.
  static constexpr int kLayoutVersion = 1;

 private:
  const ConvPlan* plan_;
  AlignedBytes bytes_;
  float* data_;
};

struct Conv {
  const ConvPlan* plan = nullptr;
  const PackedConvWeights* weights = nullptr;  // forward, backward_data
  const float* x = nullptr;                    // forward, backward_weights
  const float* dy = nullptr;                   // backward_data, backward_weights
  // forward: y = relu(sum + bias + residual), each where it is given
  const float* bias = nullptr;      // [Co]
  const float* residual = nullptr;  // lies as y does
  bool relu = false;
  float* out = nullptr;  // y, dx or dw
};
/// Whether y may be changed on its way to memory: a residual or relu is refused otherwise.
bool conv_finishes(const ConvPlan&);
size_t conv_workspace(const Conv&, int threads);
void conv(Team, const Conv&, std::byte* workspace);

// ---- what a level provides ----

/// Outputs [column, column + length) of a panel: where their inputs lie without a tap, and where they go.
struct ConvSegment {
  int64_t source, column, length, target;
};

/// sums[r][j] = start[r] + sum over taps t, channels c of weights[t][c][r] source[c * plane + taps[t] + j].
struct ConvTile {
  const float* weights = nullptr;
  int rows = 0;
  const float* start = nullptr;  // null for zeros
  const float* source = nullptr;
  int64_t plane = 0, channels = 0;
  const int64_t* taps = nullptr;
  int64_t tap_count = 0;
  float* sums = nullptr;
  int64_t sums_stride = 0;  // from row to row
};

/// sums[r][j] += sum over runs and i < length of source[r][runs + i step] dy[run length + i][j].
struct ConvWeightTile {
  const float* source[16] = {};
  int rows = 0;
  const int64_t* runs = nullptr;
  int64_t run_count = 0, length = 0, step = 1;
  const float* dy = nullptr;  // [run_count * length][columns]
  float* sums = nullptr;      // [rows][columns]
};

struct ConvKernels {
  int rows, columns;  // of a tile
  void (*tile)(const ConvTile&);
  void (*weight_tile)(const ConvWeightTile&);
  /// Rows (tap, channel) of source[channel * plane + tap + segment]: out[tap][channel][columns]. Columns in
  /// no segment are zero. Reads may reach two vectors beyond a segment when `loose`.
  void (*gather)(const ConvTile&, const ConvSegment* segments, int64_t segment_count, int64_t step,
                 bool loose, float* out);
  /// out[i][r] = from[r * stride + i] for r < rows, zero for rows <= r < columns; i < n.
  void (*pack)(const float* from, int64_t stride, int64_t rows, int64_t n, float* out);
  /// y[i] = start + sum over t of w[t] source[taps[t] + i step]; reads may reach two vectors beyond.
  void (*weighted_row)(const float* source, const int64_t* taps, const float* w, int64_t tap_count,
                       int64_t step, float start, float* y, int64_t n);
  /// sums[t] += sum over runs and i < n of dy[run n + i] source[runs + taps[t] + i step].
  void (*row_products)(const float* source, const int64_t* taps, int64_t tap_count, int64_t step,
                       const int64_t* runs, int64_t run_count, const float* dy, int64_t n, float* sums);
};

}  // namespace rlx::cpu
