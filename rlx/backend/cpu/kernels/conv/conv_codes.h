// Convolutions of 8-bit codes with channels last:
//   sum[n, oy, ox, co] = sum over ky, kx, c of (x[n, iy, ix, c] - x_zero)(w[co, c, ky, kx] - w_zero), exact,
//   iy = oy stride + ky dilation - low; positions outside x are zeros,
//   v = sum * mult[co] + offset[co], clamped to [least, most],
//   y = v in f32, or round(v) + zero as a code, halves to even;
// or, where exact codes are asked for, round((sum + start[co]) * multipliers[co]) + zero rounded once.
// A product of matrices is a convolution of one row with a kernel of one place.
//
// x is copied into a frame with a border of zeros once; there the inputs of a row of taps are neighbours, so
// the products read it in place and nothing is gathered. A frame holds
//   pairs   codes less their zero points in 16 bits: no sum of products needs a correction afterwards
//   quads   u8 codes as they are, i8 ones plus 128, where the level multiplies four bytes at once and weights
//           less their zero point fit i8: sums begin with -x_zero sum of w
// Results do not depend on level, threads or tiling.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "rlx/backend/cpu/kernels/gemm.h"
#include "rlx/backend/cpu/kernels/packed_memory.h"

namespace rlx::cpu {

struct CodeConvShape {
  using Pair = std::array<int64_t, 2>;
  int64_t batch = 1, groups = 1;
  int64_t in_channels = 1, out_channels = 1;  // of all groups together
  Pair size{1, 1}, kernel{1, 1}, stride{1, 1}, dilation{1, 1}, low{0, 0}, out{1, 1};
};

/// u8 or i8 and the code that stands for 0.
struct CodeKind {
  DType dtype = DType::u8;
  int32_t zero = 0;
};

struct CodeLayout;
/// What is planned once for a shape and codes of these kinds, at the level in use.
std::shared_ptr<const CodeLayout> plan_conv_codes(const CodeConvShape&, CodeKind x, CodeKind w);

/// How x lies in memory and which codes it holds.
struct CodeSource {
  const std::byte* data = nullptr;
  DType dtype = DType::u8;  // u8 or i8
  int32_t zero = 0;
  int64_t image = 0, row = 0, column = 0, channel = 1;  // strides in elements
};

/// Weights in the order in which the products of one level read them.
class PackedCodeWeights {
 public:
  /// w [co, c, ky, kx] of u8 or i8 with these strides in elements.
  struct Source {
    const std::byte* data = nullptr;
    DType dtype = DType::i8;
    int32_t zero = 0;
    int64_t filter = 0, channel = 0, row = 0, column = 0;
  };
  /// In `lent` memory of bytes(), if given.
  static PackedCodeWeights pack(Team, const CodeLayout&, const Source&, std::byte* lent = nullptr);
  static size_t bytes(const CodeLayout&);
  /// What the order depends on: plans of the same text read one packed form.
  static std::string form(const CodeLayout&);
  const std::byte* data() const { return bytes_.get(); }
  /// From the bytes of one of the same form; so many that they fit.
  static PackedCodeWeights from_bytes(const CodeLayout&, std::span<const std::byte>);
  /// Changes with the order of the codes at any level.
  static constexpr int kLayoutVersion = 2;

