#include "rlx/backend/cpu/kernels/resize.h"

#include "tests/backend/cpu/support.h"

namespace rlx::cpu {
namespace {

using test::Array;
using test::random_array;

int64_t product(const Extents& e) { return e[0] * e[1] * e[2]; }

struct Tap {
  int64_t low, high;
  double part;
};
Tap tap(const Resize& p, size_t axis, int64_t o) {
  const int64_t in = p.size[axis], out = p.to[axis];
  if (p.mode == ResizeMode::nearest) return {o * in / out, o * in / out, 0};
  double t = (double(o) + 0.5) * double(in) / double(out) - 0.5;
  if (p.align_corners) t = out > 1 ? double(o) * double(in - 1) / double(out - 1) : 0;
  t = std::max(t, 0.0);
  const int64_t low = std::min<int64_t>(int64_t(t), in - 1);
  return {low, std::min(low + 1, in - 1), t - double(low)};
}

// f(index in x, weight) for every element that output o takes from.
template <class F>
void each_source(const Resize& p, int64_t o, F f) {
  const Extents at{o / (p.to[1] * p.to[2]), o / p.to[2] % p.to[1], o % p.to[2]};
  Tap t[3];
  for (size_t a = 0; a < 3; ++a) t[a] = tap(p, a, at[a]);
  for (int corner = 0; corner < 8; ++corner) {
    int64_t index = 0;
    double weight = 1;
    for (size_t a = 0; a < 3; ++a) {
      const bool high = corner >> a & 1;
      index = index * p.size[a] + (high ? t[a].high : t[a].low);
      weight *= high ? t[a].part : 1 - t[a].part;
    }
    if (weight != 0) f(index, weight);
  }
}

std::vector<Resize> shapes() {
  std::vector<Resize> out;
  for (const auto& [planes, size, to] :
       std::vector<std::tuple<int64_t, Extents, Extents>>{{3, {1, 1, 7}, {1, 1, 20}},
                                                          {2, {1, 5, 9}, {1, 10, 18}},
                                                          {2, {1, 9, 40}, {1, 4, 33}},
                                                          {2, {2, 3, 5}, {3, 7, 4}},
                                                          {1, {1, 1, 1}, {1, 1, 5}},
                                                          {4, {1, 6, 6}, {1, 1, 1}},
                                                          {3, {1, 4, 8}, {1, 4, 8}},
                                                          {30, {1, 20, 24}, {1, 40, 48}},
                                                          {0, {1, 2, 2}, {1, 3, 3}},
                                                          {2, {1, 3, 4}, {1, 3, 9}},
                                                          {1, {1, 37, 19}, {1, 50, 33}},
                                                          {2, {1, 70, 35}, {1, 33, 16}}}) {
    out.push_back({ResizeMode::nearest, false, planes, size, to});
    out.push_back({ResizeMode::linear, false, planes, size, to});
    out.push_back({ResizeMode::linear, true, planes, size, to});
  }
  return out;
}

TEST(Resize, agrees_with_a_plain_loop) {
  test::at_every_level([](Team team) {
    for (Resize p : shapes()) {
      const Array<float> x = random_array(p.planes * product(p.size), 1, -1, 1, 1);
      Array<float> y(p.planes * product(p.to), 3);
      p.x = x.data(), p.y = y.data();
      std::vector<std::byte> workspace(resize_workspace(p, team.threads()) + 64);
      resize(team, p, workspace.data());
      for (int64_t i = 0; i < y.size(); ++i) {
        double want = 0;
        each_source(p, i % product(p.to), [&](int64_t at, double weight) {
          want += weight * double(x[i / product(p.to) * product(p.size) + at]);
        });
        ASSERT_NEAR(double(y[i]), want, 1e-6) << i;
      }
    }
  });
}

TEST(Resize, backward_is_the_transpose) {
  test::at_every_level([](Team team) {
    for (Resize p : shapes()) {
      const Array<float> dy = random_array(p.planes * product(p.to), 2, -1, 1, 1);
      Array<float> dx(p.planes * product(p.size), 3);
      for (int64_t i = 0; i < dx.size(); ++i) dx[i] = 9;
      p.x = dy.data(), p.y = dx.data();
      std::vector<std::byte> workspace(resize_workspace(p, team.threads()) + 64);
      resize_backward(team, p, workspace.data());
      std::vector<double> want(static_cast<size_t>(dx.size())), size(want.size());
      for (int64_t i = 0; i < dy.size(); ++i) {
        each_source(p, i % product(p.to), [&](int64_t at, double weight) {
          const auto k = size_t(i / product(p.to) * product(p.size) + at);
          want[k] += weight * double(dy[i]);
          size[k] += weight;
        });
      }
      for (int64_t i = 0; i < dx.size(); ++i)
        ASSERT_NEAR(double(dx[i]), want[size_t(i)], 1e-6 * (1 + size[size_t(i)])) << i;
    }
  });
}

TEST(Resize, an_element_that_is_met_exactly_does_not_see_its_neighbour) {
  test::at_every_level([](Team team) {
    for (const Extents& size : {Extents{1, 1, 3}, Extents{1, 3, 1}}) {
      const Array<float> x = random_array(3, 3);
      Array<float> y(5), in = x;
      in[1] = INFINITY;
      Resize p{ResizeMode::linear, true, 1, size, {1, size[1] == 3 ? 5 : 1, size[2] == 3 ? 5 : 1}};
      p.x = in.data(), p.y = y.data();
      std::vector<std::byte> workspace(resize_workspace(p, team.threads()) + 64);
      resize(team, p, workspace.data());
      ASSERT_EQ(y[0], x[0]);
      ASSERT_EQ(y[4], x[2]);
      for (int i = 1; i < 4; ++i) ASSERT_EQ(y[i], INFINITY);
    }
  });
}

TEST(Resize, an_infinite_gradient_reaches_only_what_was_taken) {
  test::at_every_level([](Team team) {
    for (const ResizeMode mode : {ResizeMode::nearest, ResizeMode::linear}) {
      for (const bool last : {false, true}) {
        Resize p{mode, true, 1, {1, last ? 1 : 3, last ? 3 : 1}, {1, last ? 1 : 5, last ? 5 : 1}};
        Array<float> dy(5), dx(3);
        for (int64_t i = 0; i < 5; ++i) dy[i] = i == 0 ? INFINITY : 1;  // output 0 is x[0] in both modes
        p.x = dy.data(), p.y = dx.data();
        std::vector<std::byte> workspace(resize_workspace(p, team.threads()) + 64);
        resize_backward(team, p, workspace.data());
        ASSERT_EQ(dx[0], INFINITY);
        ASSERT_EQ(dx[1] + dx[2], mode == ResizeMode::nearest ? 3 : 3.5f);
      }
    }
  });
}

}  // namespace
}  // namespace rlx::cpu
