#include "rlx/backend/cpu/kernels/group_norm.h"

#include "rlx/backend/cpu/isa_table.h"
#include "rlx/backend/cpu/kernels/grain.h"
#include "rlx/backend/cpu/kernels/sizes.h"
#include "rlx/base/error.h"

namespace rlx::cpu {

RLX_ISA_TABLE(ChannelNormKernels, channel_norm_kernels)

namespace {

// Gradients of the parameters over places are made of this many partial sums whatever the threads.
constexpr int64_t kSlices = 16;

int64_t grain(int64_t elements) { return rows_worth(kGrain, elements); }

void check(const ChannelNorm& p) {
  RLX_CHECK(p.kind == ChannelNormKind::channels || (p.groups >= 1 && p.channels % p.groups == 0),
            "group norm of ", p.channels, " channels in ", p.groups, " groups");
}

bool is_empty(const ChannelNorm& p) { return p.batch * p.channels * p.places == 0; }

/// Blocks of places, those of all images together.
struct Blocks {
  int64_t per_image, count, width;
};
Blocks blocks_of(const ChannelNorm& p, int64_t width) {
  const int64_t per_image = ceil_div(p.places, width);
  return {per_image, per_image * p.batch, width};
}
// body(offset of the first element, places of the block)
template <class Body>
void each_block(const ChannelNorm& p, const Blocks& b, int64_t begin, int64_t end, Body body) {
  for (int64_t i = begin; i < end; ++i) {
    const int64_t first = i % b.per_image * b.width;
    body(i / b.per_image * p.channels * p.places + first, std::min(b.width, p.places - first));
  }
}

/// Rows of 2 channels partial sums in the workspace.
int64_t partial_rows(const ChannelNorm& p) { return p.kind == ChannelNormKind::groups ? p.batch : kSlices; }

}  // namespace

void channel_norm(Team team, const ChannelNorm& p) {
  check(p);
  if (is_empty(p)) return;
  const ChannelNormKernels& k = channel_norm_kernels();
  if (p.kind == ChannelNormKind::channels) {
    const Blocks b = blocks_of(p, k.block);
    team.parallel_for(b.count, grain(p.channels * b.width), [&](int64_t begin, int64_t end) {
      each_block(p, b, begin, end, [&](int64_t at, int64_t n) { k.places(p, p.x + at, p.y + at, n); });
    });
    return;
  }
  const int64_t per = p.channels / p.groups;
  team.parallel_for(p.batch * p.groups, grain(per * p.places), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      k.group(p, i % p.groups * per, p.x + i * per * p.places, p.y + i * per * p.places);
  });
}

size_t channel_norm_backward_workspace(const ChannelNormBackward& b, int) {
  return size_t(partial_rows(b.forward) * 2 * b.forward.channels) * sizeof(float);
}

void channel_norm_backward(Team team, const ChannelNormBackward& b, std::byte* workspace) {
  const ChannelNorm& p = b.forward;
  check(p);
  const ChannelNormKernels& k = channel_norm_kernels();
  float* sums = reinterpret_cast<float*>(workspace);
  const int64_t rows = partial_rows(p);
  if (is_empty(p)) {
    std::fill_n(sums, rows * 2 * p.channels, 0.0f);
  } else if (p.kind == ChannelNormKind::channels) {
    const Blocks blocks = blocks_of(p, k.block);
    team.run(int(rows), [&](int slice) {
      float* mine = sums + slice * 2 * p.channels;
      std::fill_n(mine, 2 * p.channels, 0.0f);
      const Range r = split_range(blocks.count, 1, int(rows), slice);
      each_block(p, blocks, r.begin, r.end, [&](int64_t at, int64_t n) {
        k.places_backward(b, p.x + at, b.dy + at, b.dx + at, mine, n);
      });
    });
  } else {
    const int64_t per = p.channels / p.groups;
    team.parallel_for(p.batch * p.groups, grain(per * p.places), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t first = i % p.groups * per, at = i * per * p.places;
        k.group_backward(b, first, p.x + at, b.dy + at, b.dx + at,
                         sums + i / p.groups * 2 * p.channels + first);
      }
    });
  }
  for (int which = 0; which < 2; ++which) {
    float* out = which == 0 ? b.dbeta : b.dgamma;
    if (out == nullptr) continue;
    for (int64_t c = 0; c < p.channels; ++c) {
      float sum = 0;
      for (int64_t r = 0; r < rows; ++r) sum += sums[(r * 2 + which) * p.channels + c];
      out[c] = sum;
    }
  }
}

}  // namespace rlx::cpu
