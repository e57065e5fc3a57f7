#include "rlx/backend/cpu/kernels/causal_conv.h"

#include "rlx/backend/cpu/isa_table.h"
#include "rlx/backend/cpu/kernels/grain.h"
#include "rlx/backend/cpu/kernels/sizes.h"
#include "rlx/base/error.h"

namespace rlx::cpu {

RLX_ISA_TABLE(CausalConvKernels, causal_conv_kernels)

namespace {

// A kernel longer than this is no short convolution.
constexpr int64_t kMaxKernel = 64;
// The gradient of the weights is made of this many partial sums along the sequence whatever the threads.
constexpr int64_t kSlices = 16;

// Channels taken through a run of steps at a time. Their weights lie together, [K][channels of the block]: 8
// KiB for a kernel of 4, beside each other in L1. Rows of x are often a multiple of 4 KiB apart and share its
// sets; weights in rows as long as theirs would share them too.
constexpr int64_t kChannelBlock = 512;

// body(first channel, channels) for all blocks; the weights of a block begin at K times its first channel.
template <class Body>
void each_block(int64_t channels, Body body) {
  for (int64_t c = 0; c < channels; c += kChannelBlock) body(c, std::min(kChannelBlock, channels - c));
}

void check(const CausalConv& p) {
  RLX_CHECK(p.kernel >= 1 && p.kernel <= kMaxKernel, "causal convolution with a kernel of ", p.kernel);
}

int64_t grain(const CausalConv& p) { return rows_worth(kGrain, p.channels); }

int64_t weight_count(const CausalConv& p) { return p.kernel * p.channels; }
size_t weight_bytes(const CausalConv& p) { return round_up(size_t(weight_count(p)) * sizeof(float)); }

void turn_weights(const CausalConv& p, float* out) {
  each_block(p.channels, [&](int64_t c, int64_t n) {
    for (int64_t i = 0; i < n; ++i) {
      for (int64_t k = 0; k < p.kernel; ++k) out[c * p.kernel + k * n + i] = p.w[(c + i) * p.kernel + k];
    }
  });
}

/// Row t of z of image b, t < K - 1 + S; null for zeros.
const float* row_of(const CausalConv& p, int64_t b, int64_t t) {
  if (t >= p.kernel - 1) return p.x + (b * p.length + t - (p.kernel - 1)) * p.channels;
  return p.left != nullptr ? p.left + (b * (p.kernel - 1) + t) * p.channels : nullptr;
}

/// A sum over the rows that exist: those of one kernel, from `first` on.
struct Terms {
  const float* rows[kMaxKernel];
  int64_t first = 0, count = 0;
};

}  // namespace

size_t causal_conv_workspace(const CausalConv& p, int) { return weight_bytes(p); }

void causal_conv(Team team, const CausalConv& p, std::byte* workspace) {
  check(p);
  const CausalConvKernels& kernels = causal_conv_kernels();
  float* w = reinterpret_cast<float*>(workspace);
  turn_weights(p, w);
  team.parallel_for(p.batch * p.length, grain(p), [&](int64_t begin, int64_t end) {
    each_block(p.channels, [&](int64_t c, int64_t n) {
      for (int64_t i = begin; i < end; ++i) {
        Terms t;
        for (int64_t k = 0; k < p.kernel; ++k) {
          const float* row = row_of(p, i / p.length, i % p.length + k);
          if (row == nullptr) {
            t.first = k + 1;  // zeros come first
          } else {
            t.rows[t.count++] = row + c;
          }
        }
        kernels.weighted(t.rows, w + c * p.kernel + t.first * n, t.count, p.y + i * p.channels + c, n);
      }
    });
  });
}

size_t causal_conv_backward_workspace(const CausalConvBackward& b, int) {
  return weight_bytes(b.forward) * (b.dw != nullptr ? 1 + kSlices : 1);
}

void causal_conv_backward(Team team, const CausalConvBackward& b, std::byte* workspace) {
  const CausalConv& p = b.forward;
  check(p);
  const CausalConvKernels& kernels = causal_conv_kernels();
  float* w = reinterpret_cast<float*>(workspace);
  turn_weights(p, w);
  // dz[t] = sum over k of dy[t - k] w[k]: the rows of w backwards would need turning, so terms go by k
  // upwards and dy downwards.
  const int64_t rows = p.kernel - 1 + p.length;
  team.parallel_for(p.batch * rows, grain(p), [&](int64_t begin, int64_t end) {
    each_block(p.channels, [&](int64_t c, int64_t n) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t image = i / rows, t = i % rows, pad = p.kernel - 1;
        float* out = t < pad ? b.dleft : b.dx;
        if (out == nullptr) continue;
        out += (t < pad ? image * pad + t : image * p.length + t - pad) * p.channels + c;
        Terms terms;
        terms.first = std::max<int64_t>(0, t - p.length + 1);
        for (int64_t k = terms.first; k <= std::min(t, pad); ++k)
          terms.rows[terms.count++] = b.dy + (image * p.length + t - k) * p.channels + c;
        kernels.weighted(terms.rows, w + c * p.kernel + terms.first * n, terms.count, out, n);
      }
    });
  });
  if (b.dw == nullptr) return;
  const int64_t count = weight_count(p);
  const auto slice_of = [&](int64_t slice) {
    return reinterpret_cast<float*>(workspace + size_t(1 + slice) * weight_bytes(p));
  };
  team.run(int(kSlices), [&](int slice) {
    float* sums = slice_of(slice);
    std::fill_n(sums, count, 0.0f);
    const Range r = split_range(p.batch * p.length, 1, int(kSlices), slice);
    each_block(p.channels, [&](int64_t c, int64_t n) {
      for (int64_t i = r.begin; i < r.end; ++i) {
        for (int64_t k = 0; k < p.kernel; ++k) {
          const float* row = row_of(p, i / p.length, i % p.length + k);
          if (row != nullptr)
            kernels.add_product(b.dy + i * p.channels + c, row + c, sums + c * p.kernel + k * n, n);
        }
      }
    });
  });
  each_block(p.channels, [&](int64_t c, int64_t n) {
    for (int64_t i = 0; i < n; ++i) {
      for (int64_t k = 0; k < p.kernel; ++k) {
        float sum = 0;
        for (int64_t s = 0; s < kSlices; ++s) sum += slice_of(s)[c * p.kernel + k * n + i];
        b.dw[(c + i) * p.kernel + k] = sum;
      }
    }
  });
}

}  // namespace rlx::cpu
