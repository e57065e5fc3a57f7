// The lists of splats that tiles see: the order of distances, ties, what finds no room, and whole pictures.
#include "tests/backend/cuda/texts.h"

namespace rlx {
namespace {

using test::TextCase;

// A camera in front of a cloud, as the samples of the operators have it.
constexpr char kCamera[] = " near 0.3 0.2 -3 0.05 -0.02 0.1 0.1 1 0.05 40 0.1 50 0.2 0.3 0.4";

TextCase lists(const std::string& type, int splats, const std::string& settings, const char* positions) {
  return {
      cat("graph @f(p: ", type, "[", splats, ",3], s: ", type, "[", splats, ",3], r: ", type, "[", splats,
          ",4], o: ", type, "[", splats, "], m: ", type, "[15]) { y:3 = gaussian_splat_lists(p, s, r, o, m, ",
          settings, ") return ids=y, ranges=y#1, dropped=y#2 }"),
      {{"p", positions}, {"s", " in -3..-1"}, {"r", " positive"}, {"o", " in -1..1"}, {"m", kCamera}}};
}

std::vector<TextCase> all_lists() {
  constexpr char kWide[] = " in -0.9..0.9";
  return {
      lists("f32", 700, "width=70, height=50, tile_size=16, max_list_entries=6000", kWide),
      lists("f64", 300, "width=33, height=20, tile_size=8, max_list_entries=200", kWide),  // many are dropped
      lists("f16", 90, "width=24, height=24, tile_size=4, alpha_cutoff=0.1, max_list_entries=900", kWide),
      lists("f32", 40, "width=16, height=16, tile_size=16, max_list_entries=3000",
            " in 0..0"),  // all at one place
      lists("f32", 3000, "width=64, height=64, tile_size=16, max_list_entries=5000", kWide)};
}

// Pictures whose sizes tiles do not divide; few steps, so that some pixels are cut short.
std::vector<TextCase> pictures() {
  std::vector<TextCase> out;
  for (const std::string t : {"f32", "f64"}) {
    out.push_back(
        {cat("graph @f(p: ", t, "[60,3], s: ", t, "[60,3], r: ", t, "[60,4], o: ", t, "[60], c: ", t,
             "[60,3], h: ", t, "[60,4,3], m: ", t,
             "[15]) { y:3 = gaussian_splat_render(p, s, r, o, c, h, m, width=37, height=21, tile_size=8, max_splat_steps=5, "
             "max_list_entries=1500) return rgba=y, dropped=y#1, stopped=y#2 }"),
         {{"p", " in -0.7..0.7"},
          {"s", " in -3..-1.5"},
          {"r", " positive"},
          {"o", " in -1..1"},
          {"c", " unit"},
          {"h", " in 0.1..0.5"},
          {"m", kCamera}},
         1e-4});
  }
  return out;
}

TEST(CudaSplat, has_kernels) {
  test::expect_kernels(all_lists());
  test::expect_kernels(pictures());
}

class SplatOnDevice : public test::OnDevice {};
TEST_F(SplatOnDevice, lists) { test::expect_same_on_device(all_lists()); }
TEST_F(SplatOnDevice, pictures) { test::expect_same_on_device(pictures()); }

}  // namespace
}  // namespace rlx
