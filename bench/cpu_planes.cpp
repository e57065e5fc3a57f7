// Pooling, resampling, normalisation over channels and the short causal convolution against the read + write
// bandwidth of a streaming copy; bytes are those of the arrays read and written once.
#include <algorithm>
#include <vector>

#include "bench/bench.h"
#include "rlx/backend/cpu/kernels/causal_conv.h"
#include "rlx/backend/cpu/kernels/group_norm.h"
#include "rlx/backend/cpu/kernels/pool.h"
#include "rlx/backend/cpu/kernels/resize.h"
#include "rlx/base/aligned.h"

namespace rlx::bench {
namespace {

using namespace cpu;

// Floats in huge pages, as the limit's.
struct Buffer {
  Buffer(int64_t n, float value) : memory(allocate_aligned(size_t(n) * sizeof(float))) {
    std::fill_n(data(), n, value);
  }
  float* data() { return reinterpret_cast<float*>(memory.get()); }
  AlignedBytes memory;
};

template <class Body>
void bench(int argc, char** argv, const std::string& name, int64_t floats, Body body) {
  if (!wanted(argc, argv, name)) return;
  const double t = interleaved({body})[0];
  report({.name = name, .value = 4e-9 * double(floats) / t, .unit = "GB/s", .limit = limits().copy_gbs});
}

}  // namespace
}  // namespace rlx::bench

int main(int argc, char** argv) {
  using namespace rlx;
  using namespace rlx::cpu;
  using rlx::bench::bench;
  const Team team(default_pool());
  const int64_t channels = 64, side = 224, big = channels * side * side;
  using rlx::bench::Buffer;
  Buffer x(big, 0), y(big, 0), dy(big, 0.25f), w(4096, 0.5f), b(4096, 0.1f);
  const AlignedBytes memory = allocate_aligned(size_t(big) * 16);
  std::byte* workspace = memory.get();
  for (int64_t i = 0; i < big; ++i) x.data()[i] = float(i % 97) * 0.01f - 0.5f;

  Pooling pool{.planes = channels, .size = {1, side, side}, .kernel = {1, 2, 2}, .stride = {1, 2, 2}};
  pool.x = x.data(), pool.y = y.data();
  bench(argc, argv, "max_pool 2x2 64x224x224", big + big / 4, [&] { pooling(team, pool, workspace); });
  bench(argc, argv, "max_pool 2x2 64x224x224 backward", 2 * big + big / 4,
        [&] { pooling_backward(team, {pool, dy.data(), y.data()}); });
  Pooling mean = pool;
  mean.kind = Reduction::mean, mean.kernel = {1, 3, 3}, mean.padding = {0, 1, 1};
  bench(argc, argv, "mean_pool 3x3 stride 2 64x224x224", big + big / 4,
        [&] { pooling(team, mean, workspace); });

  for (const ResizeMode mode : {ResizeMode::nearest, ResizeMode::linear}) {
    const std::string name = std::string("resize ") + (mode == ResizeMode::nearest ? "nearest" : "linear");
    Resize resized{.mode = mode, .planes = channels, .size = {1, side / 2, side / 2}, .to = {1, side, side}};
    resized.x = x.data(), resized.y = y.data();
    bench(argc, argv, name + " 64x112x112 to 224x224", big + big / 4,
          [&] { resize(team, resized, workspace); });
    bench(argc, argv, name + " 64x112x112 to 224x224 backward", big + big / 4,
          [&] { resize_backward(team, resized, workspace); });
  }

  for (const ChannelNormKind kind : {ChannelNormKind::groups, ChannelNormKind::channels}) {
    const std::string name = kind == ChannelNormKind::groups ? "group_norm 32" : "layer_norm_2d";
    ChannelNorm norm{.kind = kind, .batch = 4, .channels = 256, .places = 56 * 56, .groups = 32};
    norm.x = x.data(), norm.gamma = w.data(), norm.beta = b.data(), norm.y = y.data();
    const int64_t n = norm.batch * norm.channels * norm.places;
    bench(argc, argv, name + " 4x256x56x56", 2 * n, [&] { channel_norm(team, norm); });
    std::vector<float> dgamma(256), dbeta(256);
    const ChannelNormBackward back{norm, dy.data(), y.data(), dgamma.data(), dbeta.data()};
    bench(argc, argv, name + " 4x256x56x56 backward", 3 * n,
          [&] { channel_norm_backward(team, back, workspace); });
  }

  CausalConv causal{.batch = 1, .length = 1536, .channels = 2048, .kernel = 4};
  causal.x = x.data(), causal.w = x.data(), causal.y = y.data();
  const int64_t n = causal.length * causal.channels;
  bench(argc, argv, "causal_conv 1536x2048 k4", 2 * n, [&] { causal_conv(team, causal, workspace); });
  std::vector<float> dw(size_t(causal.channels * causal.kernel));
  const CausalConvBackward back{causal, dy.data(), y.data(), nullptr, dw.data()};
  bench(argc, argv, "causal_conv 1536x2048 k4 backward", 3 * n,
        [&] { causal_conv_backward(team, back, workspace); });
}
