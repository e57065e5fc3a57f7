#include "rlx/backend/cpu/kernels/causal_conv.h"

#include <cstring>

#include "tests/backend/cpu/support.h"

namespace rlx::cpu {
namespace {

using test::Array;
using test::random_array;

struct Shape {
  int64_t batch, length, channels, kernel;
};
constexpr Shape kShapes[] = {{2, 9, 5, 4},  {1, 1, 16, 4}, {3, 2, 33, 4}, {1, 40, 64, 1},  {2, 50, 7, 3},
                             {1, 3, 17, 8}, {0, 4, 4, 2},  {2, 0, 4, 3},  {1, 600, 40, 4}, {2, 5, 1030, 4}};

TEST(CausalConv, forward_and_gradients_agree_with_a_plain_loop) {
  test::at_every_level([](Team team) {
    for (const Shape& s : kShapes) {
      for (const bool with_left : {true, false}) {
        const int64_t n = s.batch * s.length * s.channels, pad = s.kernel - 1;
        const Array<float> x = random_array(n, 1, -1, 1, 1),
                           w = random_array(s.channels * s.kernel, 2, -1, 1, 3),
                           left = random_array(s.batch * pad * s.channels, 3, -1, 1, 1),
                           dy = random_array(n, 4, -1, 1, 1);
        Array<float> y(n, 3), dx(n, 1), dleft(left.size(), 1), dw(w.size());
        const CausalConv p{s.batch,  s.length, s.channels,
                           s.kernel, x.data(), with_left ? left.data() : nullptr,
                           w.data(), y.data()};
        std::vector<std::byte> workspace(causal_conv_workspace(p, team.threads()) + 64);
        causal_conv(team, p, workspace.data());
        const CausalConvBackward b{p, dy.data(), dx.data(), dleft.data(), dw.data()};
        workspace.resize(causal_conv_backward_workspace(b, team.threads()) + 64);
        causal_conv_backward(team, b, workspace.data());
        const auto zeros = [](int64_t count) { return std::vector<double>(size_t(count)); };
        std::vector<double> wy = zeros(n), wx = zeros(n), wl = zeros(left.size()), ww = zeros(w.size());
        for (int64_t i = 0; i < n; ++i) {
          const int64_t c = i % s.channels, t = i / s.channels % s.length, image = i / s.channels / s.length;
          for (int64_t k = 0; k < s.kernel; ++k) {
            const bool inside = t + k >= pad;
            const int64_t at = inside ? (image * s.length + t + k - pad) * s.channels + c
                                      : (image * pad + t + k) * s.channels + c;
            const double z = inside ? double(x[at]) : (with_left ? double(left[at]) : 0);
            wy[size_t(i)] += z * double(w[c * s.kernel + k]);
            (inside ? wx : wl)[size_t(at)] += double(dy[i]) * double(w[c * s.kernel + k]);
            ww[size_t(c * s.kernel + k)] += double(dy[i]) * z;
          }
        }
        test::expect_near(y.data(), wy.data(), n, 2e-6, "y");
        test::expect_near(dx.data(), wx.data(), n, 2e-6, "dx");
        if (s.length > 0) test::expect_near(dleft.data(), wl.data(), left.size(), 2e-6, "dleft");
        test::expect_near(dw.data(), ww.data(), w.size(), 2e-6 * (1 + std::sqrt(double(n))), "dw");
      }
    }
  });
}

TEST(CausalConv, threads_do_not_change_bits) {
  Pool one(1), three(3);
  for (const Shape& s : kShapes) {
    const int64_t n = s.batch * s.length * s.channels;
    const Array<float> x = random_array(n, 1), w = random_array(s.channels * s.kernel, 2),
                       dy = random_array(n, 4);
    Array<float> dw[2] = {Array<float>(w.size()), Array<float>(w.size())};
    for (int i = 0; i < 2; ++i) {
      const CausalConvBackward b{
          {s.batch, s.length, s.channels, s.kernel, x.data(), nullptr, w.data(), nullptr},
          dy.data(),
          nullptr,
          nullptr,
          dw[i].data()};
      std::vector<std::byte> workspace(causal_conv_backward_workspace(b, 3) + 64);
      causal_conv_backward(Team(i == 0 ? one : three), b, workspace.data());
    }
    ASSERT_EQ(std::memcmp(dw[0].data(), dw[1].data(), size_t(w.size()) * 4), 0);
  }
}

}  // namespace
}  // namespace rlx::cpu
