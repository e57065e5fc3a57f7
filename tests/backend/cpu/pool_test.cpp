#include "rlx/backend/cpu/kernels/pool.h"

#include "tests/backend/cpu/support.h"

namespace rlx::cpu {
namespace {

using test::Array;
using test::random_array;

constexpr Reduction kKinds[] = {Reduction::sum, Reduction::mean, Reduction::max, Reduction::min,
                                Reduction::prod};

int64_t product(const Extents& e) { return e[0] * e[1] * e[2]; }

std::vector<Pooling> shapes() {
  return {
      {.planes = 3, .size = {1, 7, 9}, .kernel = {1, 2, 2}, .stride = {1, 2, 2}},
      {.planes = 2, .size = {1, 8, 75}, .kernel = {1, 3, 3}, .stride = {1, 2, 2}, .padding = {0, 1, 1}},
      {.planes = 5, .size = {1, 1, 40}, .kernel = {1, 1, 4}, .padding = {0, 0, 3}},
      {.planes = 2, .size = {4, 5, 6}, .kernel = {2, 3, 2}, .stride = {1, 1, 3}, .padding = {1, 2, 1}},
      {.planes = 1, .size = {1, 1, 1}},
      {.planes = 0, .size = {1, 4, 4}, .kernel = {1, 2, 2}},
      {.planes = 1, .size = {1, 4, 1100}, .kernel = {1, 2, 2}, .stride = {1, 2, 2}},
      {.planes = 1, .size = {1, 67, 12}, .kernel = {1, 66, 3}, .stride = {1, 1, 3}},
      // Windows of three, two apart: no padding, fewer elements than a window, several planes deep, too many rows at once.
      {.planes = 2, .size = {1, 9, 37}, .kernel = {1, 3, 3}, .stride = {1, 2, 2}},
      {.planes = 2, .size = {1, 7, 34}, .kernel = {1, 3, 3}, .stride = {1, 2, 2}},
      {.planes = 3, .size = {1, 5, 2}, .kernel = {1, 3, 3}, .stride = {1, 2, 2}, .padding = {0, 1, 1}},
      {.planes = 2, .size = {3, 7, 65}, .kernel = {2, 3, 3}, .stride = {1, 2, 2}, .padding = {1, 1, 1}},
      {.planes = 1, .size = {1, 67, 12}, .kernel = {1, 66, 3}, .stride = {1, 1, 2}, .padding = {0, 0, 1}},
      {.planes = 1, .size = {1, 9, 41}, .kernel = {1, 3, 3}, .stride = {1, 2, 2}, .padding = {0, 2, 2}},
      {.planes = 70, .size = {1, 20, 33}, .kernel = {1, 3, 3}, .padding = {0, 1, 1}},
  };
}

// The elements of the window of output o that lie inside x.
std::vector<int64_t> window(const Pooling& p, int64_t o) {
  const Extents out = p.out(), at{o / (out[1] * out[2]), o / out[2] % out[1], o % out[2]};
  std::vector<int64_t> found;
  for (int64_t k = 0; k < product(p.kernel); ++k) {
    const Extents tap{k / (p.kernel[1] * p.kernel[2]), k / p.kernel[2] % p.kernel[1], k % p.kernel[2]};
    Extents i;
    bool inside = true;
    for (size_t a = 0; a < 3; ++a) {
      i[a] = at[a] * p.stride[a] + tap[a] - p.padding[a];
      inside = inside && i[a] >= 0 && i[a] < p.size[a];
    }
    if (inside) found.push_back((i[0] * p.size[1] + i[1]) * p.size[2] + i[2]);
  }
  return found;
}

double combined(const Pooling& p, const float* x, const std::vector<int64_t>& elements) {
  double sum = 0, factor = 1, top = -INFINITY, low = INFINITY;
  for (const int64_t i : elements) {
    const double v = double(x[i]);
    sum += v, factor *= v, top = std::max(top, v), low = std::min(low, v);
  }
  switch (p.kind) {
    case Reduction::mean:
      return sum / double(p.count_padding ? product(p.kernel) : int64_t(elements.size()));
    case Reduction::max:
      return top;
    case Reduction::min:
      return low;
    case Reduction::prod:
      return factor;
    default:
      return sum;
  }
}

Array<float> run(Team team, Pooling p, const Array<float>& x) {
  Array<float> y(p.planes * product(p.out()), 1);
  p.x = x.data(), p.y = y.data();
  std::vector<std::byte> workspace(pooling_workspace(p, team.threads()) + 64);
  pooling(team, p, workspace.data());
  return y;
}

TEST(Pooling, every_kind_agrees_with_a_plain_loop) {
  test::at_every_level([](Team team) {
    for (Pooling p : shapes()) {
      const Array<float> x = random_array(p.planes * product(p.size), 1, -2, 2, 3);
      for (const Reduction kind : kKinds) {
        for (const bool count_padding : {false, true}) {
          p.kind = kind, p.count_padding = count_padding;
          const Array<float> y = run(team, p, x);
          const int64_t n = product(p.out());
          for (int64_t i = 0; i < y.size(); ++i) {
            const double want = combined(p, x.data() + i / n * product(p.size), window(p, i % n));
            ASSERT_NEAR(double(y[i]), want, 0x1p-22 * (std::abs(want) + double(product(p.kernel)))) << i;
          }
        }
      }
    }
  });
}

TEST(Pooling, gradients_agree_with_a_plain_loop_and_ties_go_to_the_first) {
  test::at_every_level([](Team team) {
    for (Pooling p : shapes()) {
      Array<float> x = random_array(p.planes * product(p.size), 2, -2, 2, 1);
      for (int64_t i = 0; i < x.size(); ++i) x[i] = std::round(x[i] * 2) / 2;  // ties and zeros
      const int64_t n = product(p.out());
      const Array<float> dy = random_array(p.planes * n, 3, -1, 1, 1);
      for (const Reduction kind : kKinds) {
        p.kind = kind, p.count_padding = kind == Reduction::mean && p.planes == 2, p.x = x.data();
        Array<float> dx(x.size(), 3);
        for (int64_t i = 0; i < dx.size(); ++i) dx[i] = 5;
        pooling_backward(team, {.forward = p, .dy = dy.data(), .dx = dx.data()});
        std::vector<double> want(static_cast<size_t>(x.size()));
        for (int64_t i = 0; i < dy.size(); ++i) {
          const float* plane = x.data() + i / n * product(p.size);
          const int64_t base = i / n * product(p.size);
          const std::vector<int64_t> elements = window(p, i % n);
          const double extreme = combined(p, plane, elements);
          bool given = false;
          for (const int64_t e : elements) {
            double factor = 1;
            if (kind == Reduction::mean) {
              factor = 1.0 / double(p.count_padding ? product(p.kernel) : int64_t(elements.size()));
            } else if (kind == Reduction::prod) {
              for (const int64_t other : elements) factor *= other == e ? 1 : double(plane[other]);
            } else if (kind != Reduction::sum) {
              factor = !given && double(plane[e]) == extreme ? 1 : 0;
              given = given || factor == 1;
            }
            want[size_t(base + e)] += factor * double(dy[i]);
          }
        }
        test::expect_near(dx.data(), want.data(), dx.size(), 1e-5 * double(product(p.kernel)), "dx");
      }
    }
  });
}

TEST(Pooling, nan_wins_its_windows_of_three_two_apart) {
  test::at_every_level([](Team team) {
    for (const int64_t padding : {0, 1}) {
      for (const int64_t at : {0, 1, 20, 39, 40, 100, 111}) {  // an element of the middle row of five
        Pooling p{.planes = 1,
                  .size = {1, 5, 112},
                  .kernel = {1, 3, 3},
                  .stride = {1, 2, 2},
                  .padding = {0, 1, padding}};
        Array<float> x = random_array(5 * 112, 4);
        x[2 * 112 + at] = NAN;
        for (const Reduction kind : {Reduction::max, Reduction::min}) {
          p.kind = kind;
          const Array<float> y = run(team, p, x);
          const int64_t n = p.out()[2];
          for (int64_t i = 0; i < y.size(); ++i) {
            const int64_t first = 2 * (i % n) - padding;
            ASSERT_EQ(std::isnan(y[i]), i / n == 1 && first <= at && at < first + 3) << at << ", " << i;
          }
        }
      }
    }
  });
}

TEST(Pooling, nan_wins_its_windows_and_gives_no_gradient) {
  test::at_every_level([](Team team) {
    Pooling p{.planes = 1, .size = {1, 1, 60}, .kernel = {1, 1, 3}, .padding = {0, 0, 1}};
    Array<float> x = random_array(60, 4), dy(60), dx(60);
    for (int64_t i = 0; i < 60; ++i) dy[i] = 1;
    x[20] = NAN;
    for (const Reduction kind : {Reduction::max, Reduction::min}) {
      p.kind = kind;
      const Array<float> y = run(team, p, x);
      for (int64_t i = 0; i < 60; ++i) ASSERT_EQ(std::isnan(y[i]), i >= 19 && i <= 21) << i;
      p.x = x.data();
      pooling_backward(team, {.forward = p, .dy = dy.data(), .dx = dx.data()});
      float sum = 0;
      for (int64_t i = 0; i < 60; ++i) sum += dx[i];
      ASSERT_EQ(sum, 57);
    }
  });
}

}  // namespace
}  // namespace rlx::cpu