 private:
  PackedMemory bytes_;
};

/// Codes rounded as by exact arithmetic, in place of mult and offset.
struct ExactScale {
  const double* multipliers = nullptr;  // [out_channels]; null: not asked for
  const int32_t* start = nullptr;       // [out_channels]
  bool half_away = false;
};

struct CodeConv {
  const CodeLayout* plan = nullptr;
  CodeSource x;
  const PackedCodeWeights* weights = nullptr;
  const float *mult = nullptr, *offset = nullptr;  // [out_channels]
  void* y = nullptr;                               // [batch, out.., out_channels], dense
  DType y_dtype = DType::u8;                       // u8, i8 or f32
  int32_t y_zero = 0;
  float least = 0, most = 0;
  ExactScale exact;
};
size_t conv_codes_workspace(const CodeLayout&, int threads);
void conv_codes(Team, const CodeConv&, std::byte* workspace);

/// Extremes over windows of codes with channels last, dense: y[n, oy, ox, c] = max over the places of the
/// window that lie inside x.
struct CodePool {
  CodeConvShape shape;  // in_channels, size, kernel, stride, low, out
  DType dtype = DType::u8;
  const std::byte* x = nullptr;
  std::byte* y = nullptr;
};
void max_pool_codes(Team, const CodePool&);
/// The same with channels first: [n, c, height, width].
void max_pool_code_planes(Team, const CodePool&);

/// y[i] = round(a[i] a_mult + b[i] b_mult + offset) + zero as a code, clamped before it is rounded.
struct CodeSum {
  int64_t n = 0;
  const std::byte *a = nullptr, *b = nullptr;
  DType a_dtype = DType::u8, b_dtype = DType::u8;
  float a_mult = 1, b_mult = 1, offset = 0, least = 0, most = 0;
  int32_t zero = 0;
  std::byte* y = nullptr;
};
void sum_codes(Team, const CodeSum&);

// ---- what a level provides ----

/// Codes or numbers of one tile: where they go and how sums become them.
struct CodeResult {
  const float *mult = nullptr, *offset = nullptr;  // of the first column
  int columns = 0;
  void* y = nullptr;
  int64_t row_stride = 0;   // in elements
  DType dtype = DType::u8;  // i32: the sums as they are, whole panels
  int32_t zero = 0;
  float least = 0, most = 0;
  ExactScale exact;
};

/// sums[r][j] = sum over runs and i < steps of words x[runs + r distance + 4 i ..] w[run][i][j], for r < rows
/// and a panel of columns j; then codes or numbers. A word is a pair of 16 bits or a quad of 8; before the
/// weights of quads stand the sums of their columns.
struct CodeTile {
  const std::byte* x = nullptr;
  int64_t distance = 0;           // bytes
  const int64_t* runs = nullptr;  // bytes
  int64_t run_count = 0, steps = 0;
  const std::byte* weights = nullptr;
  int rows = 0;
  CodeResult result;
};

/// Neighbouring squares of 4 x 4 inputs, 2 apart: element e of B' d B of square i to out[e plane + i pitch + c],
/// for all channels c, a multiple of 32.
struct CodeSquareInput {
  const int16_t* x = nullptr;  // of the first square
  int64_t line = 0, channels = 0, squares = 0;
  int16_t* out = nullptr;
  int64_t pitch = 0, plane = 0;
};

/// Back to up to 2 x 2 outputs of one square. Sums are four times too large.
struct CodeSquareOutput {
  const int32_t* sums = nullptr;  // [plane][channel of whole panels]
  int64_t plane = 0, channels = 0;
  CodeResult result;        // of the first output and channel; row_stride: to the next output of its row
  int64_t line_stride = 0;  // elements of y to the row below
  int rows = 2, columns = 2;
};

struct ConvCodesKernels {
  int rows, panel;                                     // of a tile: positions and channels
  void (*tile)(const CodeTile&);                       // of pairs
  void (*quad_tile)(const CodeTile&, int32_t x_zero);  // null: this level has none
  /// One channel after another: sums[r][c] = sum over runs t of x[runs[t] + r distance + 2 c] w[t][c], for the
  /// channels of a panel; weights are pairs of a weight and 0, [run][panel].
  void (*depth_tile)(const CodeTile&);
  void (*square_input)(const CodeSquareInput&);
  void (*square_output)(const CodeSquareOutput&);
  /// to[i] = x[i stride] - zero for i < n.
  void (*widen)(const std::byte* x, DType dtype, int32_t zero, int64_t stride, int64_t n, int16_t* to);
  void (*sum)(const CodeSum&);
  /// to[i] = the largest of from[t][i] for t < count, 1 or more, codes of that type.
  void (*largest)(const std::byte* const* from, int64_t count, DType dtype, int64_t n, std::byte* to);
};

}  // namespace rlx::cpu
