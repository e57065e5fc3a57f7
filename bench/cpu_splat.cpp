// Gaussian splatting, forward and backward: pixels per second of a picture of 20 000 splats. There is no
// library to compare with here; the figures are for comparing versions of the kernel.
#include <vector>

#include "bench/bench.h"
#include "rlx/backend/cpu/kernels/gemm.h"
#include "rlx/backend/cpu/kernels/splat.h"
#include "rlx/base/philox.h"

namespace rlx::bench {
namespace {

using namespace cpu;

std::vector<float> uniform(int64_t n, uint64_t seed, float low, float high) {
  std::vector<float> v(static_cast<size_t>(n));
  for (size_t i = 0; i < v.size(); ++i)
    v[i] = low + (high - low) * uniform_from_bits(philox_block(seed, 0, uint64_t(i))[0]);
  return v;
}

std::vector<float> zeros(int64_t n) { return std::vector<float>(static_cast<size_t>(n)); }

}  // namespace
}  // namespace rlx::bench

int main(int argc, char** argv) {
  using namespace rlx;
  using namespace rlx::bench;
  using namespace rlx::cpu;
  const Team team(default_pool(), threads());
  const SplatPicture p{.width = 512, .height = 512, .max_splat_steps = 256, .max_list_entries = 1 << 20};
  const int64_t n = 20000, k = 4, pixels = p.width * p.height;
  const auto positions = uniform(3 * n, 1, -1, 1), scales = uniform(3 * n, 2, -4.5f, -3.5f),
             rotations = uniform(4 * n, 3, -1, 1), opacities = uniform(n, 4, -1, 2), colors = zeros(3 * n),
             sh = uniform(3 * n * k, 5, -0.2f, 0.5f), drgba = uniform(4 * pixels, 6, -1, 1);
  const std::vector<float> meta = {0, 0, -3, 0, 0, 0, 0, 1, 0, 45, 0.1f, 50, 0, 0, 0};
  auto color = zeros(3 * n), opacity = zeros(n), origin = zeros(3 * n), transform = zeros(9 * n),
       rays = zeros(3 * pixels), rgba = zeros(4 * pixels), before = zeros(pixels);
  std::vector<int32_t> ids(size_t(p.max_list_entries)), ranges(size_t(2 * p.tiles())),
      last(static_cast<size_t>(pixels));
  int32_t dropped = 0, stopped = 0;
  const SplatCloud cloud{n,
                         k,
                         positions.data(),
                         scales.data(),
                         rotations.data(),
                         opacities.data(),
                         colors.data(),
                         sh.data(),
                         meta.data()};
  const SplatBlend blend{.count = n,
                         .in = {color.data(), opacity.data(), origin.data(), transform.data(), rays.data(),
                                ids.data(), ranges.data(), &dropped},
                         .background = meta.data() + 12,
                         .rgba = rgba.data(),
                         .stopped = &stopped,
                         .last = last.data(),
                         .before = before.data()};
  auto dcolor = zeros(3 * n), dopacity = zeros(n), dorigin = zeros(3 * n), dtransform = zeros(9 * n),
       drays = zeros(3 * pixels), dbackground = zeros(3);
  const SplatBlendGradient gradient{blend,          drgba.data(),      dcolor.data(), dopacity.data(),
                                    dorigin.data(), dtransform.data(), drays.data(),  dbackground.data()};
  const AlignedBytes work = allocate_aligned(splat_prepare_workspace(p, cloud, team.threads())),
                     more = allocate_aligned(splat_blend_backward_workspace(p, gradient, team.threads()));
  const auto run = [&](const std::string& name, double amount, const std::string& unit, auto body) {
    if (!wanted(argc, argv, name)) return;
    body();
    report({.name = name, .value = amount / interleaved({body})[0], .unit = unit});
  };
  splat_prepare(team, p, cloud, blend.in, work.get());
  splat_blend(team, p, blend, more.get());
  run("splat_prepare 20000", 1e-6 * double(n), "Msplat/s",
      [&] { splat_prepare(team, p, cloud, blend.in, work.get()); });
  run("splat_blend 512x512 20000", 1e-6 * double(pixels), "Mpixel/s",
      [&] { splat_blend(team, p, blend, more.get()); });
  run("splat_blend_backward 512x512 20000", 1e-6 * double(pixels), "Mpixel/s",
      [&] { splat_blend_backward(team, p, gradient, more.get()); });
}
