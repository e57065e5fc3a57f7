// Convolutions of images with kernels of 3 x 3 at stride 1 by the algorithm of Winograd: for every square of
// 2 x 2 outputs the 4 x 4 inputs d and the kernel g are transformed, multiplied element by element and
// transformed back,
//   y = A' [(G g G') * (B' d B)] A,   16 products instead of 36,
// so that the sums over channels are 16 products of matrices. Transforms are sums and differences of four
// numbers, halves for the kernel; errors are two to three times those of the plain sum. A number that is not
// finite reaches all outputs of the squares that read it.
#pragma once

#include "rlx/backend/cpu/kernels/conv/conv.h"

namespace rlx::cpu {

struct ConvGeometry;

/// Whether the forward pass should go this way, judged by its geometry.
bool winograd_is_better(const ConvShape&, const ConvGeometry&);
int64_t winograd_weight_elements(const ConvShape&, const ConvGeometry&);
/// w [Co, Ci / groups, 3, 3] to [group][element of the square][tile of rows][channel][row].
void pack_winograd(Team, const ConvShape&, const ConvGeometry&, const float* w, int64_t row_stride,
                   int64_t channel_stride, float* out);

size_t conv_winograd_workspace(const Conv&, int threads);
void conv_winograd(Team, const Conv&, std::byte* workspace);

// ---- what a level provides ----

/// Neighbouring squares of a row: out[e * plane + i] = element e of B' d B for square i < squares, whose inputs
/// are rows[r row_stride + 2 i + k]. Reads and writes reach up to four vectors and one vector beyond.
struct WinogradInput {
  const float* rows = nullptr;
  int64_t row_stride = 0, squares = 0;
  float* out = nullptr;
  int64_t plane = 0;
};

/// And back: y[r y_row + 2 i + k] for r < rows and 2 i + k < columns.
struct WinogradOutput {
  const float* sums = nullptr;
  int64_t plane = 0;
  float* y = nullptr;
  const float* residual = nullptr;  // lies as y does, or null
  int64_t y_row = 0, columns = 0;
  int rows = 2;
  float bias = 0;
  bool relu = false;
};

struct WinogradKernels {
  void (*input)(const WinogradInput&);
  void (*output)(const WinogradOutput&);
};

}  // namespace rlx::cpu
