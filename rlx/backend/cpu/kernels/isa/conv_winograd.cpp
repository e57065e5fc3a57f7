// Plan: lanes are neighbouring squares. Inputs of a row that lie two apart are taken from two vectors by one
// shuffle each; B' and A' are sums and differences, 32 and 24 for a vector of squares. Outputs of a row are
// two interleaved vectors. About 7 vector operations a square and channel each way, beside 16 multiply-adds
// for every pair of channels.
#include "rlx/backend/cpu/kernels/conv/conv_winograd.h"

#include "rlx/backend/cpu/simd/strided.h"

namespace rlx::cpu::RLX_ISA {
namespace {

// B' along one axis: d0 - d2, d1 + d2, d2 - d1, d1 - d3.
RLX_INLINE void transform(const F32 (&d)[4], F32 (&t)[4]) {
  t[0] = d[0] - d[2];
  t[1] = d[1] + d[2];
  t[2] = d[2] - d[1];
  t[3] = d[1] - d[3];
}

void input(const WinogradInput& p) {
  for (int64_t i = 0; i < p.squares; i += kLanes) {
    F32 rows[4][4];  // [element along the row][row]
#pragma GCC unroll 4
    for (int r = 0; r < 4; ++r) {
      const float* at = p.rows + r * p.row_stride + 2 * i;
      const F32 a = load(at), b = load(at + kLanes), c = load(at + 2), e = load(at + 2 + kLanes);
      const F32 d[4] = {every_second(a, b, false), every_second(a, b, true), every_second(c, e, false),
                        every_second(c, e, true)};
      F32 t[4];
      transform(d, t);
      for (int k = 0; k < 4; ++k) rows[k][r] = t[k];
    }
#pragma GCC unroll 4
    for (int k = 0; k < 4; ++k) {
      F32 t[4];
      transform(rows[k], t);
#pragma GCC unroll 4
      for (int r = 0; r < 4; ++r) store(p.out + (4 * r + k) * p.plane + i, t[r]);
    }
  }
}

RLX_INLINE void write(const WinogradOutput& p, int row, int64_t column, F32 a, F32 b) {
  const F32 v[2] = {interleave(a, b, false), interleave(a, b, true)};
  float* y = p.y + row * p.y_row + column;
#pragma GCC unroll 2
  for (int h = 0; h < 2; ++h) {
    const int64_t left = p.columns - column - h * kLanes;
    if (left <= 0) return;
    const int n = left < kLanes ? int(left) : kLanes;
    F32 x = v[h] + p.bias;
    if (p.residual != nullptr) {
      const float* from = p.residual + row * p.y_row + column + h * kLanes;
      x += n == kLanes ? load(from) : load_n(from, n);
    }
    if (p.relu) x = max(F32{}, x);
    n == kLanes ? store(y + h * kLanes, x) : store_n(y + h * kLanes, x, n);
  }
}

// A' along one axis: m0 + m1 + m2, m1 - m2 - m3.
void output(const WinogradOutput& p) {
  for (int64_t i = 0; 2 * i < p.columns; i += kLanes) {
    F32 t[2][4];
#pragma GCC unroll 4
    for (int k = 0; k < 4; ++k) {
      const float* at = p.sums + k * p.plane + i;
      const F32 m0 = load(at), m1 = load(at + 4 * p.plane), m2 = load(at + 8 * p.plane),
                m3 = load(at + 12 * p.plane);
      t[0][k] = m0 + m1 + m2;
      t[1][k] = m1 - m2 - m3;
    }
#pragma GCC unroll 2
    for (int r = 0; r < 2; ++r) {
      if (r < p.rows) write(p, r, 2 * i, t[r][0] + t[r][1] + t[r][2], t[r][1] - t[r][2] - t[r][3]);
    }
  }
}

}  // namespace

WinogradKernels winograd_kernels() { return {input, output}; }

}  // namespace rlx::cpu::RLX_ISA
